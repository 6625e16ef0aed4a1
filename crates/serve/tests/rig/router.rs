//! A router between the service and its clients whose next link carries less than the service's.

use std::net::IpAddr;

use rheostat_ip::{Problem, icmp_error};
use rheostat_packet::wire::ethernet;
use rheostat_packet::{Headers, LinkType, Network};

use super::MAC;

const ROUTER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 3];

/// A router. It carries everything, until it is told what its next link takes.
#[derive(Default)]
pub(crate) struct Router {
    pub(crate) mtu: Option<u16>,
    /// Packets that were too long.
    pub(crate) refused: usize,
    /// The longest packet that passed.
    pub(crate) longest: usize,
}

impl Router {
    /// The report about a frame that is too long for the next link; `None` if it passes.
    pub(crate) fn refuse(&mut self, frame: &[u8]) -> Option<Vec<u8>> {
        let headers = Headers::parse_bytes(frame, frame.len(), LinkType::Ethernet).expect("IP");
        let ip = &frame[usize::from(headers.l3)..headers.end as usize];
        let mtu = self.mtu.filter(|mtu| ip.len() > usize::from(*mtu));
        let Some(mtu) = mtu else {
            self.longest = self.longest.max(ip.len());
            return None;
        };
        self.refused += 1;
        Some(report(ip, Problem::TooBig(mtu)))
    }
}

/// A frame with the error of a router about a packet of the service.
pub(crate) fn report(packet: &[u8], problem: Problem) -> Vec<u8> {
    let headers = Headers::parse_bytes(packet, packet.len(), LinkType::Raw).expect("IP");
    let (from, ethertype): (IpAddr, u16) = match headers.network {
        Network::Ipv4 => ("10.0.0.9".parse().unwrap(), ethernet::IPV4),
        _ => ("fd00::9".parse().unwrap(), ethernet::IPV6),
    };
    let error = icmp_error(problem, from, packet, packet.len()).expect("an error");
    [&MAC[..], &ROUTER_MAC, &ethertype.to_be_bytes(), &error].concat()
}
