//! What left a run, flow by flow, so that two runs can be compared.

use std::collections::BTreeMap;
use std::fmt;

use rheostat_base::DropReason;
use rheostat_io::Collected;
use rheostat_packet::{Headers, LinkType, Tuple, tuple};

use crate::world::Outcome;

/// The packets of each flow and direction, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flows(BTreeMap<String, Vec<Vec<u8>>>);

/// How two runs differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// A flow has another number of packets.
    Count {
        /// The flow's name.
        flow: String,
        /// Packets that were expected.
        expected: usize,
        /// Packets that left.
        got: usize,
    },
    /// A flow has the same packets in another order, or other packets.
    Packet {
        /// The flow's name.
        flow: String,
        /// The place of the first packet that differs.
        at: usize,
    },
    /// A figure differs.
    Figure {
        /// The figure's name.
        name: String,
        /// Its expected value.
        expected: u64,
        /// Its value.
        got: u64,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Count { flow, expected, got } => {
                write!(f, "{flow}: {expected} packets expected, {got} left")
            }
            Difference::Packet { flow, at } => write!(f, "{flow}: packet {at} differs"),
            Difference::Figure { name, expected, got } => {
                write!(f, "{name}: {expected} expected, {got} counted")
            }
        }
    }
}

impl Flows {
    /// Sorts packets by flow and direction. The fragments of a datagram stand for themselves: their
    /// order against whole packets is not promised.
    pub fn of(packets: &[Collected], link: LinkType) -> Flows {
        let mut flows = Flows::default();
        for packet in packets {
            let bytes = &packet.bytes;
            let name = match Headers::parse_bytes(bytes, bytes.len(), link) {
                Ok(headers) => match Tuple::of_bytes(bytes, &headers) {
                    Tuple::Fragment(key, fragment) => format!("datagram {} of {key}", fragment.id),
                    Tuple::Flow(key) => format!("flow {key}"),
                    Tuple::IcmpError(key) => format!("errors about {key}"),
                    // Between what belongs to no flow, order is promised per pair of hosts.
                    Tuple::None => match tuple::addresses(bytes, &headers) {
                        Some(hosts) => format!("no flow, {hosts}"),
                        None => format!("no flow, {:?}", bytes.get(..14)),
                    },
                },
                Err(_) => "cut short".to_owned(),
            };
            flows.0.entry(name).or_default().push(bytes.clone());
        }
        flows
    }

    /// The first difference to what `other` holds.
    pub fn differs_from(&self, other: &Flows) -> Option<Difference> {
        let none = Vec::new();
        let names = self.0.keys().chain(other.0.keys());
        for flow in names {
            let expected = self.0.get(flow).unwrap_or(&none);
            let got = other.0.get(flow).unwrap_or(&none);
            if expected.len() != got.len() {
                let (flow, expected, got) = (flow.clone(), expected.len(), got.len());
                return Some(Difference::Count { flow, expected, got });
            }
            if let Some(at) = (0..got.len()).find(|&at| expected[at] != got[at]) {
                return Some(Difference::Packet { flow: flow.clone(), at });
            }
        }
        None
    }

    /// How many packets left after a packet of their flow and direction that had arrived later. Told
    /// from what left alone, not from what the lanes say of themselves. Fragments and ICMP errors,
    /// whose way through their home shard may let others pass, do not count.
    pub fn overtaken(packets: &[Collected], link: LinkType) -> usize {
        let mut latest: BTreeMap<String, u32> = BTreeMap::new();
        let mut overtaken = 0;
        for packet in packets {
            let bytes = &packet.bytes;
            let Ok(headers) = Headers::parse_bytes(bytes, bytes.len(), link) else { continue };
            let Tuple::Flow(key) = Tuple::of_bytes(bytes, &headers) else { continue };
            let latest = latest.entry(key.to_string()).or_insert(packet.stamp);
            overtaken += usize::from(packet.stamp < *latest);
            *latest = packet.stamp.max(*latest);
        }
        overtaken
    }

    /// How many flows there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The first difference between a run and the same packets' run on one lane.
pub fn difference(one: &Outcome, many: &Outcome, link: LinkType) -> Option<Difference> {
    let figures = |outcome: &Outcome| {
        let sum = &outcome.sum;
        let mut figures = vec![
            ("received".to_owned(), sum.received),
            ("originated".to_owned(), sum.originated),
            ("sent".to_owned(), sum.sent),
            ("consumed".to_owned(), sum.consumed),
            ("flows created".to_owned(), sum.flows_created),
            ("flows ended".to_owned(), sum.flows_ended),
        ];
        let dropped = DropReason::all()
            .map(|reason| (format!("dropped {}", reason.name()), sum.dropped[reason as usize]));
        figures.extend(dropped);
        figures
    };
    for ((name, expected), (_, got)) in figures(one).into_iter().zip(figures(many)) {
        if expected != got {
            return Some(Difference::Figure { name, expected, got });
        }
    }
    Flows::of(&one.packets, link).differs_from(&Flows::of(&many.packets, link))
}
