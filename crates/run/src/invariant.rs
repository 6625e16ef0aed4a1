//! The invariants that every run checks (see `docs/invariants.md`): no packet appears or disappears
//! without being counted, order within flows holds, every buffer comes home, and every shard has one
//! owner, or the claimants of one queue.

use rheostat_base::ShardId;
use rheostat_io::DeviceCounters;
use thiserror::Error;

use crate::account::LaneSample;
use crate::pool::MemberFailure;

/// An invariant that did not hold.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Violation {
    /// A lane's packets in and out differ.
    #[error("lane {lane}: {entered} packets came in, {left} went out, were dropped or are held")]
    LaneUnbalanced {
        /// The lane.
        lane: usize,
        /// Received, originated, copied, or taken from other lanes.
        entered: u64,
        /// Sent, consumed, held, dropped, or given to other lanes.
        left: u64,
    },
    /// Packets were lost or doubled between devices and lanes.
    #[error("devices delivered {delivered} packets, lanes received {received}")]
    Received {
        /// Arrived at devices, less those that devices dropped.
        delivered: u64,
        /// Received by lanes.
        received: u64,
    },
    /// Packets were lost or doubled on the way out.
    #[error("lanes sent {sent} packets, devices took {taken}")]
    Sent {
        /// Sent by lanes.
        sent: u64,
        /// Taken by devices.
        taken: u64,
    },
    /// Packets were lost or doubled between lanes.
    #[error("lanes handed off {given} packets, lanes took {taken}")]
    Handoff {
        /// Put on rings.
        given: u64,
        /// Taken from rings.
        taken: u64,
    },
    /// Packets of a flow overtook each other.
    #[error("{packets} packets were processed after a younger packet of their flow")]
    Reordered {
        /// How many.
        packets: u64,
    },
    /// Buffers did not come home.
    #[error("{missing} of {capacity} packet buffers did not come back to the pool")]
    BuffersLeaked {
        /// How many are missing.
        missing: usize,
        /// How many there are.
        capacity: usize,
    },
    /// A shard has no owner, or several. The claimants of one queue count as one.
    #[error("{shard} has {owners} owners")]
    Ownership {
        /// The shard.
        shard: ShardId,
        /// Lanes that hold it.
        owners: usize,
    },
    /// Packets still wait for a shard or a flow that never came.
    #[error("lane {lane}: {packets} packets wait for shards or flows that did not come")]
    Stranded {
        /// The lane.
        lane: usize,
        /// How many.
        packets: u64,
    },
    /// Flows did not come home.
    #[error("lane {lane}: {flows} flows are away and did not come home")]
    FlowsAway {
        /// The lane.
        lane: usize,
        /// How many.
        flows: u64,
    },
    /// Packets still wait for replies of a pool.
    #[error("lane {lane}: {packets} packets wait for a pool that did not reply")]
    Unanswered {
        /// The lane.
        lane: usize,
        /// How many.
        packets: u64,
    },
    /// Flows were lost or doubled.
    #[error("{created} flows were created and {ended} ended, but {live} are in the tables")]
    Flows {
        /// Flows created.
        created: u64,
        /// Flows ended.
        ended: u64,
        /// Flows found in the tables.
        live: u64,
    },
    /// A counter went back.
    #[error("lane {lane}: counter `{counter}` went back from {from} to {to}")]
    NotMonotone {
        /// The lane.
        lane: usize,
        /// The counter.
        counter: &'static str,
        /// Its value at the earlier sample.
        from: u64,
        /// Its value at the later sample.
        to: u64,
    },
    /// A worker ended by panicking; the packets it held are unaccounted for.
    #[error("worker {worker} panicked: {message}")]
    WorkerPanicked {
        /// The worker.
        worker: usize,
        /// What it said.
        message: String,
    },
    /// A worker has not ended, so that nothing is known of the packets that it and its lanes hold.
    #[error("worker {worker} is left at work that does not end, and the run without an account")]
    WorkerRunning {
        /// The worker.
        worker: usize,
    },
    /// A member of a pool ended by itself.
    #[error(transparent)]
    Member(#[from] MemberFailure),
}

/// What a run leaves behind to be checked.
#[derive(Clone, Debug, Default)]
pub struct Remains {
    /// Each lane's counters.
    pub lanes: Vec<LaneSample>,
    /// Each device's counters.
    pub devices: Vec<DeviceCounters>,
    /// Buffers home in the pool.
    pub buffers_home: usize,
    /// Buffers in the pool.
    pub buffers: usize,
    /// How many lanes hold each shard; claimants of one queue that own it together count as one.
    pub owners: Vec<usize>,
    /// Flows in the tables.
    pub flows_live: u64,
    /// How many times indirection tables were rewritten from outside: packets placed by the new entries may overtake packets of
    /// their flow that were placed by the old ones.
    pub rewrites: u64,
    /// Whether a device may place packets by old entries of its table after the fence has passed. What
    /// comes late for that reason may be overtaken, and is only counted.
    pub may_place_late: bool,
    /// Whether packets of a flow that several lanes have claimed may overtake each other, which is counted.
    pub may_reorder: bool,
}

impl Remains {
    /// Checks everything, and returns all that does not hold.
    pub fn check(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        let mut expect = |holds: bool, violation: Violation| {
            if !holds {
                found.push(violation);
            }
        };
        for (lane, c) in self.lanes.iter().enumerate() {
            let entered = c.received + c.originated + c.copied + c.handoff_in;
            let left = c.sent + c.consumed + c.held_total() + c.dropped_total() + c.handoff_out;
            expect(entered == left, Violation::LaneUnbalanced { lane, entered, left });
            expect(c.on_hold == 0, Violation::Stranded { lane, packets: c.on_hold });
            expect(c.flows_away == 0, Violation::FlowsAway { lane, flows: c.flows_away });
            expect(c.at_pool == 0, Violation::Unanswered { lane, packets: c.at_pool });
        }
        let all = LaneSample::sum(&self.lanes);
        let delivered = self.devices.iter().map(delivered).sum::<u64>();
        let received = all.received;
        expect(delivered == received, Violation::Received { delivered, received });
        let taken = self.devices.iter().map(|device| device.sent).sum::<u64>();
        expect(all.sent == taken, Violation::Sent { sent: all.sent, taken });
        let (given, taken) = (all.handoff_out, all.handoff_in);
        expect(given == taken, Violation::Handoff { given, taken });
        let is_counted_only =
            self.may_reorder || self.rewrites > 0 || (self.may_place_late && all.late_handoff > 0);
        let in_order = all.reordered == 0 || is_counted_only;
        expect(in_order, Violation::Reordered { packets: all.reordered });
        let missing = self.buffers.saturating_sub(self.buffers_home);
        expect(missing == 0, Violation::BuffersLeaked { missing, capacity: self.buffers });
        for (shard, &owners) in self.owners.iter().enumerate() {
            expect(owners == 1, Violation::Ownership { shard: ShardId(shard as u16), owners });
        }
        let (created, ended, live) = (all.flows_created, all.flows_ended, self.flows_live);
        expect(created == ended + live, Violation::Flows { created, ended, live });
        found
    }
}

/// Packets a device passed on to its queues' owners.
fn delivered(device: &DeviceCounters) -> u64 {
    device.arrived.saturating_sub(device.lost())
}

/// Compares two samples of running lanes: no counter may go back.
pub fn check_monotone(earlier: &[LaneSample], later: &[LaneSample]) -> Vec<Violation> {
    let mut found = Vec::new();
    for (lane, (before, after)) in earlier.iter().zip(later).enumerate() {
        for ((counter, from), (_, to)) in before.monotone().zip(after.monotone()) {
            if to < from {
                found.push(Violation::NotMonotone { lane, counter, from, to });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use rheostat_base::DropReason;

    fn balanced() -> Remains {
        let mut busy = LaneSample { received: 10, sent: 6, ..LaneSample::default() };
        busy.dropped[DropReason::Denied as usize] = 1;
        busy.handoff_out = 3;
        busy.flows_created = 4;
        busy.flows_ended = 1;
        let helper = LaneSample {
            received: 2,
            originated: 1,
            handoff_in: 3,
            sent: 5,
            consumed: 1,
            ..LaneSample::default()
        };
        let device = DeviceCounters {
            arrived: 14,
            queue_full: vec![1, 1],
            sent: 11,
            ..DeviceCounters::default()
        };
        Remains {
            lanes: vec![busy, helper],
            devices: vec![device],
            buffers_home: 64,
            buffers: 64,
            owners: vec![1, 1],
            flows_live: 3,
            rewrites: 0,
            may_place_late: false,
            may_reorder: false,
        }
    }

    #[test]
    fn a_balanced_run_has_no_violation() {
        assert_eq!(balanced().check(), []);
    }

    #[test]
    fn every_kind_of_imbalance_is_found() {
        let found = |spoil: fn(&mut Remains)| {
            let mut remains = balanced();
            spoil(&mut remains);
            remains.check()
        };
        use Violation as V;
        assert!(matches!(
            found(|r| r.lanes[0].consumed += 1)[..],
            [V::LaneUnbalanced { lane: 0, entered: 10, left: 11 }]
        ));
        assert!(matches!(found(|r| r.devices[0].arrived += 1)[..], [V::Received { .. }]));
        assert!(matches!(found(|r| r.devices[0].queue_full[1] += 1)[..], [V::Received { .. }]));
        assert!(matches!(found(|r| r.devices[0].sent -= 1)[..], [V::Sent { .. }]));
        let swapped = found(|r| {
            r.lanes[0].handoff_out += 1;
            r.lanes[0].sent -= 1;
            r.devices[0].sent -= 1;
        });
        assert!(matches!(swapped[..], [V::Handoff { given: 4, taken: 3 }]));
        assert!(matches!(found(|r| r.lanes[1].reordered = 2)[..], [V::Reordered { packets: 2 }]));
        assert!(matches!(
            found(|r| r.buffers_home -= 1)[..],
            [V::BuffersLeaked { missing: 1, .. }]
        ));
        assert!(matches!(found(|r| r.owners[1] = 0)[..], [V::Ownership { owners: 0, .. }]));
        assert!(matches!(found(|r| r.owners[0] = 2)[..], [V::Ownership { owners: 2, .. }]));
        assert!(matches!(found(|r| r.flows_live += 1)[..], [V::Flows { .. }]));
        let stranded = found(|r| {
            r.lanes[0].sent -= 1;
            r.lanes[0].on_hold = 1;
            r.devices[0].sent -= 1;
        });
        assert!(matches!(stranded[..], [V::Stranded { lane: 0, packets: 1 }]));
        let unanswered = found(|r| {
            r.lanes[1].consumed -= 1;
            r.lanes[1].at_pool = 1;
        });
        assert!(matches!(unanswered[..], [V::Unanswered { lane: 1, packets: 1 }]));
    }

    #[test]
    fn packets_may_overtake_each_other_once_a_table_was_rewritten() {
        let mut remains = Remains { rewrites: 1, ..balanced() };
        remains.lanes[1].reordered = 2;
        assert_eq!(remains.check(), []);
    }

    #[test]
    fn packets_may_overtake_each_other_on_lanes_that_own_shards_together() {
        let mut remains = Remains { may_reorder: true, ..balanced() };
        remains.lanes[1].reordered = 2;
        assert_eq!(remains.check(), []);
        remains.owners[1] = 0;
        let lost = Violation::Ownership { shard: ShardId(1), owners: 0 };
        assert_eq!(remains.check(), [lost], "none is lost for all that");
    }

    #[test]
    fn packets_may_be_overtaken_that_a_device_places_late() {
        let mut remains = Remains { may_place_late: true, ..balanced() };
        remains.lanes[1].reordered = 2;
        assert_eq!(remains.check(), [Violation::Reordered { packets: 2 }], "none came late");
        remains.lanes[1].late_handoff = 2;
        assert_eq!(remains.check(), []);
        remains.may_place_late = false;
        assert_eq!(remains.check(), [Violation::Reordered { packets: 2 }]);
    }

    #[test]
    fn counters_that_go_back_are_found_by_name() {
        let before = [LaneSample { received: 5, held: 3, ..LaneSample::default() }];
        let after = [LaneSample { received: 4, held: 0, ..LaneSample::default() }];
        let found = check_monotone(&before, &after);
        assert_eq!(
            found,
            [Violation::NotMonotone { lane: 0, counter: "received", from: 5, to: 4 }]
        );
    }
}
