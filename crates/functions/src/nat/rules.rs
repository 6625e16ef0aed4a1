//! What follows from a packet and the settings alone, wherever mappings are kept: which hosts are translated, which may open a
//! flow, and what becomes of packets without one.

use std::net::{IpAddr, Ipv4Addr};

use rheostat_base::DropReason;
use rheostat_ip::{LONGEST_ANSWER, Received, Unreachable, is_host};
use rheostat_packet::wire::{TcpFlags, icmpv4};
use rheostat_packet::{FlowKey, Headers, Network};
use rheostat_steer::{Prefix, Translation};

use super::config::NatConfig;
use super::flow::Endpoint;
use super::forwards::Forwards;
use super::pool::{BlockError, Pool};
use rheostat_nf::Cx;
use rheostat_nf::Packet;
use rheostat_nf::{Outcome, Verdict};

/// The settings of a NAT, made up for packets.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) config: NatConfig,
    pub(super) pool: Pool,
    pub(super) forwards: Forwards,
    /// The addresses that packets from outside may be for, ascending: see [`Rules::is_external`].
    external: Vec<Ipv4Addr>,
}

/// What a packet from inside without a flow is to become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outbound {
    /// It passes as it is; its two ends, if they are of IPv4.
    Pass(Option<(Endpoint, Endpoint)>),
    /// It is dropped.
    Refuse(DropReason),
    /// It opens a flow, which needs an external endpoint.
    Open { inner: Endpoint, remote: Endpoint, flags: Option<TcpFlags>, is_hairpin: bool },
}

/// What a packet from outside without a flow is to become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inbound {
    /// It passes as it is.
    Pass,
    /// It is dropped, unless a mapping lets it in.
    Ask {
        external: Endpoint,
        remote: Endpoint,
        flags: Option<TcpFlags>,
        /// Whether it may open a flow at all.
        opens: bool,
        /// Whether it asks for a connection to an external address (RFC 5382, REQ-4).
        is_syn: bool,
    },
}

impl Rules {
    /// The rules of a NAT with these settings.
    ///
    /// # Errors
    /// [`BlockError`] when the ports cannot be divided among the hosts inside.
    pub(super) fn new(config: NatConfig) -> Result<Rules, BlockError> {
        let forwarded = config.forwards.iter().map(|forward| forward.external.0);
        let mut external: Vec<_> = forwarded.chain(config.external.iter().copied()).collect();
        external.sort_unstable();
        external.dedup();
        Ok(Rules {
            pool: Pool::new(&config)?,
            forwards: Forwards::new(&config.forwards),
            external,
            config,
        })
    }

    /// Whether packets from outside may be for this address.
    #[inline]
    pub(super) fn is_external(&self, address: Ipv4Addr) -> bool {
        self.external.binary_search(&address).is_ok()
    }

    /// What is to become of a packet from inside that has no flow.
    pub(super) fn outbound(&self, packet: &Packet<'_>) -> Outbound {
        let Some(ends @ (inner, remote)) = ends_v4(&packet.key(), packet.is_forward()) else {
            return Outbound::Pass(None);
        };
        // No host inside has an external address, or one that names no host.
        let is_spoofed = self.is_external(inner.0) || inner.0.is_loopback();
        if is_spoofed || !is_host(inner.0.into()) || !is_routable(remote.0) {
            return Outbound::Refuse(DropReason::NoRoute);
        }
        if !self.translates(packet.is_forward(), ends) {
            return Outbound::Pass(Some(ends));
        }
        if let Some(kind) = packet.icmp_type()
            && !icmpv4::is_request(kind)
        {
            return Outbound::Refuse(DropReason::IcmpUnrelated);
        }
        let flags = packet.tcp().map(|segment| segment.flags());
        if flags.is_some_and(|flags| flags.rst()) {
            // It ends what is not there.
            return Outbound::Refuse(DropReason::TcpInvalid);
        }
        let is_hairpin = self.is_external(remote.0);
        if is_hairpin && !self.config.hairpinning {
            return Outbound::Refuse(DropReason::NoRoute);
        }
        Outbound::Open { inner, remote, flags, is_hairpin }
    }

    /// What is to become of a packet from outside that has no flow.
    pub(super) fn inbound(&self, packet: &Packet<'_>) -> Inbound {
        let key = packet.key();
        let (IpAddr::V4(external), IpAddr::V4(remote)) = (key.first(), key.second()) else {
            return Inbound::Pass;
        };
        let is_ours = self.is_external(external);
        if self.config.exempt.contains(remote.into()) && !is_ours {
            return Inbound::Pass;
        }
        let flags = packet.tcp().map(|segment| segment.flags());
        let is_syn = flags.is_some_and(|flags| flags.syn() && !flags.ack());
        let asks = packet.icmp_type().is_none_or(icmpv4::is_request);
        let may = (is_syn || flags.is_none()) && asks;
        Inbound::Ask {
            external: (external, key.first_port()),
            remote: (remote, key.second_port()),
            flags,
            opens: may && !packet.is_forward() && is_host(remote.into()),
            is_syn: is_syn && is_ours,
        }
    }

    /// Whether packets between these ends are translated.
    fn translates(&self, is_forward: bool, (inner, remote): (Endpoint, Endpoint)) -> bool {
        let inside = &self.config.inside;
        let is_inside = |address: Ipv4Addr| inside.contains(address.into());
        let by_host = inside.is_empty() || (is_inside(inner.0) && !is_inside(remote.0));
        is_forward && by_host && !self.config.exempt.contains(remote.0.into())
    }

    /// What becomes of a packet that can have no flow.
    pub(super) fn without_flow(&self, headers: &Headers) -> Verdict {
        match headers.network {
            Network::Ipv4 => Verdict::Drop(DropReason::IcmpUnrelated),
            Network::Ipv6 => Verdict::Forward,
            Network::Arp | Network::Other => {
                let known = self.config.ethertypes.contains(&headers.ethertype);
                if known { Verdict::Forward } else { Verdict::Drop(DropReason::NotIp) }
            }
        }
    }

    /// The endpoints that are translated.
    pub(super) fn translation(&self) -> Translation {
        let single = |address: &Ipv4Addr| Prefix::containing((*address).into(), 32);
        let external = self.external.iter().map(single).collect();
        let mut translation = Translation::new(external);
        for (protocol, inner, external) in self.forwards.iter() {
            translation.fix(protocol, inner, external);
        }
        translation
    }
}

/// Tells a host inside that there is no endpoint for its flow (RFC 6888, REQ-11).
pub(super) fn prohibit<L>(cx: &mut Cx<'_, L>, packet: &Packet<'_>) -> Outcome<()> {
    let (received, headers) = (Received::from(packet.mbuf()), packet.headers());
    cx.originate_like(packet, LONGEST_ANSWER, |out| {
        rheostat_ip::unreachable(received, headers, Unreachable::Prohibited, out)
    })
}

/// Sender and receiver of a packet from inside, if it is of IPv4.
fn ends_v4(key: &FlowKey, is_forward: bool) -> Option<(Endpoint, Endpoint)> {
    let (IpAddr::V4(first), IpAddr::V4(second)) = (key.first(), key.second()) else { return None };
    let (first, second) = ((first, key.first_port()), (second, key.second_port()));
    Some(if is_forward { (first, second) } else { (second, first) })
}

/// Whether packets to an address leave their link (RFC 1812, section 5.3.7; RFC 3927, section 2.7).
fn is_routable(address: Ipv4Addr) -> bool {
    is_host(address.into()) && !address.is_loopback() && !address.is_link_local()
}
