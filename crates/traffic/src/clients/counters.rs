//! What clients have done, and what it took.

use rheostat_base::{Counter, Histogram};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The counters of one queue, written by its lane alone.
        #[derive(Debug, Default)]
        #[repr(align(128))]
        pub struct ClientCounters {
            $($(#[$doc])* pub $name: Counter,)*
            /// Nanoseconds from when a request was due to its whole reply.
            pub latency: Histogram,
        }

        /// The counters of all queues together.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct ClientTotals {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl ClientTotals {
            pub(super) fn add(&mut self, queue: &ClientCounters) {
                $(self.$name += queue.$name.get();)*
            }

            /// What was added since `earlier`.
            pub fn since(&self, earlier: &ClientTotals) -> ClientTotals {
                ClientTotals { $($name: self.$name - earlier.$name,)* }
            }
        }
    };
}

counters! {
    /// Connections opened.
    opened,
    /// Connections closed by both ends.
    closed,
    /// Requests made.
    requests,
    /// Replies that came completely.
    replies,
    /// Segments with data that came in order.
    data_segments,
    /// Acknowledgements sent by themselves.
    acknowledgements,
    /// Segments with bytes that differ from what was asked for, or that leave a gap.
    damaged,
    /// Connections that the service reset.
    reset,
    /// Connections that the service finished before the client did.
    finished_first,
    /// Segments that the service sent again.
    repeated,
    /// Segments that clients sent again.
    sent_again,
    /// Packets for no client.
    stray,
    /// Ticks of the time-stamp counter spent on clients.
    ticks,
    /// Frames that reached the lane.
    arrived,
    /// Their bytes.
    arrived_bytes,
    /// Frames for which no buffer was free.
    no_buffer,
    /// Frames that the lane sent.
    sent,
    /// Their bytes.
    sent_bytes,
}
