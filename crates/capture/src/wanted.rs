//! Which packets of a run are copied, and what a copy is.

use rheostat_base::{DeviceId, DropReason, LaneId};
use rheostat_packet::{LinkType, Mbuf};

use crate::Expression;

/// Where on its way a packet is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// As a lane received it.
    Before,
    /// As a device took it to be sent.
    After,
    /// As it was when it was dropped.
    Dropped(DropReason),
}

/// Which packets are copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Those of this device only: that received them, or that sends them.
    pub device: Option<DeviceId>,
    /// Only those that come in, or only those that go out. A dropped packet is one that came in, unless
    /// the device it should leave on refused it.
    pub inbound: Option<bool>,
    /// Those received.
    pub before: bool,
    /// Those sent.
    pub after: bool,
    /// Those dropped.
    pub dropped: bool,
    /// Of those dropped, only for this reason.
    pub reason: Option<DropReason>,
    /// Those that this matches.
    pub filter: Option<Expression>,
    /// Bytes of each that are copied at most.
    pub snaplen: usize,
}

impl Default for Wanted {
    /// Everything that is received and sent, whole.
    fn default() -> Wanted {
        Wanted {
            device: None,
            inbound: None,
            before: true,
            after: true,
            dropped: false,
            reason: None,
            filter: None,
            snaplen: usize::MAX,
        }
    }
}

impl Wanted {
    /// Whether a packet is to be copied at this point of its way over this device.
    pub fn includes(&self, point: Point, device: DeviceId, packet: &Mbuf) -> bool {
        let here = match point {
            Point::Before => self.before,
            Point::After => self.after,
            Point::Dropped(reason) => self.dropped && self.reason.is_none_or(|only| only == reason),
        };
        here && self.device.is_none_or(|only| only == device)
            && self.inbound.is_none_or(|only| only == point.is_inbound())
            && self.filter.as_ref().is_none_or(|filter| filter.matches(packet))
    }
}

impl Point {
    /// Whether the packet was on its way in.
    pub fn is_inbound(self) -> bool {
        !matches!(self, Point::After | Point::Dropped(DropReason::TransmitFull))
    }
}

/// A copy of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Where it was copied.
    pub point: Point,
    /// The device that received it, or that sends it.
    pub device: DeviceId,
    /// The lane that saw it.
    pub lane: LaneId,
    /// Nanoseconds since 1970: when it arrived, or, of a packet that leaves a live device, when it left.
    pub nanos: u64,
    /// What its first bytes are.
    pub link: LinkType,
    /// What the lane's service did with it, or sent it for.
    pub comment: Option<String>,
    /// Bytes it had.
    pub wire_len: u32,
    /// Its bytes, as many as were requested.
    pub bytes: Box<[u8]>,
}

impl Copied {
    pub(super) fn with_comment(self, comment: String) -> Copied {
        Copied { comment: Some(comment), ..self }
    }

    /// Copies up to `snaplen` bytes of a packet.
    pub(super) fn of(
        packet: &Mbuf,
        snaplen: usize,
        (point, device, lane): (Point, DeviceId, LaneId),
        nanos: u64,
    ) -> Copied {
        let mut bytes = Vec::with_capacity(packet.len().min(snaplen));
        for segment in packet.segments() {
            let room = snaplen - bytes.len();
            bytes.extend_from_slice(&segment[..segment.len().min(room)]);
        }
        Copied {
            point,
            device,
            lane,
            nanos,
            link: packet.link(),
            comment: None,
            wire_len: packet.wire_len().max(packet.len() as u32),
            bytes: bytes.into_boxed_slice(),
        }
    }
}
