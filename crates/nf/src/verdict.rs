//! What a network function decides.

use std::fmt;

use rheostat_base::{DeviceId, DropReason};

pub use rheostat_state::txn::{Abort, Outcome};

use crate::device_set::DeviceSet;

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// On to the next function, and after the last one out of the device opposite.
    Forward,
    /// Out of this device at once; the functions that would follow do not see the packet.
    Send(DeviceId),
    /// Out of each of these devices at once, as copies but for one; with none, dropped as
    /// [`DropReason::NoRoute`]. The functions that would follow do not see the packet.
    Flood(DeviceSet),
    /// Dropped and counted under this reason.
    Drop(DropReason),
    /// The packet has served its purpose.
    Consume,
    /// The packet opens a new life of its flow, as a SYN does on a closed connection: the flow ends
    /// here, and the packet is presented again as the first of a new one.
    Restart,
    /// The packet, which came from inside, is addressed to inside again now: it arrives once more, as
    /// if from outside, and passes the chain that way (RFC 4787, section 6).
    Hairpin,
}

const _: () = assert!(size_of::<Outcome<Verdict>>() <= 8, "verdicts travel in a register");

/// For people.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Forward => f.write_str("forward"),
            Verdict::Send(device) => write!(f, "send on {device}"),
            Verdict::Flood(devices) => write!(f, "send on {} devices", devices.len()),
            Verdict::Drop(reason) => write!(f, "drop ({})", reason.name()),
            Verdict::Consume => f.write_str("consume"),
            Verdict::Restart => f.write_str("restart the flow"),
            Verdict::Hairpin => f.write_str("hairpin"),
        }
    }
}

/// Whether a function takes a new flow.
#[derive(Debug)]
pub enum Admission<S> {
    /// The flow exists from now on with this state, and this becomes of its first packet. With
    /// [`Verdict::Drop`] the flow is discarded all the same.
    Admit(S, Verdict),
    /// This becomes of the packet, and the function needs no flow for it. There is one if another
    /// function of the chain admits it; otherwise the next packet is the first again.
    Pass(Verdict),
    /// No flow; the packet is dropped and counted under this reason.
    Refuse(DropReason),
}

/// For people.
impl<S> fmt::Display for Admission<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Admission::Admit(_, verdict) => write!(f, "{verdict}, admit the flow"),
            Admission::Pass(verdict) => write!(f, "{verdict}, no flow needed"),
            Admission::Refuse(reason) => write!(f, "refuse the flow ({})", reason.name()),
        }
    }
}

/// Why a flow ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Its time was up.
    Expired,
    /// A function closed it, or a packet opened a new life of it.
    Closed,
    /// Its entry, or what it held, was needed for another flow.
    Evicted,
    /// The run is over (see [`FunctionSpec::ends_with_run`](crate::FunctionSpec::ends_with_run)).
    Stopped,
}
