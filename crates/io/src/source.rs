//! Where the packets that arrive at a device come from.

use rheostat_base::Time;
use rheostat_packet::LinkType;

/// What is known of a frame beside its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When it arrives, on the source's own clock. Never earlier than the one before, except in
    /// captures whose time stamps are out of order.
    pub time: Time,
    /// Bytes in the frame buffer.
    pub len: usize,
    /// Bytes on the wire; more than `len` when a capture cut the frame short.
    pub wire_len: u32,
    /// What the first bytes are.
    pub link: LinkType,
}

/// A sequence of frames in the order they arrive.
pub trait Source: Send {
    /// Replaces the contents of `frame` by the next frame. `None`: there is none, and unless the source
    /// is fed while it runs, there will be no more.
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival>;

    /// Whether frames may come after there was none: the source is fed while it runs.
    fn is_fed(&self) -> bool {
        false
    }

    /// How much of a source of known size has been delivered, between 0 and 1.
    fn progress(&self) -> Option<f64> {
        None
    }
}

/// The source of a device that only sends, or that receives replies alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silence;

impl Source for Silence {
    fn next(&mut self, _frame: &mut Vec<u8>) -> Option<Arrival> {
        None
    }
}

impl<S: Source + ?Sized> Source for Box<S> {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        (**self).next(frame)
    }

    fn is_fed(&self) -> bool {
        (**self).is_fed()
    }

    fn progress(&self) -> Option<f64> {
        (**self).progress()
    }
}
