//! What a lane counts of its connections.

use rheostat_base::Counter;
use rheostat_tcp::Ignored;

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
            pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }
    };
}

impl Counters {
    /// Counts a segment that was ignored, or a part of it.
    #[cold]
    pub(crate) fn ignored(&self, why: Ignored) {
        let counter = match why {
            Ignored::Duplicate => &self.ignored_duplicate,
            Ignored::Overlap => &self.ignored_overlap,
            Ignored::OutsideWindow => &self.ignored_outside_window,
            Ignored::BeyondWindow => &self.ignored_beyond_window,
            Ignored::NoRoom => &self.ignored_no_room,
            Ignored::NoStamp | Ignored::OldStamp => &self.ignored_stamp,
            Ignored::ResetElsewhere => &self.ignored_reset,
            Ignored::StraySyn => &self.ignored_syn,
            Ignored::NoAcknowledgement | Ignored::ImplausibleAcknowledgement => {
                &self.ignored_acknowledgement
            }
        };
        counter.increment();
    }
}

counters! {
    /// Connections that this end began to open (RFC 4022, tcpActiveOpens).
    active_opens,
    /// Connections that a SYN began to open (tcpPassiveOpens).
    passive_opens,
    /// Connections that were closed at once while they were established, or after the peer had finished (tcpEstabResets).
    established_resets,
    /// Segments whose checksum or length was wrong (tcpInErrs).
    segments_in_error,
    /// Segments sent with RST, those of connections included (tcpOutRsts).
    segments_reset,
    /// Connections accepted, whose handshake was completed.
    accepted,
    /// Handshakes that were not completed, those whose place another took included.
    handshake_failed,
    /// Half-open connections whose place a later SYN took.
    half_open_evicted,
    /// SYNs answered with a cookie, of which nothing was kept.
    syn_cookies_sent,
    /// Connections opened by an acknowledgement that brought a cookie back.
    syn_cookies_accepted,
    /// Acknowledgements of no connection that brought no cookie back while some were under way.
    syn_cookies_refused,
    /// Connections that this end opened, whose handshake was completed.
    connected,
    /// Connections that this end did not get: those the peer refused or did not answer, and those that could not be tried.
    connect_failed,
    /// Of those, the ones the peer refused or did not answer.
    attempts_failed,
    /// And those for which no port was free.
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
    /// Connections reset because memory was scarce: of those that hardly moved, they had the most bytes.
    memory_closed,
    /// Segments that arrived for this machine.
    segments_in,
    /// Segments sent.
    segments_out,
    /// Segments sent again.
    retransmitted,
    /// Times at which an acknowledgement of data had not come within the retransmission timeout (RFC 6298, 5.4).
    retransmission_timeouts,
    /// ICMP errors that a segment was too big which connections believed.
    too_big,
    /// ICMP errors about connections that changed nothing.
    errors_ignored,
    /// Segments of which all had arrived before.
    ignored_duplicate,
    /// Segments of which a part had arrived before.
    ignored_overlap,
    /// Segments none of whose numbers were in the window.
    ignored_outside_window,
    /// Segments of which a part lay beyond the window.
    ignored_beyond_window,
    /// Segments whose data found no memory, or would have been one more range beyond a gap than may be.
    ignored_no_room,
    /// Segments without a time stamp where they are used, or with an old one.
    ignored_stamp,
    /// Resets at another number than the next.
    ignored_reset,
    /// Segments with SYN in a connection.
    ignored_syn,
    /// Segments that acknowledged nothing, what was not sent, or what was long ago.
    ignored_acknowledgement,
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
    /// Replies that would have taken more memory than one may.
    replies_refused,
    /// Panics of the application, each of which reset its connection.
    panics,
    /// Requests handled whose connection had ended meanwhile.
    unclaimed,
    /// Requests that no member of the pool had handled when it ended, or the run did.
    unanswered,
    /// Connections that came from other lanes with their shards.
    moved_connections,
}

impl Totals {
    /// The objects of the MIB of TCP that are counters (RFC 4022), by their names.
    pub fn mib(&self) -> [(&'static str, u64); 9] {
        [
            ("tcpActiveOpens", self.active_opens),
            ("tcpPassiveOpens", self.passive_opens),
            ("tcpAttemptFails", self.handshake_failed + self.attempts_failed),
            ("tcpEstabResets", self.established_resets),
            ("tcpInSegs", self.segments_in),
            ("tcpOutSegs", self.segments_out.saturating_sub(self.retransmitted)),
            ("tcpRetransSegs", self.retransmitted),
            ("tcpInErrs", self.segments_in_error),
            ("tcpOutRsts", self.segments_reset),
        ]
    }
}
