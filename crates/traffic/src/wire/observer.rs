//! Looks at what passes.

use rheostat_base::Time;

use super::endpoint::Side;
use super::link::Passage;

/// Sees every frame as it is sent and as it arrives, before the endpoint does.
pub trait Observer {
    /// `from` sends a frame to, or as, a client. `passage` says what the link does with it.
    fn on_sent(&mut self, from: Side, client: usize, frame: &[u8], passage: Passage, now: Time) {
        let _ = (from, client, frame, passage, now);
    }

    /// A frame reaches `to`; the other end is, or talks as, this client.
    fn on_delivered(&mut self, to: Side, client: usize, frame: &[u8], now: Time) {
        let _ = (to, client, frame, now);
    }
}

/// Looks at nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl Observer for NoObserver {}
