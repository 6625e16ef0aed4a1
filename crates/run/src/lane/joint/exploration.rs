//! Three lanes that take turns at receiving, under many schedules: no packet overtakes another of its flow, neither when it enters its
//! shard nor when it leaves, and all lanes come to an end.

use std::time::Duration;

use rheostat_base::sync::Arc;
use rheostat_base::sync::atomic::{AtomicBool, Ordering};
use rheostat_io::layer::shared_receive::Sharing;
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, Runner, thread};

use super::fixture::{LANES, NOW, Turns};

const SCHEDULES: usize = 300;

/// What lanes leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sabotage {
    None,
    /// Packets enter shards in any order.
    WithoutTickets,
    /// Lanes enter shards of which another lane has segments to send.
    WithoutMarks,
}

/// Lanes empty their queues. Packets wait in two of them, so that one lane has nothing of its own.
fn empty(sharing: Sharing, sabotage: Sabotage) {
    let mut turns = Turns::new(sharing, [6, 3, 0]);
    let packets = 9;
    let done = Arc::new(AtomicBool::new(false));
    let lanes: Vec<_> = std::mem::take(&mut turns.lanes)
        .into_iter()
        .map(|mut lane| {
            lane.joint.is_sabotaged = sabotage == Sabotage::WithoutTickets;
            if sabotage == Sabotage::WithoutMarks {
                lane.shards.ignore_unsent();
            }
            let (queues, done) = (turns.queues.clone(), done.clone());
            thread::spawn(move || {
                let mut now = NOW;
                while !done.load(Ordering::Relaxed) {
                    // Clocks of lanes that are polled more often run ahead, so these send for the others.
                    now += Duration::from_micros(40);
                    lane.poll(now);
                    if Turns::sent(&queues) == packets {
                        done.store(true, Ordering::Relaxed);
                    }
                    thread::yield_now();
                }
                lane
            })
        })
        .collect();
    turns.lanes = lanes.into_iter().map(|lane| lane.join().unwrap()).collect();
    assert_eq!(turns.lanes.len(), LANES);
    assert_eq!(turns.finish(), []);
}

fn explore(scheduler: impl Scheduler + 'static, sharing: Sharing, sabotage: Sabotage) {
    let mut config = Config::new();
    // Lanes need more than shuttle's coroutines have by default.
    config.stack_size = 1 << 20;
    Runner::new(scheduler, config).run(move || empty(sharing, sabotage));
}

#[test]
fn lanes_of_a_central_queue_keep_flows_in_order_under_any_schedule() {
    explore(RandomScheduler::new_from_seed(1, SCHEDULES), Sharing::CENTRAL, Sabotage::None);
    explore(PctScheduler::new_from_seed(2, 3, SCHEDULES), Sharing::CENTRAL, Sabotage::None);
}

#[test]
fn lanes_that_steal_keep_flows_in_order_under_any_schedule() {
    for sharing in [Sharing::STEALING, Sharing::Stealing { pop: 2, steal: 2 }] {
        explore(RandomScheduler::new_from_seed(3, SCHEDULES), sharing, Sabotage::None);
        explore(PctScheduler::new_from_seed(4, 3, SCHEDULES), sharing, Sabotage::None);
    }
}

#[test]
#[should_panic(expected = "Reordered")]
fn a_central_queue_without_tickets_is_found_out() {
    explore(
        RandomScheduler::new_from_seed(1, 10 * SCHEDULES),
        Sharing::CENTRAL,
        Sabotage::WithoutTickets,
    );
}

#[test]
#[should_panic(expected = "Reordered")]
fn stealing_without_tickets_is_found_out() {
    explore(
        RandomScheduler::new_from_seed(1, 10 * SCHEDULES),
        Sharing::STEALING,
        Sabotage::WithoutTickets,
    );
}

#[test]
#[should_panic(expected = "packets left behind younger ones")]
fn segments_that_leave_in_any_order_are_found_out() {
    explore(
        RandomScheduler::new_from_seed(1, 10 * SCHEDULES),
        Sharing::CENTRAL,
        Sabotage::WithoutMarks,
    );
}
