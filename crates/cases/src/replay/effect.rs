//! What a chain did with a packet, as far as it is the same for packets of one kind.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use rheostat_base::DropReason;
use rheostat_packet::{FlowKey, Headers, LinkType, Tuple};

use crate::port::CasePort;

/// What a chain did with a packet. Ports that a translation chooses for the sender are not part of it: they differ from run to run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Effect {
    /// It left on the other side.
    Forward {
        /// The source address that it got in place of its own.
        from: Option<IpAddr>,
        /// The destination that it got in place of its own.
        to: Option<SocketAddr>,
    },
    /// It left on the side that it came from.
    Return,
    /// It was dropped, with an answer to its sender or without.
    Drop {
        /// Why.
        reason: &'static str,
        /// Whether its sender got a packet for it.
        answered: bool,
    },
    /// It went into the chain and did not leave it, as a fragment that waits for others does.
    Keep,
}

impl Effect {
    /// The effect on a frame that came in on a port, of which these frames were sent.
    pub(super) fn of(
        (port, frame): (CasePort, &[u8]),
        sent: &[(CasePort, Vec<u8>)],
        dropped: Option<DropReason>,
    ) -> Effect {
        if let Some((_, beyond)) = sent.iter().find(|(other, _)| *other != port) {
            let (Some(before), Some(after)) = (endpoints(frame), endpoints(beyond)) else {
                return Effect::Forward { from: None, to: None };
            };
            let from = (before.first() != after.first()).then(|| after.first());
            let target = |key: &FlowKey| SocketAddr::new(key.second(), key.second_port());
            let to = (target(&before) != target(&after)).then(|| target(&after));
            return Effect::Forward { from, to };
        }
        match dropped {
            Some(reason) => Effect::Drop { reason: reason.name(), answered: !sent.is_empty() },
            None if sent.is_empty() => Effect::Keep,
            None => Effect::Return,
        }
    }
}

/// The endpoints of a frame, source first; of an ICMP error, those of the packet in question.
fn endpoints(frame: &[u8]) -> Option<FlowKey> {
    let headers = Headers::parse_bytes(frame, frame.len(), LinkType::Ethernet).ok()?;
    match Tuple::of_bytes(frame, &headers) {
        Tuple::Flow(key) | Tuple::IcmpError(key) | Tuple::Fragment(key, _) => Some(key),
        Tuple::None => None,
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Effect::Forward { from, to } => {
                f.write_str("forward")?;
                if let Some(from) = from {
                    write!(f, " from {from}")?;
                }
                match to {
                    // Protocols without ports.
                    Some(to) if to.port() == 0 => write!(f, " to {}", to.ip()),
                    Some(to) => write!(f, " to {to}"),
                    None => Ok(()),
                }
            }
            Effect::Return => f.write_str("return"),
            Effect::Drop { reason, answered } => {
                let answer = if *answered { ", answered" } else { "" };
                write!(f, "drop {reason}{answer}")
            }
            Effect::Keep => f.write_str("keep"),
        }
    }
}
