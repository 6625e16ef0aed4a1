//! Which packets of an interface are rheostat's, and which are left to the kernel.

mod endpoints;

use rheostat_packet::wire::{EthernetFrame, VlanTag, ethernet, protocol};
use rheostat_packet::{FlowKey, Headers, LinkType, tuple};
use rheostat_steer::Prefix;
use thiserror::Error;

pub use endpoints::Endpoints;

/// Fields that a packet must have. Those that are `None` do not matter; a match without any holds for
/// every packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    /// What follows the Ethernet header and its VLAN tags.
    pub ethertype: Option<u16>,
    /// The protocol above IP and its extension headers.
    pub protocol: Option<u8>,
    /// Where the source or the destination lies.
    pub address: Option<Prefix>,
    /// The source or the destination port of TCP, UDP, UDP-Lite, SCTP or DCCP. Fragments show none.
    pub port: Option<u16>,
}

/// Which packets rheostat takes from an interface: those that `take` names and those that concern `endpoints`, or all if
/// neither names any, without those that `leave` names. What is not taken goes on to the kernel as if rheostat were not
/// there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// What is taken.
    pub take: Vec<Match>,
    /// Ports of TCP that are rheostat's.
    pub endpoints: Endpoints,
    /// What is left to the kernel all the same.
    pub leave: Vec<Match>,
}

/// Why packets cannot be distinguished so.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FilterError {
    /// A list is too long.
    #[error("{given} matches are too many for one list of a filter: {most} are possible", most = Filter::MOST)]
    TooMany {
        /// How many were given.
        given: usize,
    },
    /// The endpoints have too many addresses.
    #[error("{given} addresses are too many for the endpoints of a filter: {most} are possible", most = Endpoints::MOST)]
    TooManyAddresses {
        /// How many were given.
        given: usize,
    },
    /// The number cannot be an ethertype.
    #[error("{0:#06x} is no ethertype: they start at 0x0600")]
    Ethertype(u16),
}

impl Filter {
    /// Matches that a list may have.
    pub const MOST: usize = 16;

    /// Whether the filter can be applied.
    ///
    /// # Errors
    /// [`FilterError`] states what is wrong with it.
    pub fn check(&self) -> Result<(), FilterError> {
        for list in [&self.take, &self.leave] {
            if list.len() > Filter::MOST {
                return Err(FilterError::TooMany { given: list.len() });
            }
            let ethertypes = list.iter().filter_map(|entry| entry.ethertype);
            if let Some(wrong) = ethertypes.into_iter().find(|e| *e < ethernet::MIN_ETHERTYPE) {
                return Err(FilterError::Ethertype(wrong));
            }
        }
        match self.endpoints.addresses.len() {
            given if given > Endpoints::MOST => Err(FilterError::TooManyAddresses { given }),
            _ => Ok(()),
        }
    }

    /// Whether every packet is taken.
    pub fn takes_all(&self) -> bool {
        self.take.is_empty() && self.endpoints.is_empty() && self.leave.is_empty()
    }

    /// Whether an Ethernet frame is taken: what the programs in the kernel decide.
    pub fn takes(&self, frame: &[u8]) -> bool {
        let headers = Headers::parse_bytes(frame, frame.len(), LinkType::Ethernet).ok();
        let subject = Subject::of(frame, headers);
        let any = |list: &[Match]| list.iter().any(|entry| entry.holds(&subject));
        let takes_others = self.take.is_empty() && self.endpoints.is_empty();
        let concerns = || headers.is_some_and(|headers| self.endpoints.concern(frame, &headers));
        (takes_others || any(&self.take) || concerns()) && !any(&self.leave)
    }
}

/// What can be matched of a packet. One that is malformed has an ethertype at most.
struct Subject {
    ethertype: u16,
    /// The packet's own addresses, of one of IP.
    addresses: Option<FlowKey>,
    ports: Option<(u16, u16)>,
}

impl Subject {
    fn of(frame: &[u8], headers: Option<Headers>) -> Subject {
        let addresses = headers.and_then(|headers| tuple::addresses(frame, &headers));
        let ports = headers
            .filter(|headers| headers.fragment.is_none() && protocol::has_ports(headers.protocol));
        let ports = ports.and_then(|headers| {
            let ports: &[u8; 4] = frame.get(usize::from(headers.l4)..)?.first_chunk()?;
            Some((
                u16::from_be_bytes([ports[0], ports[1]]),
                u16::from_be_bytes([ports[2], ports[3]]),
            ))
        });
        Subject { ethertype: ethertype(frame), addresses, ports }
    }
}

impl Match {
    fn holds(&self, subject: &Subject) -> bool {
        if self.ethertype.is_some_and(|wanted| wanted != subject.ethertype) {
            return false;
        }
        if self.protocol.is_none() && self.address.is_none() && self.port.is_none() {
            return true;
        }
        let Some(key) = &subject.addresses else { return false };
        let within = |prefix: Prefix| prefix.contains(key.first()) || prefix.contains(key.second());
        let one_of = |port| subject.ports.is_some_and(|(from, to)| from == port || to == port);
        self.protocol.is_none_or(|wanted| wanted == key.protocol())
            && self.address.is_none_or(within)
            && self.port.is_none_or(one_of)
    }
}

/// What follows the VLAN tags, as far as they can be read.
fn ethertype(frame: &[u8]) -> u16 {
    let Ok(frame) = EthernetFrame::new(frame) else { return 0 };
    let (mut ethertype, mut rest, mut tags) = (frame.ethertype(), frame.payload(), 0);
    while ethernet::is_vlan(ethertype) && tags < 8 {
        let Ok(tag) = VlanTag::new(rest) else { break };
        (ethertype, rest, tags) = (tag.ethertype(), tag.payload(), tags + 1);
    }
    ethertype
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use rheostat_packet::build::{Ethernet, FrameBuilder, Payload, Transport};

    fn datagram(from: &str, to: &str, ports: (u16, u16)) -> Vec<u8> {
        let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
        let ethernet = Ethernet { source: [2; 6], destination: [4; 6], vlan: Some(7) };
        FrameBuilder::new(from, to, Transport::Udp { ports }, Payload::Bytes(b"hello"))
            .with_ethernet(ethernet)
            .to_vec()
    }

    #[test]
    fn takes_what_is_named_but_not_what_is_left() {
        let frame = datagram("192.0.2.1", "198.51.100.7", (5_000, 53));
        assert!(Filter::default().takes(&frame));
        let net = Match { address: Some("198.51.100.0/24".parse().unwrap()), ..Match::default() };
        let dns = Match { protocol: Some(17), port: Some(53), ..Match::default() };
        let ipv6 = Match { ethertype: Some(0x86dd), ..Match::default() };
        let filter = |take: &[&Match], leave: &[&Match]| Filter {
            take: take.iter().map(|entry| (*entry).clone()).collect(),
            leave: leave.iter().map(|entry| (*entry).clone()).collect(),
            ..Filter::default()
        };
        assert!(filter(&[&net], &[]).takes(&frame));
        assert!(!filter(&[&net], &[&dns]).takes(&frame));
        assert!(!filter(&[&ipv6], &[]).takes(&frame));
        assert!(filter(&[&ipv6, &dns], &[]).takes(&frame));
        assert!(filter(&[], &[&ipv6]).takes(&frame));
        let other = datagram("192.0.2.1", "203.0.113.7", (5_000, 54));
        assert!(!filter(&[&net, &dns], &[]).takes(&other));
    }

    #[test]
    fn malformed_packets_have_an_ethertype_at_most() {
        let mut frame = datagram("192.0.2.1", "198.51.100.7", (5_000, 53));
        frame[18] = 0x35;
        let entry = |ethertype, protocol| Match { ethertype, protocol, ..Match::default() };
        let takes = |entry| Filter { take: vec![entry], ..Filter::default() }.takes(&frame);
        assert!(takes(entry(Some(0x0800), None)));
        assert!(!takes(entry(None, Some(17))));
    }

    #[test]
    fn what_cannot_be_applied_is_refused() {
        let wrong = Match { ethertype: Some(5), ..Match::default() };
        let filter = Filter { leave: vec![wrong], ..Filter::default() };
        assert_eq!(filter.check(), Err(FilterError::Ethertype(5)));
        let filter = Filter { take: vec![Match::default(); 17], ..Filter::default() };
        let error = filter.check().unwrap_err();
        assert_eq!(
            error.to_string(),
            "17 matches are too many for one list of a filter: 16 are possible"
        );
    }
}
