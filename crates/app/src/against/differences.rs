//! Packets that two configurations decide about differently, grouped by the rules.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use rheostat_cases::{Effect, PacketDecision, words};
use rheostat_packet::FlowKey;
use serde_json::{Value, json};

/// Kinds of differences that are listed; packets of further ones are counted together.
const MOST_KINDS: usize = 1_000;
/// The longest packet in words, in characters.
const LONGEST_WORDS: usize = 160;

/// A packet before both configurations.
pub(super) struct Compared<'a> {
    /// Counted from 1.
    pub(super) number: u64,
    pub(super) frame: &'a [u8],
    pub(super) flow: Option<FlowKey>,
    pub(super) old: PacketDecision,
    pub(super) new: PacketDecision,
}

/// The differences so far.
#[derive(Debug, Default)]
pub(super) struct Differences {
    /// Flows of each kind that are shown.
    examples: usize,
    packets: u64,
    flows: HashSet<FlowKey>,
    /// Packets and flows that are decided about differently.
    different: u64,
    different_flows: HashSet<FlowKey>,
    kinds: BTreeMap<(Party, Party), Kind>,
    /// Different packets of kinds beyond [`MOST_KINDS`].
    beyond: u64,
    /// Packets with the same decision by another rule.
    other_rule: BTreeMap<(Party, Party), Kind>,
    /// Packets that both drop since the capture does not have the beginning of their connections.
    within: u64,
}

/// The decision of one configuration, by one rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Party {
    effect: Effect,
    rule: Option<String>,
}

/// Packets with the same pair of decisions.
#[derive(Debug, Default)]
struct Kind {
    packets: u64,
    bytes: u64,
    flows: HashSet<FlowKey>,
    first: u64,
    examples: Vec<(u64, String)>,
}

impl Differences {
    pub(super) fn new(examples: usize) -> Differences {
        Differences { examples, ..Differences::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.different == 0
    }

    pub(super) fn add(&mut self, compared: &Compared<'_>) {
        let Compared { old, new, flow, .. } = compared;
        self.packets += 1;
        self.flows.extend(flow);
        if old == new {
            let is_within = matches!(old.effect, Effect::Drop { reason: "tcp_invalid", .. });
            self.within += u64::from(is_within);
            return;
        }
        let is_different = old.effect != new.effect;
        let kinds = match is_different {
            true => {
                self.different += 1;
                self.different_flows.extend(flow);
                &mut self.kinds
            }
            false => &mut self.other_rule,
        };
        let pair = (Party::of(old), Party::of(new));
        if kinds.len() >= MOST_KINDS && !kinds.contains_key(&pair) {
            self.beyond += u64::from(is_different);
            return;
        }
        kinds.entry(pair).or_default().add(compared, self.examples);
    }

    /// As one line of JSON, with what was left out.
    pub(super) fn to_json(&self, skipped: &[String]) -> Value {
        let kinds = |kinds: &BTreeMap<(Party, Party), Kind>| {
            let kinds = by_packets(kinds);
            kinds.into_iter().map(|(old, new, kind)| kind.to_json(old, new)).collect::<Vec<_>>()
        };
        json!({
            "schema": 1,
            "packets": self.packets,
            "flows": self.flows.len(),
            "different_packets": self.different,
            "different_flows": self.different_flows.len(),
            "differences": kinds(&self.kinds),
            "packets_of_further_differences": self.beyond,
            "same_by_another_rule": kinds(&self.other_rule),
            "within_connections": self.within,
            "left_out": skipped,
        })
    }
}

impl Kind {
    fn add(&mut self, compared: &Compared<'_>, examples: usize) {
        let Compared { number, frame, flow, .. } = compared;
        if self.packets == 0 {
            self.first = *number;
        }
        self.packets += 1;
        self.bytes += frame.len() as u64;
        // A packet of no flow counts as one of a flow that is shown already.
        let is_new = flow.map_or(self.examples.is_empty(), |flow| self.flows.insert(flow));
        if is_new && self.examples.len() < examples {
            let words: String = words(frame).chars().take(LONGEST_WORDS).collect();
            self.examples.push((*number, words));
        }
    }

    fn to_json(&self, old: &Party, new: &Party) -> Value {
        let examples = self.examples.iter();
        let examples = examples.map(|(packet, words)| json!({ "packet": packet, "words": words }));
        json!({
            "old": old.to_json(),
            "new": new.to_json(),
            "packets": self.packets,
            "bytes": self.bytes,
            "flows": self.flows.len(),
            "first_packet": self.first,
            "examples": examples.collect::<Vec<_>>(),
        })
    }
}

impl Party {
    fn of(decision: &PacketDecision) -> Party {
        let PacketDecision { effect, rule } = decision;
        Party { effect: effect.clone(), rule: rule.as_deref().map(str::to_owned) }
    }

    fn to_json(&self) -> Value {
        json!({ "decision": self.effect.to_string(), "rule": self.rule })
    }
}

/// Kinds with the most packets first.
fn by_packets(kinds: &BTreeMap<(Party, Party), Kind>) -> Vec<(&Party, &Party, &Kind)> {
    let mut kinds: Vec<_> = kinds.iter().map(|((old, new), kind)| (old, new, kind)).collect();
    kinds.sort_by_key(|(_, _, kind)| std::cmp::Reverse(kind.packets));
    kinds
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.effect.fmt(f)?;
        self.rule.as_ref().map_or(Ok(()), |rule| write!(f, " ({rule})"))
    }
}

impl fmt::Display for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (packets, flows) =
            (count(self.packets, "packet"), count(self.flows.len() as u64, "flow"));
        if self.is_empty() {
            write!(f, "{packets} of {flows}: both decide the same")?;
        } else {
            let different = count(self.different, "packet");
            let of = count(self.different_flows.len() as u64, "flow");
            write!(f, "{packets} of {flows}: {different} of {of} are decided differently")?;
        }
        for (old, new, kind) in by_packets(&self.kinds) {
            write!(f, "\n\n{old} -> {new}: {kind}")?;
            for (number, words) in &kind.examples {
                write!(f, "\n    packet {number}: {words}")?;
            }
        }
        if self.beyond > 0 {
            write!(f, "\n\n{} of further differences", count(self.beyond, "packet"))?;
        }
        if !self.other_rule.is_empty() {
            f.write_str("\n\nthe same decision by another rule:")?;
            for (old, new, kind) in by_packets(&self.other_rule) {
                write!(f, "\n    {old} -> {new}: {kind}")?;
            }
        }
        if self.within > 0 {
            write!(
                f,
                "\n\nboth drop {} as tcp_invalid: their connections began before the capture; with `pickup = true` they are taken up",
                count(self.within, "packet")
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (packets, flows) =
            (count(self.packets, "packet"), count(self.flows.len() as u64, "flow"));
        write!(f, "{packets} of {flows}, first packet {}", self.first)
    }
}

/// A number with its noun, such as `1,204 packets`.
fn count(number: u64, noun: &str) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().collect();
    let groups: Vec<_> = groups.into_iter().map(|group| String::from_utf8_lossy(group)).collect();
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", groups.join(","))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn decision(effect: Effect, rule: &str) -> PacketDecision {
        let rule = (!rule.is_empty()).then(|| Arc::from(rule));
        PacketDecision { effect, rule }
    }

    const FORWARD: Effect = Effect::Forward { from: None, to: None };
    const DENIED: Effect = Effect::Drop { reason: "denied", answered: false };

    /// A packet from a host whose flow has the number of the port.
    fn add(to: &mut Differences, number: u64, port: u16, old: PacketDecision, new: PacketDecision) {
        let words = format!("10.0.0.1:{port} > 198.51.100.1:80 tcp S seq 1");
        let (_, frame) = rheostat_cases::frame(&words).unwrap();
        let flow = rheostat_cases::flow_of_frame(&frame, rheostat_steer::Side::Inside);
        to.add(&Compared { number, frame: &frame, flow, old, new });
    }

    #[test]
    fn packets_are_grouped_by_the_decisions_and_rules_of_both() {
        let mut differences = Differences::new(2);
        let web = || decision(FORWARD, "web");
        let denied = || decision(DENIED, "default from inside");
        for (number, port) in [(17, 1), (18, 1), (19, 2), (20, 3)] {
            add(&mut differences, number, port, web(), denied());
        }
        add(&mut differences, 21, 9, web(), web());
        add(&mut differences, 22, 9, web(), decision(FORWARD, "http"));
        assert!(!differences.is_empty());
        let text = differences.to_string();
        let expected = "6 packets of 4 flows: 4 packets of 3 flows are decided differently\n\n\
             forward (web) -> drop denied (default from inside): 4 packets of 3 flows, first packet 17\n    \
             packet 17: 10.0.0.1:1 > 198.51.100.1:80 tcp S";
        assert!(text.starts_with(expected), "{text}");
        assert!(
            text.contains("\n    packet 19: ") && !text.contains("\n    packet 20: "),
            "{text}"
        );
        let other = "the same decision by another rule:\n    forward (web) -> forward (http): 1 packet of 1 flow, first packet 22";
        assert!(text.ends_with(other), "{text}");
        let json = differences.to_json(&[]);
        assert_eq!(json["different_packets"], 4);
        assert_eq!(json["differences"][0]["new"]["rule"], "default from inside");
        assert_eq!(json["differences"][0]["first_packet"], 17);
        assert_eq!(json["same_by_another_rule"][0]["packets"], 1);
    }

    #[test]
    fn another_rule_for_the_same_decision_is_no_difference() {
        let mut differences = Differences::new(3);
        add(&mut differences, 1, 1, decision(FORWARD, "a"), decision(FORWARD, "b"));
        assert!(differences.is_empty());
        assert!(differences.to_string().starts_with("1 packet of 1 flow: both decide the same\n"));
    }

    #[test]
    fn kinds_beyond_the_listed_ones_are_counted() {
        let mut differences = Differences::new(0);
        for number in 0..MOST_KINDS as u64 + 5 {
            let rule = number.to_string();
            add(&mut differences, number, 1, decision(FORWARD, &rule), decision(DENIED, ""));
        }
        assert_eq!(differences.kinds.len(), MOST_KINDS);
        assert!(differences.to_string().ends_with("5 packets of further differences"));
    }

    #[test]
    fn numbers_have_separators() {
        assert_eq!(count(1_204, "packet"), "1,204 packets");
        assert_eq!(count(1, "flow"), "1 flow");
        assert_eq!(count(1_000_000, "flow"), "1,000,000 flows");
    }
}
