//! What the firewall lists of a flow: how far its connection is, and the rule that admits it.

use rheostat_nf::{ListCx, Lists};
use rheostat_packet::FlowKey;
use rheostat_packet::wire::protocol::has_ports;
use rheostat_run::listing::ListedFields;
use rheostat_steer::Side;

use super::connection::{Phase, Track};
use super::{Firewall, Limits, Question};

/// The types of echo requests, which open nearly all flows of ICMP.
const ECHO_V4: u8 = 8;
const ECHO_V6: u8 = 128;

impl Lists for Firewall {
    /// The rule is looked for when it is listed, among those that are in force: a flow costs no memory for it. It is missing where
    /// the default of the flow's side admits it.
    fn list(&self, cx: ListCx<'_, Limits>, key: &FlowKey, flow: &Track, into: &mut ListedFields) {
        into.text("state", name(flow.phase()));
        let forward = flow.is_from_initiator(true);
        into.opened(forward);
        let question = question(&cx, key, forward);
        let mut rules = self.config.rules.rules.iter().enumerate();
        let Some((number, rule)) = rules.find(|(_, rule)| rule.matches(&question)) else { return };
        match &rule.name {
            Some(name) => into.text("rule", name.clone()),
            None => into.text("rule", format!("{}", number + 1)),
        }
    }
}

/// What the rules were asked about the first packet, as far as that can be told from the flow.
fn question(cx: &ListCx<'_, Limits>, key: &FlowKey, forward: bool) -> Question {
    let (opener, from) = match forward {
        true => (*key, Side::Inside),
        false => (key.reversed(), Side::Outside),
    };
    let protocol = opener.protocol();
    Question {
        from,
        device: cx.devices[usize::from(!forward)],
        source: opener.first(),
        destination: opener.second(),
        protocol,
        ports: has_ports(protocol).then(|| (opener.first_port(), opener.second_port())),
        icmp_type: match protocol {
            1 => Some(ECHO_V4),
            58 => Some(ECHO_V6),
            _ => None,
        },
    }
}

fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::Asked => "unanswered",
        Phase::Answered => "answered",
        Phase::SynSent => "syn-sent",
        Phase::SynCrossed => "syn-crossed",
        Phase::SynReceived => "syn-received",
        Phase::Established => "established",
        Phase::Closing => "closing",
        Phase::LastAck => "last-ack",
        Phase::TimeWait => "time-wait",
        Phase::Closed => "closed",
    }
}
