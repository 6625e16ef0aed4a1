//! What stands at an end of the wire.

use rheostat_base::Time;

/// An end of the wire: it takes frames and the time, and gives frames and the time of its next work. It reads no clock.
pub trait Endpoint {
    /// Takes a frame. It may be corrupted.
    fn handle_frame(&mut self, frame: &[u8], now: Time);

    /// Does what is due: timers, and the program that uses the stack. Called after frames, and at each deadline.
    fn advance(&mut self, now: Time);

    /// The next frame to send, until there is none.
    fn poll_frame(&mut self, now: Time) -> Option<Vec<u8>>;

    /// When to call [`Endpoint::advance`] next, if no frame arrives before: later than `now`, as everything due now is done. It
    /// changes only in calls of the other methods.
    fn next_deadline(&mut self, now: Time) -> Option<Time>;

    /// Whether nothing is left for it to do. A session ends when that holds for all ends.
    fn is_done(&self) -> bool;
}

/// An end by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The stack in the middle.
    Stack,
    /// One of the clients, by its place in the list.
    Client(usize),
}
