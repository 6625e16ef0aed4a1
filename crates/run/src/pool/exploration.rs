//! One lane and three members that sleep, for each way in which tasks wait, under many schedules: every task has its outcome, and
//! no task waits beside members that all sleep.

use rheostat_base::choice::Outstanding;
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicBool, Ordering};
use shuttle::{Config, Runner, thread};

use super::channel::{Answer, Task};
use super::member::Seat;
use super::{Lost, PoolConfig, PoolQueueing, connect};

const SCHEDULES: usize = 500;
const MEMBERS: usize = 3;
const TASKS: u32 = 7;

/// A member that does all it finds, until told to stop.
fn member(mut seat: Seat<u32, u32>, stop: &AtomicBool) {
    loop {
        let stops = stop.load(Ordering::SeqCst);
        let mut found = false;
        while let Some(Task { place, task }) = seat.channels[0].next() {
            found = true;
            seat.stop_looking();
            // Room for others between taking a task and answering it.
            thread::yield_now();
            seat.channels[0].reply(Answer { place, outcome: Ok(task + 100) });
        }
        if stops && !found {
            return;
        }
        seat.look();
        thread::yield_now();
    }
}

fn run(scheduler: impl Scheduler + 'static, queueing: PoolQueueing, stops_early: bool) {
    let model = move || {
        let config = PoolConfig { queueing, ..PoolConfig::new(MEMBERS, 1, 2) };
        let (seats, mut clients) = connect(&config, || Ok(None)).expect("a pool");
        let mut client = clients.pop().expect("a client");
        let stop = Arc::new(AtomicBool::new(false));
        let members: Vec<_> = seats
            .into_iter()
            .map(|seat| {
                let stop = stop.clone();
                thread::spawn(move || member(seat, &stop))
            })
            .collect();
        let (mut next, mut seen) = (0, [0; TASKS as usize]);
        let mut lost = 0;
        while seen.contains(&0) {
            if stops_early && next == 4 {
                stop.store(true, Ordering::SeqCst);
            }
            while next < TASKS && client.submit(next, next << 30, next).is_ok() {
                next += 1;
            }
            client.ring();
            client.collect();
            while let Some((number, outcome)) = client.next_outcome() {
                seen[number as usize] += 1;
                match outcome {
                    Ok(result) => assert_eq!(result, number + 100, "a task's own result"),
                    Err(why) => {
                        assert_eq!(why, Lost::Ended);
                        lost += 1;
                    }
                }
            }
            if client.has_ended() && client.is_empty() {
                // Those that were never given.
                (next..TASKS).for_each(|number| seen[number as usize] += 1);
                next = TASKS;
            }
            thread::yield_now();
        }
        assert_eq!(seen, [1; TASKS as usize], "each has one outcome");
        assert!(stops_early || lost == 0, "{lost} lost");
        stop.store(true, Ordering::SeqCst);
        members.into_iter().for_each(|member| member.join().expect("it ends"));
        assert!(client.is_empty());
    };
    Runner::new(scheduler, Config::new()).run(model);
}

#[test]
fn every_task_has_one_outcome_whatever_the_schedule() {
    let all = [
        PoolQueueing::Central(Outstanding::ONE),
        PoolQueueing::Central(Outstanding::TWO),
        PoolQueueing::PerMember,
        PoolQueueing::Stealing { burst: 2 },
    ];
    for queueing in all {
        for stops_early in [false, true] {
            run(RandomScheduler::new(SCHEDULES), queueing, stops_early);
            run(PctScheduler::new(3, SCHEDULES), queueing, stops_early);
        }
    }
}
