//! What a lane counts. The lane is the only writer; any thread may read while it runs.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use rheostat_base::{Counter, DropCounters, DropReason};

macro_rules! lane_counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The counters of one lane, on cache lines of their own.
        #[derive(Debug, Default)]
        #[repr(align(128))]
        pub struct LaneCounters {
            $($(#[$doc])* pub $name: Counter,)*
            /// Packets dropped, by reason.
            pub dropped: DropCounters,
        }

        /// The counters of one lane, or their sum over lanes, at one moment.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct LaneSample {
            $($(#[$doc])* pub $name: u64,)*
            /// Packets dropped, indexed by [`DropReason`].
            pub dropped: [u64; DropReason::COUNT],
        }

        impl LaneCounters {
            /// Reads every counter. Exact once the lane has stopped; a moment old while it runs.
            pub fn sample(&self) -> LaneSample {
                LaneSample { $($name: self.$name.get(),)* dropped: self.dropped.sample() }
            }
        }

        impl Default for LaneSample {
            fn default() -> LaneSample {
                LaneSample { $($name: 0,)* dropped: [0; DropReason::COUNT] }
            }
        }

        impl LaneSample {
            fn combine(&self, other: &LaneSample, op: fn(u64, u64) -> u64) -> LaneSample {
                let mut dropped = self.dropped;
                for (mine, theirs) in dropped.iter_mut().zip(other.dropped) {
                    *mine = op(*mine, theirs);
                }
                LaneSample { $($name: op(self.$name, other.$name),)* dropped }
            }

            fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }
    };
}

lane_counters! {
    /// Packets received from the lane's queues.
    received,
    /// Bytes of those packets.
    received_bytes,
    /// Packets that functions made: resets, ICMP errors.
    originated,
    /// Copies that functions made of packets, beyond the first.
    copied,
    /// Packets that devices sent.
    sent,
    /// Bytes of those packets.
    sent_bytes,
    /// Packets that ended in the lane on purpose.
    consumed,
    /// Packets taken from other lanes.
    handoff_in,
    /// Packets given to other lanes.
    handoff_out,
    /// Packets that a device placed here by an old table, after their shard was given to another lane.
    late_handoff,
    /// Shards that came from other lanes.
    shards_in,
    /// Shards given to other lanes.
    shards_out,
    /// Times that the lane took a shard, which it owns together with others, to process packets.
    shard_visits,
    /// Tries for such a shard that another lane had.
    shard_retries,
    /// Packets of flows that were away, sent to the lanes that these are with. They count as given to other lanes, too.
    offloaded,
    /// Packets sent back to the homes of their flows, as they could be processed there only. They count as given to other lanes,
    /// too.
    refused,
    /// Times that a flow left for another lane.
    flows_offloaded,
    /// Packets processed after a younger packet of the same direction of their flow.
    reordered,
    /// Flows created.
    flows_created,
    /// Flows ended, for whatever reason.
    flows_ended,
    /// Flows that came with their shards from other lanes.
    flows_in,
    /// Flows that went with their shards to other lanes.
    flows_out,
    /// Handlers that panicked and were stopped there.
    panics,
    /// Polls that found no work.
    idle_polls,
    /// Polls that found work.
    busy_polls,
    /// Nanoseconds in them.
    busy_ns,
    /// Nanoseconds of the wall clock from the start of the first poll to the end of the last, polled or not.
    total_ns,
    /// Fragments now waiting for the first of their datagram; a gauge.
    held,
    /// Packets now waiting for the link address of their next hop; a gauge.
    waiting,
    /// Packets now waiting for their shard or their flow to come from another lane; a gauge.
    on_hold,
    /// Packets for which a pool now works; a gauge.
    at_pool,
    /// Packets that devices have taken and not yet sent, as far as they know; a gauge.
    transmitting,
    /// Flows that are now with other lanes; a gauge.
    flows_away,
    /// The most flows the lane has held at once; a gauge.
    flows_peak,
}

impl LaneCounters {
    /// Notes how many flows are alive in the lane, when that is more than ever before.
    pub fn note_flows(&self) {
        let ended = self.flows_ended.get() + self.flows_out.get();
        let live = (self.flows_created.get() + self.flows_in.get()).saturating_sub(ended);
        if live > self.flows_peak.get() {
            self.flows_peak.set(live);
        }
    }
}

/// Counters that may fall.
const GAUGES: [&str; 7] =
    ["held", "waiting", "on_hold", "at_pool", "transmitting", "flows_away", "flows_peak"];

impl LaneSample {
    /// Packets dropped for any reason.
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().sum()
    }

    /// Packets that stay in the lane, or wait in a device, for now.
    pub fn held_total(&self) -> u64 {
        self.held + self.waiting + self.on_hold + self.at_pool + self.transmitting
    }

    /// Flows alive.
    pub fn flows_live(&self) -> u64 {
        let ended = self.flows_ended + self.flows_out;
        (self.flows_created + self.flows_in).saturating_sub(ended)
    }

    /// Busy time ÷ wall clock, between 0 and 1.
    pub fn load(&self) -> f64 {
        if self.total_ns == 0 { 0.0 } else { self.busy_ns as f64 / self.total_ns as f64 }
    }

    /// The figures of several lanes together; `flows_peak` becomes an upper bound, because the lanes
    /// need not have peaked at the same time.
    pub fn sum<'a>(samples: impl IntoIterator<Item = &'a LaneSample>) -> LaneSample {
        samples
            .into_iter()
            .fold(LaneSample::default(), |sum, lane| sum.combine(lane, u64::wrapping_add))
    }

    /// What was counted since `earlier`; the gauges stay as they are.
    #[must_use]
    pub fn since(&self, earlier: &LaneSample) -> LaneSample {
        let difference = self.combine(earlier, u64::wrapping_sub);
        let LaneSample { held, waiting, on_hold, at_pool, .. } = *self;
        let LaneSample { transmitting, flows_away, flows_peak, .. } = *self;
        let gauges = LaneSample { held, waiting, on_hold, at_pool, ..difference };
        LaneSample { transmitting, flows_away, flows_peak, ..gauges }
    }

    /// The counters that may only grow, to compare two samples of a running lane.
    pub fn monotone(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let drops = DropReason::all().map(|r| (r.name(), self.dropped[r as usize]));
        self.named().filter(|(name, _)| !GAUGES.contains(name)).chain(drops)
    }
}

/// How many packets lanes have received, if all of them are done with: sent, consumed, dropped, or held for
/// the first of their datagram. Packets on hold for their shard, or at a pool, are not done with.
pub(crate) fn received_and_done(lanes: &[Arc<LaneCounters>]) -> Option<u64> {
    // What leaves is read before what enters: both only grow, and what has left has entered, so when
    // they are equal nothing was under way in between.
    let before = LaneSample::sum(&lanes.iter().map(|lane| lane.sample()).collect::<Vec<_>>());
    fence(Ordering::SeqCst);
    let after = LaneSample::sum(&lanes.iter().map(|lane| lane.sample()).collect::<Vec<_>>());
    let left = before.sent
        + before.consumed
        + before.held
        + before.waiting
        + before.transmitting
        + before.dropped_total()
        + before.handoff_out;
    let entered = after.received + after.originated + after.copied + after.handoff_in;
    (left == entered && before.handoff_in == after.handoff_out).then_some(after.received)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_add_and_subtract_field_by_field() {
        let counters = LaneCounters::default();
        counters.received.add(5);
        counters.held.set(2);
        counters.dropped.add(DropReason::Denied, 3);
        let early = counters.sample();
        counters.received.add(2);
        counters.held.set(1);
        let late = counters.sample();
        let since = late.since(&early);
        assert_eq!((since.received, since.held, since.dropped_total()), (2, 1, 0));
        let sum = LaneSample::sum([&early, &late]);
        assert_eq!((sum.received, sum.dropped[DropReason::Denied as usize]), (12, 6));
    }

    #[test]
    fn gauges_are_not_among_the_monotone() {
        let names: Vec<_> = LaneSample::default().monotone().map(|(name, _)| name).collect();
        assert!(names.contains(&"received") && names.contains(&"denied"));
        assert!(!names.contains(&"held"));
    }
}
