//! Figures of a connection.

use super::{Connection, State};

/// Figures of a connection, for listings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// The state.
    pub state: State,
    /// The congestion window.
    pub congestion_window: u32,
    /// The largest segment that is sent, options included.
    pub mss: u32,
    /// The slow-start threshold.
    pub threshold: u32,
    /// The smoothed round-trip time.
    pub round_trip: Option<std::time::Duration>,
    /// The retransmission timeout.
    pub retransmission_timeout: std::time::Duration,
    /// Segments sent again.
    pub retransmitted: u64,
    /// Segments that arrived beyond a gap.
    pub out_of_order: u64,
    /// What the peer takes beyond what it has acknowledged.
    pub send_window: u32,
    /// What the peer may send beyond what has arrived.
    pub receive_window: u32,
    /// Bytes to be read.
    pub unread: usize,
    /// Bytes to be sent or acknowledged.
    pub unacknowledged: usize,
    /// Of those, bytes that have never been sent.
    pub unsent: usize,
    /// Bytes allocated for data: at most the two buffers of the configuration.
    pub allocated: usize,
}

impl Connection {
    /// Figures for listings.
    pub fn info(&self) -> Info {
        let congestion = self.sender.congestion().get();
        Info {
            state: self.state,
            congestion_window: congestion.window(),
            mss: self.sender.mss(),
            threshold: congestion.threshold(),
            round_trip: self.sender.round_trip().smoothed(),
            retransmission_timeout: self.sender.round_trip().timeout(&self.config),
            retransmitted: self.sender.retransmitted().into(),
            out_of_order: self.receiver.out_of_order(),
            send_window: self.sender.peer_window(),
            receive_window: self.receiver.window(),
            unread: self.receiver.unread(),
            unacknowledged: self.sender.buffered(),
            unsent: self.sender.unsent(),
            allocated: self.sender.allocated() + self.receiver.allocated(),
        }
    }
}
