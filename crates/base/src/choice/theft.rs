//! What an idle worker takes from other workers' queues.

/// Requests to take from a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theft {
    /// Whose queue.
    pub victim: usize,
    /// How many, at least 1: those at the head, which have waited longest.
    pub requests: u32,
}

/// What worker `thief`, whose own queue is empty, takes: half of the fullest other queue, and at most `burst`. `waiting` has the
/// length of each worker's queue, without what the worker has taken out to work on. `None` if nothing waits.
///
/// Half is rounded up, so a single request behind a long one can be taken. Of equally full queues it is the next after the
/// thief's, cyclically, so that several thieves meet at different queues. Lengths may be out of date: the thief takes what it
/// finds under the queue's lock, up to this number. Takes time in proportion to the number of workers.
pub fn choose_theft(thief: usize, waiting: &[u32], burst: u32) -> Option<Theft> {
    let workers = waiting.len();
    let mut fullest: Option<(usize, u32)> = None;
    for step in 1..workers {
        let victim = (thief + step) % workers;
        let length = waiting[victim];
        if length > fullest.map_or(0, |(_, most)| most) && victim != thief {
            fullest = Some((victim, length));
        }
    }
    let (victim, length) = fullest?;
    Some(Theft { victim, requests: length.div_ceil(2).min(burst.max(1)) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn half_of_the_fullest_queue_is_taken_and_at_most_a_burst() {
        let theft = |victim, requests| Some(Theft { victim, requests });
        assert_eq!(choose_theft(0, &[0, 3, 8, 2], 32), theft(2, 4));
        assert_eq!(choose_theft(0, &[0, 3, 200, 2], 32), theft(2, 32));
        assert_eq!(choose_theft(0, &[0, 1, 0], 32), theft(1, 1));
        assert_eq!(choose_theft(0, &[0, 5], 0), theft(1, 1));
        assert_eq!(choose_theft(1, &[0, 9, 0], 32), None);
        assert_eq!(choose_theft(0, &[7], 32), None);
        assert_eq!(choose_theft(0, &[], 32), None);
    }

    #[test]
    fn thieves_meet_at_different_queues_of_equal_length() {
        let waiting = [0, 4, 0, 4];
        let robbed = |thief| choose_theft(thief, &waiting, 32).map(|theft| theft.victim);
        assert_eq!((robbed(0), robbed(2)), (Some(1), Some(3)));
    }

    proptest! {
        #[test]
        fn the_choice_is_that_of_a_sorted_list(
            waiting in prop::collection::vec(0_u32..100, 1..65),
            thief in 0_usize..64,
            burst in 1_u32..40,
        ) {
            let workers = waiting.len();
            let thief = thief % workers;
            let distance = |victim: usize| (victim + workers - thief) % workers;
            let mut others: Vec<usize> = (0..workers).filter(|victim| *victim != thief).collect();
            others.sort_by_key(|victim| (u32::MAX - waiting[*victim], distance(*victim)));
            let oracle = others.first().filter(|victim| waiting[**victim] > 0).map(|victim| Theft {
                victim: *victim,
                requests: waiting[*victim].div_ceil(2).min(burst),
            });
            prop_assert_eq!(choose_theft(thief, &waiting, burst), oracle);
        }

        #[test]
        fn a_theft_leaves_the_victim_at_least_what_it_takes_but_one(
            waiting in prop::collection::vec(0_u32..1000, 2..65),
            burst in any::<u32>(),
        ) {
            if let Some(theft) = choose_theft(0, &waiting, burst) {
                let left = waiting[theft.victim] - theft.requests;
                prop_assert!(theft.requests >= 1 && theft.requests <= left + 1);
            }
        }
    }
}
