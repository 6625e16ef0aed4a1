//! What a NAT keeps per flow.

use std::mem::offset_of;
use std::net::{IpAddr, Ipv4Addr};

use rheostat_base::DropReason;
use rheostat_packet::FlowKey;
use rheostat_packet::checksum::{Validity, evaluate_packet};
use rheostat_packet::wire::{End, RewriteError, TcpFlags};
use rheostat_steer::Side;

use super::TCP;
use super::closing::{Closing, Segment, stamp};
use super::crowd::Holding;
use super::mapping::MappingId;
use super::session::Session;
use rheostat_nf::Packet;

/// An address and a port, or the identifier of queries; zero for protocols without.
pub(super) type Endpoint = (Ipv4Addr, u16);

/// The endpoints of a translated flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Ends {
    pub(super) inner: Endpoint,
    pub(super) external: Endpoint,
    pub(super) remote: Endpoint,
}

/// What keeps the flow's external endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binding {
    /// The configuration.
    Fixed,
    /// A mapping that other flows of the inner endpoint share.
    Mapping,
    /// The same, but no host inside has sent on the flow: it does not keep the mapping in use.
    Asked,
    /// The flow itself; counted against its host's quota, unless it is over.
    Own,
}

/// How far a translated flow has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    /// Only one end has sent.
    #[default]
    Waiting,
    /// Both have.
    Firm,
    /// Its connection is properly over.
    Closed,
}

/// The state of one flow; by default, of one that is let through as it is. Its first 30 bytes lie in the line of the flow's key: what most packets need stands
/// there, and the remote end and the mapping behind.
#[derive(Debug, Default)]
#[repr(C)]
pub struct FlowState {
    pub(super) closing: Closing,
    pub(super) protocol: u8,
    pub(super) session: Session,
    pub(super) stage: Stage,
    /// Whether the flow was opened from inside.
    pub(super) opened_inside: bool,
    /// `None` for a flow that is let through as it is.
    pub(super) translated: Option<Translated>,
}

/// What becomes of a translated flow's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Translated {
    pub(super) binding: Binding,
    /// Whether the other end is inside, too.
    pub(super) is_hairpin: bool,
    pub(super) ends: Ends,
    /// The mapping, if `binding` says that there is one.
    pub(super) mapping: MappingId,
}

// With the table's own part, an entry stays within two cache lines.
const _: () = {
    assert!(size_of::<FlowState>() == 38 && align_of::<FlowState>() == 2);
    let ends = offset_of!(FlowState, translated) + offset_of!(Translated, ends);
    assert!(ends + offset_of!(Ends, remote) <= 30);
};

impl FlowState {
    /// The state of a flow whose first packet this is.
    pub(super) fn opened_by(packet: &Packet<'_>, translated: Option<Translated>) -> FlowState {
        FlowState {
            translated,
            protocol: packet.headers().protocol,
            opened_inside: packet.side() == Side::Inside,
            ..FlowState::default()
        }
    }

    /// Notes a packet of a connection, and whether it is one.
    #[inline]
    pub(super) fn note(&mut self, packet: &Packet<'_>, outbound: bool) -> bool {
        let segment = if self.protocol == TCP { packet.tcp() } else { None };
        if let Some(segment) = &segment {
            let noted = Segment::of(packet, segment);
            self.session.note(outbound, TcpFlags(noted.flags));
            self.closing.note(outbound, noted, || stamp(segment));
        }
        segment.is_some()
    }

    /// How far the flow has come with a packet that has been noted.
    #[inline]
    pub(super) fn stage_after(&self, outbound: bool) -> Stage {
        match self.stage {
            Stage::Waiting if outbound == self.opened_inside => Stage::Waiting,
            _ if self.closing.is_over() => Stage::Closed,
            _ => Stage::Firm,
        }
    }

    /// What the port of a flow that has it for itself is for others.
    pub(super) fn holding(&self) -> Holding {
        match (self.stage, &self.translated) {
            (Stage::Waiting, Some(translated)) => Holding::Waiting(translated.ends.inner.0),
            (Stage::Closed, _) => Holding::Spent,
            _ => Holding::Kept,
        }
    }
}

impl Ends {
    /// The key of packets from inside, as they come.
    pub(super) fn inner_key(&self, protocol: u8, zone: u32) -> FlowKey {
        FlowKey::v4(self.inner, self.remote_of(self.inner, protocol), protocol, zone)
    }

    /// The key of packets from outside, as they come.
    pub(super) fn external_key(&self, protocol: u8, zone: u32) -> FlowKey {
        FlowKey::v4(self.external, self.remote_of(self.external, protocol), protocol, zone)
    }

    /// The remote end as it stands beside `own`: queries have one identifier for both.
    fn remote_of(&self, own: Endpoint, protocol: u8) -> Endpoint {
        (self.remote.0, if protocol == 1 { own.1 } else { self.remote.1 })
    }

    /// Whether a packet that arrived under `key` says the address that its side knows. The table finds a
    /// flow by both its keys, whichever side a packet comes from; but no host outside may send to the
    /// inner endpoint, and none inside as the external one.
    #[inline]
    pub(super) fn are_named_by(&self, key: &FlowKey, outbound: bool) -> bool {
        let own = if outbound { self.inner.0 } else { self.external.0 };
        key.first() == IpAddr::V4(own)
    }

    /// Translates a packet of the flow.
    #[inline]
    pub(super) fn translate(
        &self,
        packet: &mut Packet<'_>,
        outbound: bool,
    ) -> Result<(), DropReason> {
        let (end, (address, port)) = match outbound {
            true => (End::Source, self.external),
            false => (End::Destination, self.inner),
        };
        let port = (self.inner.1 != self.external.1).then_some(port);
        packet.set_endpoint(end, address.into(), port).map_err(untranslatable)
    }

    /// Translates an ICMP error about a packet of the flow, and the packet in it (RFC 5508, REQ-4 and
    /// REQ-5). `outbound` errors come from inside and quote a packet from outside.
    pub(super) fn translate_error(
        &self,
        packet: &mut Packet<'_>,
        outbound: bool,
    ) -> Result<(), DropReason> {
        // It goes to the sender of the packet it quotes; otherwise one flow would let errors through to
        // every other host.
        let sender = if outbound { self.remote.0 } else { self.external.0 };
        let receiver = packet.addresses().map(|outer| outer.second());
        if receiver != Some(sender.into()) {
            return Err(DropReason::IcmpUnrelated);
        }
        if evaluate_packet(packet.mbuf(), packet.headers()) == Some(Validity::Invalid) {
            // RFC 5508, REQ-3.
            return Err(DropReason::Malformed);
        }
        let mut quoted = packet.quoted().map_err(untranslatable)?;
        if outbound {
            quoted.set_destination(self.external.0.into(), self.external.1)
        } else {
            quoted.set_source(self.inner.0.into(), self.inner.1)
        }
        .map_err(untranslatable)?;
        if outbound {
            // Whichever host inside has sent it: no other address of the inside may be seen.
            packet.set_source(self.external.0.into())
        } else {
            packet.set_destination(self.inner.0.into())
        }
        .map_err(untranslatable)
    }
}

fn untranslatable(_: RewriteError) -> DropReason {
    DropReason::Untranslatable
}
