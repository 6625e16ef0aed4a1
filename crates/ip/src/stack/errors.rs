//! ICMP errors that this machine sends about packets it does not pass on.

use std::net::{IpAddr, Ipv6Addr};

use rheostat_base::DeviceId;
use rheostat_packet::Mbuf;
use rheostat_packet::wire::{Ipv4Packet, Ipv6Packet};

use rheostat_run::Output;

use super::{ErrorsAfterChain, Origin, Path, Stack};

use crate::icmp_error::{Problem, icmp_error};

impl Stack {
    /// Reports an error to the sender of a packet that has not been to the chain. The error comes from the
    /// interface the packet arrived on.
    pub(super) fn complain(&mut self, packet: &Mbuf, l3: u8, problem: Problem, out: &mut Output) {
        let device = packet.device();
        if let Some(error) = self.error_about(packet, l3, device, problem, out) {
            self.send_own(device, &error, out);
        }
    }

    /// Reports an error about a packet that has been to the chain and would have left on `device`: as
    /// the next router would, through the chain, where that changes packets.
    pub(super) fn complain_after_chain(
        &mut self,
        packet: &Mbuf,
        path: Path,
        device: DeviceId,
        problem: Problem,
        out: &mut Output,
    ) {
        if path.origin == Origin::Own {
            return;
        }
        match self.errors_after_chain {
            ErrorsAfterChain::ToSender => self.complain(packet, path.l3, problem, out),
            ErrorsAfterChain::ThroughChain => {
                let error = self.error_about(packet, path.l3, device, problem, out);
                let Some((error, port)) = error.zip(self.port(device)) else { return };
                let frame = port.frame(&error);
                let (port, l3) = (port.clone(), port.l3);
                let ethertype = match error.first().map(|first| first >> 4) {
                    Some(4) => rheostat_packet::wire::ethernet::IPV4,
                    _ => rheostat_packet::wire::ethernet::IPV6,
                };
                if let Some(mut made) = self.originate(device, &frame, out) {
                    port.write_link(&mut made, l3, port.mac, ethertype);
                    out.reinject(made);
                }
            }
        }
    }

    /// The error, if there may be one, and one at this time.
    fn error_about(
        &mut self,
        packet: &Mbuf,
        l3: u8,
        device: DeviceId,
        problem: Problem,
        out: &Output,
    ) -> Option<Vec<u8>> {
        let ip = packet.data().get(usize::from(l3)..)?;
        let source = source_of(ip)?;
        let from = self.speaker(device, source)?;
        let wire_len = packet.len().max(packet.wire_len() as usize) - usize::from(l3);
        let error = icmp_error(problem, from, ip, wire_len)?;
        self.errors.allow(packet.hash(), out.now()).then_some(error)
    }

    /// Tells a sender that fragments of its datagram have not come. `first` is the first, from its IP header on.
    pub(super) fn complain_of_missing(&mut self, first: &[u8], device: DeviceId, out: &mut Output) {
        let Some(source) = source_of(first) else { return };
        let Some(from) = self.speaker(device, source) else { return };
        let error = icmp_error(Problem::FragmentsMissing, from, first, first.len());
        if let Some(error) = error
            && self.errors.allow(0, out.now())
        {
            self.send_own(device, &error, out);
        }
    }

    /// The address from which this machine speaks to `peer` on a device; without one of its own, that of
    /// another interface (RFC 1812, section 4.3.2.4).
    pub(super) fn speaker(&self, device: DeviceId, peer: IpAddr) -> Option<IpAddr> {
        let own = self.network.interface(device)?.address_towards(peer);
        let mut others = self.network.interfaces().iter();
        own.or_else(|| others.find_map(|interface| interface.address_towards(peer)))
    }
}

/// Where a packet comes from.
fn source_of(ip: &[u8]) -> Option<IpAddr> {
    match ip.first()? >> 4 {
        4 => Ipv4Packet::new(ip).ok().map(|ip| ip.source().into()),
        _ => Ipv6Packet::new(ip).ok().map(|ip| Ipv6Addr::into(ip.source())),
    }
}
