//! Timed: threads.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rheostat_base::{DeviceId, DropReason, ShardId, Time};
use rheostat_io::layer::shared_receive::Sharing;
use rheostat_packet::BURST;

use super::fixture::{LANES, NOW, Turns};
use crate::crew::{Crew, LaneNotifier};
use crate::lane::migration::fixture::Ordered;
use crate::lane::{Batch, Lane, Output};
use crate::pool::AnyPoolClient;
use crate::service::{DeferredWork, Service};
use crate::shard_set::{Entry, ShardSet, Visit};

/// Puts off a piece of work for each packet, which it expects to take long or not.
struct PutOff {
    work: usize,
    is_long: bool,
}

impl Service for PutOff {
    fn process(&mut self, batch: &mut Batch, shards: &mut ShardSet, out: &mut Output) {
        self.work += batch.len();
        Ordered.process(batch, shards, out);
    }

    fn deferred(&mut self) -> Option<&mut dyn DeferredWork> {
        Some(self)
    }
}

impl DeferredWork for PutOff {
    fn work(&mut self, _: &mut Output) -> bool {
        let works = self.work > 0;
        self.work = self.work.saturating_sub(1);
        works
    }

    fn expects_long_work(&mut self) -> bool {
        self.is_long && self.work > 0
    }

    fn settle(&mut self, _: &mut ShardSet, _: &mut Output) {}
}

#[test]
fn a_lane_that_begins_long_work_wakes_another_that_sleeps() {
    for is_long in [false, true] {
        let service = |_| Box::new(PutOff { work: 0, is_long }) as Box<dyn Service>;
        let mut turns = Turns::running(Sharing::CENTRAL, [1, 0, 0], service);
        let crew = Crew::bound(LANES).unwrap();
        turns.lanes.iter_mut().for_each(|lane| lane.wake_by(crew.lane_notifiers(LANES)));
        (1..LANES).for_each(|worker| crew.notifier(worker).prepare_park());
        assert_eq!(turns.lanes[0].poll(NOW).packets, 1);
        // One that was not woken is now.
        let asleep: Vec<_> = (1..LANES).filter(|worker| crew.notifier(*worker).wake()).collect();
        assert_eq!(asleep.len(), if is_long { LANES - 2 } else { LANES - 1 }, "{asleep:?}");
        assert_eq!(turns.finish(), []);
    }
}

/// Puts off a piece of work for a packet. Another lane has the shard for which its outcome is until the lane looks for more work, and
/// the outcome brings such.
struct Chained {
    work: usize,
    done: Arc<AtomicUsize>,
    unsettled: Option<ShardId>,
    /// Those of the other lane.
    other: Arc<Mutex<ShardSet>>,
}

impl Service for Chained {
    fn process(&mut self, batch: &mut Batch, shards: &mut ShardSet, out: &mut Output) {
        self.work += batch.len();
        Ordered.process(batch, shards, out);
    }

    fn deferred(&mut self) -> Option<&mut dyn DeferredWork> {
        Some(self)
    }
}

impl DeferredWork for Chained {
    fn work(&mut self, _: &mut Output) -> bool {
        let mut other = self.other.lock().unwrap();
        if self.work == 0 {
            other.leave();
            return false;
        }
        self.work -= 1;
        if self.done.fetch_add(1, Ordering::Relaxed) == 0 {
            assert_eq!(other.enter(ShardId(1)), Entry::Entered);
            self.unsettled = Some(ShardId(1));
        }
        true
    }

    fn unsettled(&mut self) -> Option<ShardId> {
        self.unsettled
    }

    fn settle(&mut self, _: &mut ShardSet, _: &mut Output) {
        self.unsettled = None;
        self.work += 1;
    }
}

#[test]
fn work_that_an_outcome_brings_is_done_though_its_shard_was_elsewhere() {
    let (done, other) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(ShardSet::new(0))));
    let mut turns = Turns::running(Sharing::CENTRAL, [1, 0, 0], |_| {
        let (done, other) = (done.clone(), other.clone());
        Box::new(Chained { work: 0, done, unsettled: None, other })
    });
    std::mem::swap(&mut turns.lanes[1].shards, &mut other.lock().unwrap());
    assert_eq!(turns.lanes[0].poll(NOW).packets, 1);
    assert_eq!(done.load(Ordering::Relaxed), 2);
    std::mem::swap(&mut turns.lanes[1].shards, &mut other.lock().unwrap());
    assert_eq!(turns.finish(), []);
}

/// Works for so long on any packet that the time of the poll is old.
struct Slow;

impl Service for Slow {
    fn process(&mut self, batch: &mut Batch, shards: &mut ShardSet, out: &mut Output) {
        Ordered.process(batch, shards, out);
        out.set_now(NOW + Duration::from_nanos(1));
    }
}

/// Lanes whose polls end with the first packets.
fn slow_turns(sharing: Sharing, waiting: [u32; LANES]) -> Turns {
    Turns::running(sharing, waiting, |_| Box::new(Slow))
}

#[test]
fn a_lane_takes_one_packet_at_a_time_and_any_lane_the_next() {
    let mut turns = slow_turns(Sharing::CENTRAL, [3, 0, 0]);
    let mut poll = |lane: usize| turns.lanes[lane].poll(NOW).packets;
    assert_eq!([poll(2), poll(1), poll(0), poll(0)], [1, 1, 1, 0]);
    assert_eq!(turns.finish(), []);
}

#[test]
fn a_lane_goes_on_in_a_poll_up_to_a_burst() {
    let mut turns = Turns::new(Sharing::CENTRAL, [BURST as u32 + 3, 0, 0]);
    let mut poll = |lane: usize| turns.lanes[lane].poll(NOW).packets;
    assert_eq!([poll(2), poll(1), poll(0)], [BURST, 3, 0]);
    assert_eq!(turns.finish(), []);
}

#[test]
fn what_several_visits_send_leaves_in_one_call() {
    for sharing in [Sharing::CENTRAL, Sharing::STEALING] {
        let mut turns = Turns::new(sharing, [BURST as u32, 0, 0]);
        assert_eq!(turns.lanes[0].poll(NOW).packets, BURST);
        let departures = turns.departures.clone();
        assert_eq!(departures.lock().unwrap().sends, 1, "{sharing:?}");
        // Once the outbox is empty, another lane may send on the same connections.
        assert_eq!(departures.lock().unwrap().put_off, 0, "{sharing:?}");
        assert_eq!(turns.finish(), []);
    }
}

/// Segments that a lane has gathered while its poll goes on: a visit of a shard ended, and nothing was flushed.
fn gathered() -> (Turns, ShardId) {
    let mut turns = Turns::new(Sharing::CENTRAL, [0; LANES]);
    gather(&mut turns.lanes[0], 1);
    (turns, ShardId(1))
}

fn gather(lane: &mut Lane, packets: usize) {
    assert_eq!(lane.shards.enter(ShardId(1)), Entry::Entered);
    for _ in 0..packets {
        let packet = lane.out.originate(&[0; 60]).expect("a buffer");
        lane.out.send(DeviceId(0), packet);
    }
    let unsent = lane.out.gather().expect("a packet was sent");
    lane.shards.mark_unsent(unsent);
    lane.shards.leave();
}

#[test]
fn a_lane_sends_what_another_has_to_send_of_a_shard_before_it_enters() {
    let (mut turns, shard) = gathered();
    let sends = |turns: &Turns| turns.departures.lock().unwrap().sends;
    assert_eq!(turns.lanes[1].shards.enter(shard), Entry::Elsewhere);
    assert_eq!(sends(&turns), 0);
    let blocking = turns.lanes[1].shards.take_blocked_by().expect("lane 0");
    turns.lanes[1].out.send_for(blocking);
    assert_eq!(sends(&turns), 1);
    assert_eq!(turns.lanes[1].shards.enter(shard), Entry::Entered);
    turns.lanes[1].shards.leave();
    // The lane itself has nothing left.
    turns.lanes[0].out.flush();
    assert_eq!(sends(&turns), 1);
    assert_eq!(turns.finish(), [], "the packet is counted as handed over");
}

#[test]
fn a_lane_that_gathers_for_long_is_sent_for() {
    let (mut turns, _) = gathered();
    let poll = |turns: &mut Turns, micros: u64| {
        turns.lanes[2].poll(Time::from_nanos(micros * 1_000));
        turns.departures.lock().unwrap().sends
    };
    assert_eq!(poll(&mut turns, 50), 0);
    assert_eq!(poll(&mut turns, 51), 1);
    assert_eq!(turns.finish(), []);
}

#[test]
fn a_lane_that_panics_is_not_waited_for() {
    let (mut turns, shard) = gathered();
    // A lane that sends for another panics: nothing gives the lock back.
    let (all, own) = turns.lanes[0].shards.outboxes().expect("an outbox");
    std::mem::forget(all.outboxes()[own].try_lock());
    turns.lanes[2].shards.break_off();
    assert_eq!(turns.lanes[1].shards.enter(shard), Entry::Entered);
    assert!(all.outboxes()[own].lock().is_none(), "the owner does not wait");
    assert!(turns.lanes[1].is_quiet(), "nor does another stay awake");
}

#[test]
fn lanes_enter_shards_after_one_has_panicked() {
    let mut turns = Turns::new(Sharing::CENTRAL, [0; LANES]);
    turns.lanes[2].shards.break_off();
    gather(&mut turns.lanes[0], 1);
    assert_eq!(turns.lanes[1].shards.enter(ShardId(1)), Entry::Entered);
}

#[test]
fn a_full_outbox_that_another_lane_sends_is_not_put_off() {
    let (mut turns, shard) = gathered();
    gather(&mut turns.lanes[0], BURST - 1);
    assert_eq!(turns.lanes[1].shards.enter(shard), Entry::Elsewhere);
    turns.lanes[1].send_for_others();
    {
        let departures = turns.departures.lock().unwrap();
        assert_eq!((departures.sends, departures.put_off), (1, 0));
    }
    assert_eq!(turns.lanes[1].shards.enter(shard), Entry::Entered);
    turns.lanes[1].shards.leave();
    assert_eq!(turns.finish(), []);
}

#[test]
fn segments_for_which_a_device_has_no_room_are_dropped_by_the_lane_that_sends_them() {
    let (mut turns, shard) = gathered();
    gather(&mut turns.lanes[0], 4);
    *turns.queues[1].most.lock().unwrap() = Some(2);
    assert_eq!(turns.lanes[1].shards.enter(shard), Entry::Elsewhere);
    turns.lanes[1].send_for_others();
    let counters = turns.lanes[1].counters().sample();
    let dropped = counters.dropped[DropReason::TransmitFull as usize];
    assert_eq!((counters.handoff_in, counters.sent, dropped), (5, 2, 3));
    assert_eq!(turns.lanes[1].shards.enter(shard), Entry::Entered, "nothing of it waits any more");
    turns.lanes[1].shards.leave();
    assert_eq!(turns.finish(), []);
}

#[test]
fn no_lane_sleeps_while_another_gathers() {
    let (mut turns, _) = gathered();
    assert!(!turns.lanes[2].is_quiet() && turns.lanes[0].is_quiet());
    turns.lanes[0].out.flush();
    assert!(turns.lanes[2].is_quiet());
    assert_eq!(turns.finish(), []);
}

#[test]
fn a_lane_that_receives_while_it_gathers_wakes_another_that_sleeps() {
    for gathers in [false, true] {
        let mut turns = Turns::new(Sharing::CENTRAL, [1, 0, 0]);
        let crew = Crew::bound(LANES).unwrap();
        turns.lanes.iter_mut().for_each(|lane| lane.wake_by(crew.lane_notifiers(LANES)));
        (1..LANES).for_each(|worker| crew.notifier(worker).prepare_park());
        if gathers {
            gather(&mut turns.lanes[0], 1);
        }
        assert_eq!(turns.lanes[0].poll(NOW).packets, 1);
        let asleep = (1..LANES).filter(|worker| crew.notifier(*worker).wake()).count();
        assert_eq!(asleep, if gathers { LANES - 2 } else { LANES - 1 });
        assert_eq!(turns.finish(), []);
    }
}

#[test]
fn an_idle_lane_takes_half_of_what_waits_for_another() {
    let mut turns = slow_turns(Sharing::Stealing { pop: 1, steal: BURST }, [9, 0, 0]);
    let mut poll = |lane: usize| turns.lanes[lane].poll(NOW).packets;
    assert_eq!([poll(0), poll(1), poll(2), poll(0)], [1, 4, 2, 1]);
    assert_eq!(turns.finish(), []);
}

#[test]
fn lanes_on_threads_keep_flows_in_order() {
    for sharing in [Sharing::CENTRAL, Sharing::STEALING, Sharing::Stealing { pop: 4, steal: 2 }] {
        let mut turns = Turns::new(sharing, [0; 3]);
        for (queue, count) in turns.queues.iter().zip([3_000, 1_000, 0]) {
            queue.stamps.lock().unwrap().extend(0..count);
        }
        turns.arrived = 4_000;
        let is_over = AtomicBool::new(false);
        let queues = &turns.queues;
        std::thread::scope(|scope| {
            for lane in &mut turns.lanes {
                let is_over = &is_over;
                scope.spawn(move || {
                    while !is_over.load(Ordering::Relaxed) {
                        if lane.poll(NOW).packets == 0 {
                            std::thread::yield_now();
                        }
                        is_over.fetch_or(Turns::sent(queues) == 4_000, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(turns.finish(), [], "{sharing:?}");
    }
}

/// What became of an outcome of a pool: it entered its shard, or was given up.
type Ends = Arc<Mutex<Vec<(u16, bool)>>>;

/// Has outcomes of a pool, each for a shard.
struct Pooled {
    outcomes: VecDeque<ShardId>,
    ends: Ends,
}

impl Pooled {
    fn end(&mut self, enters: bool) {
        if let Some(id) = self.outcomes.pop_front() {
            self.ends.lock().unwrap().push((id.0, enters));
        }
    }
}

impl AnyPoolClient for Pooled {
    fn collect(&mut self) -> usize {
        self.outcomes.len()
    }

    fn ring(&mut self) {}

    fn packets(&self) -> usize {
        0
    }

    fn outstanding(&self, _: ShardId) -> usize {
        0
    }

    fn has_replies(&self) -> bool {
        !self.outcomes.is_empty()
    }

    fn wake_by(&mut self, _: LaneNotifier) {}
}

impl Service for Pooled {
    fn process(&mut self, batch: &mut Batch, shards: &mut ShardSet, out: &mut Output) {
        Ordered.process(batch, shards, out);
    }

    fn deferred(&mut self) -> Option<&mut dyn DeferredWork> {
        Some(self)
    }
}

impl DeferredWork for Pooled {
    fn pool_client(&mut self) -> Option<&mut dyn AnyPoolClient> {
        Some(self)
    }

    fn settles_by_shard(&self) -> bool {
        true
    }

    fn unsettled(&mut self) -> Option<ShardId> {
        self.outcomes.front().copied()
    }

    fn settle(&mut self, shards: &mut ShardSet, _: &mut Output) {
        while self.outcomes.front().is_some_and(|id| shards.get(*id).is_some()) {
            self.end(true);
        }
    }

    fn abandon(&mut self) {
        self.end(false);
    }
}

/// Lanes whose first has outcomes for these shards.
fn pooled(outcomes: &[u16]) -> (Turns, Ends) {
    let ends = Ends::default();
    let turns = Turns::running(Sharing::CENTRAL, [0; LANES], |lane| {
        let own = if lane.0 == 0 { outcomes } else { &[] };
        let outcomes = own.iter().copied().map(ShardId).collect();
        Box::new(Pooled { outcomes, ends: ends.clone() })
    });
    (turns, ends)
}

#[test]
fn what_a_pool_has_done_waits_for_its_shard_and_keeps_its_order() {
    let (mut turns, ends) = pooled(&[0, 1, 1, 2]);
    assert_eq!(turns.lanes[1].shards.enter(ShardId(1)), Entry::Entered);
    assert_eq!(turns.lanes[0].poll(NOW).packets, 1);
    assert_eq!(*ends.lock().unwrap(), [(0, true)], "another lane has the next shard");
    assert!(!turns.lanes[0].is_quiet(), "so the lane does not sleep");
    turns.lanes[1].shards.leave();
    assert_eq!(turns.lanes[0].poll(NOW).packets, 2, "one visit for two outcomes of a shard");
    assert_eq!(*ends.lock().unwrap(), [(0, true), (1, true), (1, true), (2, true)]);
    assert!(turns.lanes[0].is_quiet());
    // The shards were given back.
    for id in (0..3).map(ShardId) {
        assert_eq!(turns.lanes[2].shards.enter(id), Entry::Entered);
    }
    turns.lanes[2].shards.leave();
    assert_eq!(turns.finish(), []);
}

#[test]
fn what_a_pool_has_done_for_a_shard_that_a_lane_panicked_with_is_given_up() {
    let (mut turns, ends) = pooled(&[0, 1, 0]);
    let panicking = &mut turns.lanes[1];
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        assert_eq!(panicking.shards.enter(ShardId(0)), Entry::Entered);
        let _shards = Visit(&mut panicking.shards);
        panic!("while it has the shard");
    }));
    assert!(panicked.is_err());
    turns.lanes[0].poll(NOW);
    assert_eq!(*ends.lock().unwrap(), [(0, false), (1, true), (0, false)]);
}
