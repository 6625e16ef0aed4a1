//! What a lane counts of its connections.

use rheostat_base::Counter;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The counters of a lane. The lane is the only writer; any thread may read.
        #[derive(Debug, Default)]
        #[repr(align(128))]
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)*
        }

        /// The counters of all lanes together.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Totals {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Totals {
            pub(crate) fn add(&mut self, lane: &Counters) {
                $(self.$name += lane.$name.get();)*
            }

            /// Each counter by its name.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }
    };
}

counters! {
    /// Connections accepted, whose handshake was completed.
    accepted,
    /// Handshakes that were not completed.
    handshake_failed,
    /// Connections that this end opened, whose handshake was completed.
    connected,
    /// Connections that this end did not get: those the peer refused or did not answer, and those that could not be tried.
    connect_failed,
    /// Of those, the ones for which no port was free.
    ports_exhausted,
    /// Connections that ended as both ends wished.
    finished,
    /// Connections that the peer reset.
    reset,
    /// Connections that this end reset: because of a request that made no sense, a panic, or the end of the run.
    aborted,
    /// Connections that a timeout ended: of data, of probes, or of a peer that did not finish.
    timed_out,
    /// Connections closed because they were idle.
    idle_closed,
    /// Segments that arrived for this machine.
    segments_in,
    /// Segments sent.
    segments_out,
    /// Segments sent again, of connections that are gone.
    retransmitted,
    /// ICMP errors that a segment was too big which connections believed.
    too_big,
    /// ICMP errors about connections that changed nothing.
    errors_ignored,
    /// Resets sent for segments of no connection.
    resets_sent,
    /// Bytes read by the application.
    bytes_in,
    /// Bytes written by the application.
    bytes_out,
    /// Requests handled.
    requests,
    /// Bytes that the application refused.
    refused,
    /// Panics of the application, each of which reset its connection.
    panics,
    /// Connections that came from other lanes with their shards.
    moved_connections,
}
