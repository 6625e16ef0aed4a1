//! What clients do for a while: nothing, as many requests as are answered, or requests at moments that are drawn before.

use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rheostat_base::Time;
use rheostat_load::{ArrivalProcess, Arrivals};

/// What clients do.
#[derive(Debug)]
pub(crate) enum Plan {
    /// Nothing new.
    Idle,
    /// As soon as fewer than so many requests are under way in a receive queue, its next client makes one.
    Closed {
        /// Requests under way.
        under_way: u32,
    },
    /// Requests become due, whatever becomes of others.
    Open(Schedule),
}

/// A request that becomes due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScheduledArrival {
    /// When, in nanoseconds from the start of the schedule.
    pub(super) due: u64,
    /// Of which client.
    pub(super) client: u32,
}

/// Moments drawn ahead, by receive queue.
#[derive(Debug)]
pub(crate) struct Schedule {
    pub(super) queues: Vec<Vec<ScheduledArrival>>,
    /// When it starts, in nanoseconds of the clock of the run.
    pub(super) start: u64,
    /// Decides about service times.
    pub(super) seed: u64,
}

/// How requests arrive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offered {
    pub(crate) process: ArrivalProcess,
    /// Of all clients together.
    pub(crate) per_second: f64,
    /// For how long.
    pub(crate) span: Duration,
    pub(crate) seed: u64,
}

impl Schedule {
    /// Draws every request: a moment of the process, on a client that is picked uniformly. Takes 16 bytes for each.
    pub(super) fn draw(offered: &Offered, queue_of: &[u16], queues: usize) -> Schedule {
        let Offered { process, per_second, span, seed } = *offered;
        let mut random = SmallRng::seed_from_u64(seed ^ 0xc11e_4175);
        let expected = per_second * span.as_secs_f64() / queues as f64;
        let room = (1.1 * expected) as usize + 64;
        let mut by_queue: Vec<Vec<ScheduledArrival>> =
            (0..queues).map(|_| Vec::with_capacity(room)).collect();
        let arrivals = Arrivals::new(process, per_second, 0, seed);
        let span = span.as_nanos() as u64;
        for due in arrivals.take_while(|due| *due < span) {
            let client = random.random_range(0..queue_of.len());
            by_queue[usize::from(queue_of[client])]
                .push(ScheduledArrival { due, client: client as u32 });
        }
        Schedule { queues: by_queue, start: 0, seed }
    }

    /// The same from `start` on.
    pub(crate) fn starting(self, start: Time) -> Schedule {
        Schedule { start: start.as_nanos(), ..self }
    }

    /// Requests in all.
    pub(crate) fn requests(&self) -> usize {
        self.queues.iter().map(Vec::len).sum()
    }
}

/// What decides about the service time of the request of `client` that is due at `due`: the same under every scheduler.
#[inline]
pub(super) fn draw_of(seed: u64, due: u64, client: u32) -> u64 {
    // The finalizer of SplitMix64.
    let mut bits = seed ^ due.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(client) << 40;
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(seed: u64) -> Offered {
        Offered {
            process: ArrivalProcess::Exponential,
            per_second: 1e6,
            span: Duration::from_millis(200),
            seed,
        }
    }

    #[test]
    fn a_schedule_has_its_rate_its_span_and_clients_alike() {
        let queue_of: Vec<u16> = (0..8).map(|client| client / 4).collect();
        let schedule = Schedule::draw(&offered(1), &queue_of, 2);
        // 200,000 requests; five standard deviations.
        assert!((197_800..202_200).contains(&schedule.requests()), "{}", schedule.requests());
        let mut counts = [0_u32; 8];
        for (queue, arrivals) in schedule.queues.iter().enumerate() {
            assert!(arrivals.is_sorted_by_key(|arrival| arrival.due));
            for arrival in arrivals {
                assert_eq!(usize::from(queue_of[arrival.client as usize]), queue);
                assert!(arrival.due < 200_000_000);
                counts[arrival.client as usize] += 1;
            }
        }
        assert!(counts.iter().all(|count| (24_200..25_800).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_seed_has_one_schedule_and_one_draw() {
        let queue_of = [0, 0, 0];
        let of = |seed| Schedule::draw(&offered(seed), &queue_of, 1).queues;
        assert_eq!(of(4), of(4));
        assert_ne!(of(4), of(5));
        assert_eq!(draw_of(1, 2, 3), draw_of(1, 2, 3));
        let draws = (0..100_000).map(|due| draw_of(1, due, 3) as f64 / u64::MAX as f64);
        let mean = draws.sum::<f64>() / 1e5;
        assert!((mean - 0.5).abs() < 0.005, "{mean}");
    }
}
