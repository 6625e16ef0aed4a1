//! A lane and a member under every interleaving.

use std::collections::VecDeque;

use loom::thread;
use rheostat_base::ShardId;
use rheostat_base::sync::Arc;

use super::channel::{Lost, MemberState, NotifierSlot, channel};
use super::order::Order;

const SHARD: ShardId = ShardId(0);

/// A lane gives three tasks by a line for two, and the member ends after two of them. Each is answered once,
/// in order: those that were done with their results, the others as lost, none of those done among them.
/// Fails when the end is stored or read without its ordering, and when it is read after the replies.
#[test]
fn tasks_are_answered_once_though_the_member_ends() {
    loom::model(|| {
        let state = Arc::new(MemberState::new(None));
        let (mut front, mut back) =
            channel::<Box<u32>, Box<u32>>(2, state.clone(), NotifierSlot::default());
        let member = thread::spawn(move || {
            let mut done = 0;
            while done < 2 {
                match back.next() {
                    Some(task) => {
                        back.reply(Ok(Box::new(*task * 10)));
                        done += 1;
                    }
                    None => thread::yield_now(),
                }
            }
            state.end();
            back
        });
        let mut order = Order::new(1, 4);
        let mut numbers: VecDeque<u32> = (1..=3).collect();
        let mut outcomes = Vec::new();
        while outcomes.len() < 3 {
            while let (Some(number), Some(_)) = (numbers.front(), front.load()) {
                let ticket = order.enter(SHARD, *number).expect("room for four");
                front.submit(ticket, Box::new(*number));
                numbers.pop_front();
            }
            front.collect(|ticket, outcome| order.answer(ticket, outcome));
            while let Some((number, outcome)) = order.next() {
                outcomes.push((number, outcome.map(|result| *result)));
            }
            let is_left_alone = front.load().is_none() && order.len() == 0;
            if is_left_alone {
                // The end was seen before the third task was given: it is refused.
                outcomes.extend(numbers.drain(..).map(|number| (number, Err(Lost::Ended))));
            }
            thread::yield_now();
        }
        assert_eq!(outcomes, [(1, Ok(10)), (2, Ok(20)), (3, Err(Lost::Ended))]);
        drop(member.join().unwrap());
    });
}
