//! The rules a new flow is held against: the first that matches decides.

use std::net::IpAddr;
use std::str::FromStr;

use rheostat_base::DeviceId;
use rheostat_steer::{PrefixList, Side};
use thiserror::Error;

/// What becomes of a flow that matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// It is let through, and so is everything that belongs to it.
    Allow,
    /// Its packets are dropped without a word.
    Deny,
    /// Its packets are dropped and the sender is told: TCP by a reset, the rest by an ICMP error.
    Reject,
}

/// A range of ports, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PortRange {
    /// The lowest port.
    pub low: u16,
    /// The highest port.
    pub high: u16,
}

/// Several ranges of ports, written `80,443,8000-8100`. An empty list matches every port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PortList(pub Vec<PortRange>);

/// An IP protocol, written by name or number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Protocol(pub u8);

/// Why a list of ports or a protocol could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RuleTextError {
    /// Not a port between 0 and 65535.
    #[error("`{0}` is not a port; write numbers and ranges such as `80,443,8000-8100`")]
    Port(String),
    /// A range whose ends are exchanged.
    #[error("the range `{0}` ends before it starts")]
    Reversed(String),
    /// Neither a known name nor a number up to 255.
    #[error(
        "`{0}` is not a protocol; write tcp, udp, icmp, icmpv6, sctp, gre, esp, ah or a number"
    )]
    Protocol(String),
}

const PROTOCOLS: [(&str, u8); 12] = [
    ("icmp", 1),
    ("igmp", 2),
    ("tcp", 6),
    ("udp", 17),
    ("dccp", 33),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("icmpv6", 58),
    ("ospf", 89),
    ("sctp", 132),
    ("udplite", 136),
];

impl PortList {
    /// Whether `port` lies in one of the ranges, or the list is empty.
    pub fn contains(&self, port: u16) -> bool {
        self.0.is_empty() || self.0.iter().any(|range| (range.low..=range.high).contains(&port))
    }

    /// Whether the list says anything.
    pub fn is_any(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromStr for PortList {
    type Err = RuleTextError;

    fn from_str(text: &str) -> Result<PortList, RuleTextError> {
        let port = |digits: &str| {
            digits.trim().parse::<u16>().map_err(|_| RuleTextError::Port(digits.trim().to_owned()))
        };
        let range = |part: &str| {
            let (low, high) = match part.split_once('-') {
                Some((low, high)) => (port(low)?, port(high)?),
                None => (port(part)?, port(part)?),
            };
            if low <= high {
                Ok(PortRange { low, high })
            } else {
                Err(RuleTextError::Reversed(part.trim().to_owned()))
            }
        };
        text.split(',').map(range).collect::<Result<_, _>>().map(PortList)
    }
}

impl FromStr for Protocol {
    type Err = RuleTextError;

    fn from_str(text: &str) -> Result<Protocol, RuleTextError> {
        let named = PROTOCOLS.iter().find(|(name, _)| *name == text).map(|(_, number)| *number);
        named
            .or_else(|| text.parse().ok())
            .map(Protocol)
            .ok_or_else(|| RuleTextError::Protocol(text.to_owned()))
    }
}

/// One rule. What is left empty matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// What people call it.
    pub name: Option<String>,
    /// What becomes of flows that match; none is set means [`Action::Deny`].
    pub action: Option<Action>,
    /// The side the flow's first packet comes from.
    pub from: Option<Side>,
    /// The device the flow's first packet arrives on.
    pub device: Option<DeviceId>,
    /// Where it comes from.
    pub source: PrefixList,
    /// Where it goes.
    pub destination: PrefixList,
    /// Its protocols.
    pub protocols: Vec<Protocol>,
    /// Its source ports. A rule that names ports matches only protocols that have them.
    pub source_ports: PortList,
    /// Its destination ports.
    pub destination_ports: PortList,
    /// ICMP or ICMPv6 types.
    pub icmp_types: Vec<u8>,
}

/// What a rule is held against: the first packet of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// The side it comes from.
    pub from: Side,
    /// The device it arrived on.
    pub device: DeviceId,
    /// Its source address.
    pub source: IpAddr,
    /// Its destination address.
    pub destination: IpAddr,
    /// Its protocol.
    pub protocol: u8,
    /// Source and destination port, where the protocol has them.
    pub ports: Option<(u16, u16)>,
    /// The ICMP type, where it is ICMP.
    pub icmp_type: Option<u8>,
}

impl Rule {
    pub(super) fn matches(&self, q: &Question) -> bool {
        let port = |list: &PortList, pick: fn((u16, u16)) -> u16| {
            list.is_any() || q.ports.is_some_and(|ports| list.contains(pick(ports)))
        };
        self.from.is_none_or(|side| side == q.from)
            && self.device.is_none_or(|device| device == q.device)
            && (self.source.is_empty() || self.source.contains(q.source))
            && (self.destination.is_empty() || self.destination.contains(q.destination))
            && (self.protocols.is_empty() || self.protocols.contains(&Protocol(q.protocol)))
            && port(&self.source_ports, |(source, _)| source)
            && port(&self.destination_ports, |(_, destination)| destination)
            && (self.icmp_types.is_empty()
                || q.icmp_type.is_some_and(|kind| self.icmp_types.contains(&kind)))
    }
}

/// Rules in order, and what holds when none matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleSet {
    /// Tried from the first on.
    pub rules: Vec<Rule>,
    /// For flows from inside that match no rule.
    pub default_inside: Action,
    /// For flows from outside that match no rule.
    pub default_outside: Action,
}

/// What becomes of a new flow, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The number of the rule, counted from 0; behind the last one, that of the default for flows from inside, and of the default
    /// for flows from outside.
    pub rule: usize,
    /// What becomes of the flow.
    pub action: Action,
}

impl Default for RuleSet {
    /// No rules: the inside may speak to the outside, and not the other way round.
    fn default() -> RuleSet {
        let (default_inside, default_outside) = (Action::Allow, Action::Deny);
        RuleSet { rules: Vec::new(), default_inside, default_outside }
    }
}

impl RuleSet {
    /// What becomes of a new flow, and by which rule.
    pub fn evaluate(&self, question: &Question) -> Decision {
        let rules = self.rules.len();
        match self.rules.iter().position(|rule| rule.matches(question)) {
            Some(rule) => {
                Decision { rule, action: self.rules[rule].action.unwrap_or(Action::Deny) }
            }
            None => match question.from {
                Side::Inside => Decision { rule: rules, action: self.default_inside },
                Side::Outside => Decision { rule: rules + 1, action: self.default_outside },
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question() -> Question {
        Question {
            from: Side::Outside,
            device: DeviceId(1),
            source: "198.51.100.7".parse().unwrap(),
            destination: "10.0.0.80".parse().unwrap(),
            protocol: 6,
            ports: Some((40_000, 443)),
            icmp_type: None,
        }
    }

    #[test]
    fn the_first_match_decides_and_defaults_follow() {
        let web = Rule {
            action: Some(Action::Allow),
            from: Some(Side::Outside),
            destination: ["10.0.0.80/32".parse().unwrap()].into_iter().collect(),
            protocols: vec![Protocol(6)],
            destination_ports: "80,443".parse().unwrap(),
            ..Rule::default()
        };
        let reject = Rule { action: Some(Action::Reject), ..Rule::default() };
        let rules = RuleSet { rules: vec![web, reject], ..RuleSet::default() };
        let by = |rule, action| Decision { rule, action };
        assert_eq!(rules.evaluate(&question()), by(0, Action::Allow));
        let other_port = Question { ports: Some((40_000, 22)), ..question() };
        assert_eq!(rules.evaluate(&other_port), by(1, Action::Reject));
        let no_ports = Question { protocol: 47, ports: None, ..question() };
        assert_eq!(rules.evaluate(&no_ports), by(1, Action::Reject));
        let none = RuleSet::default();
        assert_eq!(none.evaluate(&question()), by(1, Action::Deny));
        let inside = Question { from: Side::Inside, ..question() };
        assert_eq!(none.evaluate(&inside), by(0, Action::Allow));
    }

    #[test]
    fn lists_are_read_and_mistakes_named() {
        let list: PortList = "80, 443,8000-8100".parse().unwrap();
        assert!(list.contains(8050) && list.contains(80) && !list.contains(81));
        let error = |text: &str| text.parse::<PortList>().unwrap_err().to_string();
        assert_eq!(error("90-80"), "the range `90-80` ends before it starts");
        assert!(error("http").starts_with("`http` is not a port"));
        assert!(error("70000").starts_with("`70000` is not a port"));
        assert_eq!("tcp".parse(), Ok(Protocol(6)));
        assert_eq!("47".parse(), Ok(Protocol(47)));
        assert!("tpc".parse::<Protocol>().is_err() && "256".parse::<Protocol>().is_err());
    }
}
