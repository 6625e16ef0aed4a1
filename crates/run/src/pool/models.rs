//! A lane and members under every interleaving.

use loom::thread;
use rheostat_base::choice::Outstanding;

use super::channel::{Answer, Back, Lost, Task};
use super::member::Seat;
use super::{PoolClient, PoolConfig, PoolQueueing, connect};
use crate::notifier::EventNotifier;

type Box32 = Box<u32>;
type Client = PoolClient<u32, Box32, Box32>;

fn pool(members: usize, depth: usize, queueing: PoolQueueing) -> (Vec<Seat<Box32, Box32>>, Client) {
    let config = PoolConfig { queueing, ..PoolConfig::new(members, 1, depth) };
    let (seats, mut clients) = connect(&config, || Ok(None)).expect("a pool");
    (seats, clients.pop().expect("a client"))
}

fn answer(back: &mut Back<Box32, Box32>, Task { place, task }: Task<Box32>) {
    back.reply(Answer { place, outcome: Ok(Box::new(*task * 10)) });
}

/// A lane gives three tasks to a member that may hold two, and that ends after two of them. Each has one outcome, in order: those
/// that were done with their results, the others as lost, none of those done among them. Fails when the end is stored or read
/// without its ordering, and when it is read after the replies.
#[test]
fn tasks_have_one_outcome_though_the_member_ends() {
    loom::model(|| {
        let (mut seats, mut client) = pool(1, 2, PoolQueueing::Central(Outstanding::TWO));
        let mut seat = seats.pop().expect("a seat");
        let member = thread::spawn(move || {
            let mut done = 0;
            while done < 2 {
                let back = &mut seat.channels[0];
                match back.next() {
                    Some(task) => {
                        answer(back, task);
                        done += 1;
                    }
                    None => thread::yield_now(),
                }
            }
        });
        let (mut next, mut outcomes) = (1, Vec::new());
        while outcomes.len() < 3 {
            while next <= 3 && client.submit(next, 0, Box::new(next)).is_ok() {
                next += 1;
            }
            client.collect();
            outcomes.extend(std::iter::from_fn(|| client.next_outcome()));
            if client.has_ended() && client.is_empty() && next <= 3 {
                // The end was seen before the third task was given: it is refused.
                outcomes.push((next, Err(Lost::Ended)));
                next += 1;
            }
            thread::yield_now();
        }
        let outcomes: Vec<_> = outcomes
            .into_iter()
            .map(|(number, outcome)| (number, outcome.map(|result| *result)))
            .collect();
        assert_eq!(outcomes, [(1, Ok(10)), (2, Ok(20)), (3, Err(Lost::Ended))]);
        member.join().unwrap();
    });
}

/// Two tasks are in the queue of a member that takes one and ends; another member steals, once. Each task has one outcome, and
/// what neither did is lost, not forgotten.
#[test]
fn a_theft_from_a_member_that_ends_loses_no_task() {
    loom::model(|| {
        let (mut seats, mut client) = pool(2, 2, PoolQueueing::Stealing { burst: 2 });
        client.submit(1, 0, Box::new(1)).unwrap();
        client.submit(2, 0, Box::new(2)).unwrap();
        let once = |mut seat: Seat<Box32, Box32>| {
            let back = &mut seat.channels[0];
            if let Some(task) = back.next() {
                answer(back, task);
            }
        };
        let (thief, owner) = (seats.pop().expect("a thief"), seats.pop().expect("an owner"));
        let thief = thread::spawn(move || once(thief));
        once(owner);
        let mut outcomes = Vec::new();
        while outcomes.len() < 2 {
            client.collect();
            outcomes.extend(std::iter::from_fn(|| client.next_outcome()));
            thread::yield_now();
        }
        thief.join().unwrap();
        outcomes.sort_by_key(|(number, _)| *number);
        let done = |(number, outcome): (u32, Result<Box32, Lost>)| match outcome {
            Ok(result) => assert_eq!(*result, number * 10),
            Err(lost) => assert_eq!(lost, Lost::Ended),
        };
        assert!(
            outcomes.iter().any(|(_, outcome)| outcome.is_ok()),
            "the owner has taken one, or the thief"
        );
        outcomes.into_iter().for_each(done);
        assert!(client.is_empty());
    });
}

/// A member looks and finds a task, while the lane adds another and wakes nobody as somebody looks: then the member wakes the one
/// that sleeps. Fails when the fence in `Team::wake` or that in `Thief::stop_looking` is weakened to acquire and release.
#[test]
fn a_task_that_wakes_nobody_is_seen_by_who_stops_looking() {
    loom::model(|| {
        let (mut seats, mut client) = team_of(2);
        let mut second = seats.pop().expect("a second member");
        let mut first = seats.pop().expect("a first one");
        let (team, asleep) = (client.team(), second.state());
        assert!(second.prepare_sleep());
        client.submit(1, 0, Box::new(1)).unwrap();
        first.look();
        let member = thread::spawn(move || {
            let task = first.channels[0].next();
            first.stop_looking();
            (first, task.is_some())
        });
        client.submit(2, 0, Box::new(2)).unwrap();
        team.wake(0);
        let (_first, took) = member.join().unwrap();
        assert!(took);
        // One waits, and whoever is woken is not asleep any more.
        let sleeps = asleep.notifier().is_some_and(|notifier| notifier.wake());
        assert!(!sleeps, "a task waits beside a sleeper, and nobody looks");
    });
}

/// A member looks, finds nothing, and sleeps, while the lane adds a task: it is woken, or sees it. Fails when the fence in
/// `Team::wake` is weakened to acquire and release, and when the member stops looking behind the announcement of its sleep.
#[test]
fn a_task_wakes_a_member_that_looked_or_is_seen_by_it() {
    loom::model(|| {
        let (mut seats, mut client) = team_of(1);
        let (team, mut seat) = (client.team(), seats.pop().expect("a member"));
        seat.look();
        let member = thread::spawn(move || (seat.prepare_sleep(), seat));
        client.submit(1, 0, Box::new(1)).unwrap();
        let woken = team.wake(0);
        let (sleeps, _seat) = member.join().unwrap();
        assert!(!sleeps || woken == 1, "a task waits beside a sleeper");
    });
}

/// Members that steal one task at a time, and can be woken.
fn team_of(members: usize) -> (Vec<Seat<Box32, Box32>>, Client) {
    let queueing = PoolQueueing::Stealing { burst: 1 };
    let config = PoolConfig { queueing, ..PoolConfig::new(members, 1, 2) };
    let (seats, mut clients) = connect(&config, || EventNotifier::new().map(Some)).expect("a pool");
    (seats, clients.pop().expect("a client"))
}
