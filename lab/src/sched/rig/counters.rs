//! What clients have counted, by queue.

use rheostat_base::Counter;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The counters of one end of a queue, written by the lane that has it.
        #[derive(Debug, Default)]
        #[repr(align(128))]
        pub(super) struct RigCounters {
            $($(#[$doc])* pub(super) $name: Counter,)*
        }

        /// The counters of all queues together.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(crate) struct RigTotals {
            $($(#[$doc])* pub(crate) $name: u64,)*
        }

        impl RigTotals {
            pub(super) fn add(&mut self, end: &RigCounters) {
                $(self.$name += end.$name.get();)*
            }

            /// What was added since `earlier`.
            pub(crate) fn since(&self, earlier: &RigTotals) -> RigTotals {
                RigTotals { $($name: self.$name - earlier.$name,)* }
            }
        }
    };
}

counters! {
    /// Connections opened.
    opened,
    /// Connections that the service reset or finished, or on which bytes came that were not due.
    broken,
    /// Requests put into a receive queue.
    requests,
    /// Requests that had to wait for the window of their connection.
    waited,
    /// Replies that were transmitted.
    replies,
    /// Segments that the service sent again.
    repeated,
    /// Acknowledgements sent by themselves.
    acknowledgements,
    /// Packets of the service that are for no client.
    stray,
    /// Frames for which no buffer was free: an error of the rig, since nothing is sent again.
    no_buffer,
    /// Ticks of the time-stamp counter spent on making frames and on taking them, polls that bring nothing left out.
    ticks,
    /// Frames that lanes received.
    received,
    /// Their bytes.
    received_bytes,
    /// Frames that lanes sent.
    sent,
    /// Calls by which lanes sent them: on a live device, each is a system call.
    sends,
    /// Their bytes.
    sent_bytes,
}
