//! Timed: threads.

use std::sync::atomic::{AtomicBool, Ordering};

use rheostat_io::layer::shared_receive::Sharing;

use super::fixture::{NOW, Turns};

#[test]
fn a_lane_takes_one_packet_at_a_time_and_any_lane_the_next() {
    let mut turns = Turns::new(Sharing::CENTRAL, [3, 0, 0]);
    let mut poll = |lane: usize| turns.lanes[lane].poll(NOW).packets;
    assert_eq!([poll(2), poll(1), poll(0), poll(0)], [1, 1, 1, 0]);
    assert_eq!(turns.finish(), []);
}

#[test]
fn an_idle_lane_takes_half_of_what_waits_for_another() {
    let mut turns = Turns::new(Sharing::STEALING, [9, 0, 0]);
    let mut poll = |lane: usize| turns.lanes[lane].poll(NOW).packets;
    assert_eq!([poll(0), poll(1), poll(2), poll(0)], [1, 4, 2, 1]);
    assert_eq!(turns.finish(), []);
}

#[test]
fn lanes_on_threads_keep_flows_in_order() {
    for sharing in [Sharing::CENTRAL, Sharing::STEALING, Sharing::Stealing { pop: 4 }] {
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
