//! The two timeouts of Metronome: T_S after a won try, T_L after a lost one.

use std::time::Duration;

/// How long workers sleep after a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeouts {
    /// T_S follows target and load ([`short_timeout`]); T_L is fixed, and never shorter than T_S.
    Adaptive {
        /// T_L.
        long: Duration,
        /// Whether lanes shorten T_S until the mean vacation that they measure is the target. The formula alone, which is the
        /// original, gives vacations up to as long as T_S at loads between the extremes (see
        /// [`VacationLaw`](super::VacationLaw)).
        follows: bool,
    },
    /// T_L = T_S = V̄ · workers per lane, whatever the load: what the original compares with. Costs more lost tries as
    /// the load rises.
    Equal,
    /// Both are fixed, and the target counts for nothing: for measurements of the model.
    Fixed {
        /// T_S.
        short: Duration,
        /// T_L.
        long: Duration,
    },
}

impl Timeouts {
    /// T_L of the original.
    pub const LONG: Duration = Duration::from_micros(500);

    /// T_S for a lane of occupancy `rho`, for which `crew` workers care on average.
    pub fn short(self, target: Duration, crew: f64, rho: f64) -> Duration {
        match self {
            Timeouts::Adaptive { .. } => short_timeout(target, crew, rho),
            Timeouts::Equal => target.mul_f64(crew),
            Timeouts::Fixed { short, .. } => short,
        }
    }

    /// T_L of a worker whose last T_S was `short`.
    pub fn long(self, short: Duration) -> Duration {
        match self {
            Timeouts::Adaptive { long, .. } => long.max(short),
            Timeouts::Equal => short,
            Timeouts::Fixed { long, .. } => long,
        }
    }
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts::Adaptive { long: Timeouts::LONG, follows: true }
    }
}

/// T_S = V̄ · m · (1 − ρ) / (1 − ρ^m) with m workers per lane (equations 4.4.3 and 4.5.1): from m·V̄ for an idle lane,
/// which all of them look after, down to V̄ for a saturated one, which one of them does.
///
/// `crew` is m, at least 1; `rho` is between 0 and 1. At ρ = 1 it is the limit, V̄.
pub fn short_timeout(target: Duration, crew: f64, rho: f64) -> Duration {
    let log = rho.clamp(0.0, 1.0).ln();
    // Both differences lose all their digits near ρ = 1 when they are computed as written.
    let factor = if log > -1e-9 { 1.0 } else { crew * log.exp_m1() / (crew * log).exp_m1() };
    target.mul_f64(factor)
}

/// How lanes that are not parked are divided among workers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Division {
    /// Lanes that a worker tries before it sleeps: 1, or more where lanes outnumber workers.
    pub lanes_per_wake: usize,
    /// m: workers that look after a lane on average, at least 1. The original's M/N where workers are as many as lanes;
    /// where they are fewer, M · `lanes_per_wake` / N, since each comes by so much more often.
    pub workers_per_lane: f64,
}

impl Division {
    /// Of `lanes` lanes, at least one, among `workers` workers, at least one, any of which may run any lane.
    pub fn shared(workers: usize, lanes: usize) -> Division {
        let lanes_per_wake = lanes.div_ceil(workers);
        let tries = (workers * lanes_per_wake) as f64;
        Division { lanes_per_wake, workers_per_lane: tries / lanes as f64 }
    }

    /// The part of worker `worker` when lane n belongs to the workers w with w ≡ n (mod N), or, where lanes outnumber
    /// workers, to worker n mod M.
    pub fn bound(worker: usize, workers: usize, lanes: usize) -> Division {
        if workers >= lanes {
            let mates = (workers - worker % lanes).div_ceil(lanes);
            return Division { lanes_per_wake: 1, workers_per_lane: mates as f64 };
        }
        Division { lanes_per_wake: (lanes - worker).div_ceil(workers), workers_per_lane: 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V: Duration = Duration::from_micros(10);

    fn close(duration: Duration, us: f64) {
        assert!((duration.as_secs_f64() * 1e6 - us).abs() < 0.001, "{duration:?} is not {us} us");
    }

    #[test]
    fn the_short_timeout_is_the_target_divided_by_the_sum_of_powers() {
        for crew in 1..=5 {
            for rho in [0.0, 0.1, 0.5, 0.9, 0.999_999, 1.0_f64] {
                let sum: f64 = (0..crew).map(|power| rho.powi(power)).sum();
                close(short_timeout(V, f64::from(crew), rho), 10.0 * f64::from(crew) / sum);
            }
        }
    }

    #[test]
    fn the_short_timeout_has_limits_at_both_ends_and_no_0_by_0() {
        close(short_timeout(V, 2.5, 0.0), 25.0);
        close(short_timeout(V, 2.5, 1.0), 10.0);
        close(short_timeout(V, 2.5, 1.0 - 1e-15), 10.0);
        close(short_timeout(V, 2.5, 1.0 - 1e-7), 10.0);
        let timeouts: Vec<_> =
            (0..=1_000).map(|rho| short_timeout(V, 2.5, f64::from(rho) / 1e3)).collect();
        assert!(timeouts.is_sorted_by(|a, b| a >= b), "it falls as the load rises");
    }

    #[test]
    fn the_long_timeout_is_never_shorter_than_the_short_one() {
        let adaptive = Timeouts::default();
        assert_eq!(adaptive.long(V), Duration::from_micros(500));
        assert_eq!(adaptive.long(Duration::from_millis(3)), Duration::from_millis(3));
        let equal = Timeouts::Equal;
        assert_eq!(equal.short(V, 3.0, 0.7), 3 * V);
        assert_eq!(equal.long(3 * V), 3 * V);
        let fixed = Timeouts::Fixed { short: V, long: 5 * V };
        assert_eq!((fixed.short(3 * V, 2.0, 0.5), fixed.long(V)), (V, 5 * V));
    }

    #[test]
    fn lanes_are_divided_among_workers() {
        let shared = |workers, lanes| {
            let Division { lanes_per_wake, workers_per_lane } = Division::shared(workers, lanes);
            (lanes_per_wake, workers_per_lane)
        };
        assert_eq!(shared(5, 2), (1, 2.5), "M/N");
        assert_eq!(shared(1, 4), (4, 1.0));
        assert_eq!(shared(2, 3), (2, 4.0 / 3.0));
        assert_eq!(shared(2, 64), (32, 1.0));
        for (workers, lanes) in [(1, 1), (3, 2), (2, 3), (5, 2), (2, 64), (64, 2), (4, 6)] {
            // Every lane is some worker's, and the parts agree on how many have it.
            let mut mates = vec![0; lanes];
            for worker in 0..workers {
                let part = Division::bound(worker, workers, lanes);
                let own: Vec<_> = (0..lanes)
                    .filter(|lane| worker % lanes == *lane || lane % workers == worker)
                    .collect();
                assert_eq!(part.lanes_per_wake, own.len(), "worker {worker} of {workers}, {lanes}");
                own.iter().for_each(|lane| mates[*lane] += 1);
            }
            for worker in 0..workers {
                let part = Division::bound(worker, workers, lanes);
                assert_eq!(part.workers_per_lane, f64::from(mates[worker % lanes]));
            }
        }
    }
}
