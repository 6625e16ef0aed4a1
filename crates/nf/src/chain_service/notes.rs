//! What is noted about packets that are traced. None of it runs for others.

use rheostat_ip::{Admission, Departure, Stack};
use rheostat_packet::Mbuf;
use rheostat_packet::wire::EthernetFrame;
use rheostat_run::{Output, PacketInfo, ShardSet, Step};

use super::ChainService;
use crate::chain::Chain;
use crate::cx::OutboxLen;

impl<C: Chain> ChainService<C> {
    /// Notes whether the packet's flow is known. It is looked up once more for this, so that the lookup
    /// that counts need not return it. Returns whether it is.
    #[cold]
    pub(super) fn note_lookup(
        &mut self,
        packet: &Mbuf,
        info: &PacketInfo,
        shards: &mut ShardSet,
        out: &mut Output,
    ) -> bool {
        self.outbox.decisions.clear();
        let known = info.has_key() && is_known(info, shards);
        if info.has_key() {
            out.mirror().note(packet, Step::Looked { known });
        }
        known
    }

    /// Notes what the functions decided, what they have `made`, and whether the packet, whose flow was not
    /// `known`, has one now.
    #[cold]
    pub(super) fn note_decisions(
        &mut self,
        packet: &Mbuf,
        info: &PacketInfo,
        known: bool,
        made: OutboxLen,
        shards: &mut ShardSet,
        out: &mut Output,
    ) {
        for decision in self.outbox.decisions.drain(..) {
            out.mirror().note(packet, decision);
        }
        if !known && info.has_key() && is_known(info, shards) {
            out.mirror().note(packet, Step::FlowMade);
        }
        if made.total() > 0 {
            out.mirror().note(packet, Step::Originated(made.total()));
        }
    }
}

fn is_known(info: &PacketInfo, shards: &mut ShardSet) -> bool {
    let Some(shard) = shards.get_mut(info.shard) else { return false };
    let found = shard.table.find_now(info.hash, &info.key());
    found.and_then(|flow| shard.table.flow(flow)).is_some_and(|flow| !flow.is_expired(info.now))
}

/// Notes what the network layer makes of a packet that does not go to the chain.
#[cold]
pub(super) fn note_admission(packet: &Mbuf, admission: Admission, out: &mut Output) {
    let decision = match admission {
        Admission::Back(_) => "network: for this machine, which answers",
        Admission::Through(_) => "network: to be sent on",
        Admission::Consume | Admission::Transport | Admission::TransportError => {
            "network: for this machine"
        }
        // The reason is noted with the drop.
        Admission::Drop(_) => return,
    };
    out.mirror().note(packet, Step::Routed(decision.to_owned()));
}

/// Notes where the network layer sends a packet.
#[cold]
pub(super) fn note_departure(
    packet: &Mbuf,
    departure: Departure,
    stack: Option<&Stack>,
    out: &mut Output,
) {
    let decision = match departure {
        Departure::Send(device) => {
            let interface = stack.and_then(|stack| stack.network().interface(device));
            let name = interface.map_or_else(|| device.to_string(), |known| known.name.clone());
            match EthernetFrame::new(packet.data()) {
                Ok(frame) => {
                    let [a, b, c, d, e, f] = frame.destination();
                    format!(
                        "network: next hop {a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x} on {name}"
                    )
                }
                Err(_) => format!("network: out on {name}"),
            }
        }
        Departure::Hold(_) => "network: waits until its next hop has a link address".to_owned(),
        Departure::Consume => "network: other packets take its place".to_owned(),
        Departure::Drop(_) => return,
    };
    out.mirror().note(packet, Step::Routed(decision));
}
