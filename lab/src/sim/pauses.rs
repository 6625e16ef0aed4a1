//! Moments in which the machine does not let a lane run.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Exp1};

use crate::noise::Noise;

/// The pauses of one lane: drawn from those that were measured, at times that know nothing of each other.
#[derive(Debug)]
pub(super) struct Pauses {
    /// From the end of a pause to the start of the next, on average; infinite on a quiet machine.
    apart: f64,
    /// Lengths in nanoseconds, each the most of its bin, with how many were no longer.
    bins: Vec<(f64, u64)>,
    random: SmallRng,
    start: u64,
    length: u64,
}

impl Pauses {
    /// A machine that always runs.
    pub(super) fn none() -> Pauses {
        let random = SmallRng::seed_from_u64(0);
        Pauses { apart: f64::INFINITY, bins: Vec::new(), random, start: u64::MAX, length: 0 }
    }

    /// Pauses as often and as long as `noise` has them.
    pub(super) fn of(noise: &Noise, seed: u64) -> Pauses {
        let mut count = 0;
        let bins = noise.gaps.iter().map(|&(us, gaps)| {
            count += gaps;
            (us * 1e3, count)
        });
        let bins: Vec<_> = bins.collect();
        if count == 0 {
            return Pauses::none();
        }
        let apart = noise.seconds * 1e9 * (1.0 - noise.share) / count as f64;
        let random = SmallRng::seed_from_u64(seed);
        let mut pauses = Pauses { apart, bins, random, start: 0, length: 0 };
        pauses.draw();
        pauses
    }

    /// When a lane that wants to do something at `now` can.
    pub(super) fn start(&mut self, now: u64) -> u64 {
        while self.start + self.length <= now {
            self.draw();
        }
        if self.start > now {
            return now;
        }
        let over = self.start + self.length;
        self.draw();
        over
    }

    /// When a lane is done that began `time` of work at `start`.
    pub(super) fn end(&mut self, start: u64, time: u64) -> u64 {
        let mut end = start + time;
        while self.start < end {
            end += self.length;
            self.draw();
        }
        end
    }

    /// The next pause, behind this one.
    fn draw(&mut self) {
        let apart: f64 = Exp1.sample(&mut self.random);
        self.start =
            self.start.saturating_add(self.length).saturating_add((apart * self.apart) as u64);
        let all = self.bins.last().map_or(0, |bin| bin.1);
        let rank = self.random.random_range(0..all.max(1));
        let bin = self.bins.partition_point(|(_, count)| *count <= rank);
        // Anywhere in its bin, each of which begins at half of its end.
        let share = 0.5 + 0.5 * self.random.random::<f64>();
        self.length = self.bins.get(bin).map_or(0, |(most, _)| (most * share) as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_take_the_share_of_the_time_that_was_measured() {
        // 1000 pauses of 0.75 ms on average within 10 s: 7.5 % of the time.
        let noise = Noise::of_gaps(&vec![750_000; 1_000], 10_000_000_000, 0);
        let mut pauses = Pauses::of(&noise, 5);
        let (mut now, step, mut paused) = (0, 10_000, 0);
        while now < 100_000_000_000 {
            let end = pauses.end(now, step);
            paused += end - now - step;
            now = end;
        }
        let share = paused as f64 / now as f64;
        // The bin has lengths from 512 to 1024 us, so 768 on average. Of 10,000 pauses the standard error
        // of the share is a hundredth: four of them.
        assert!((share - 0.0768).abs() < 0.0768 * 0.04, "{share}");
    }

    #[test]
    fn a_lane_waits_for_the_end_of_a_pause_and_a_quiet_machine_has_none() {
        let noise = Noise::of_gaps(&[1_000_000; 50], 100_000_000, 0);
        let mut pauses = Pauses::of(&noise, 1);
        let (start, length) = (pauses.start, pauses.length);
        assert_eq!(pauses.start(start + 1), start + length);
        let mut none = Pauses::none();
        assert_eq!((none.start(7), none.end(7, 10)), (7, 17));
    }
}
