//! When packets arrive: evenly or at random, by a rate that changes in steps.

use rand::Rng;
use rand_distr::{Distribution, Exp1};

use crate::datagrams::Spacing;

/// The moments of arrivals, in nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct VacationArrivals {
    spacing: Spacing,
    /// From when on, and how many per second; ascending.
    rates: Vec<(u64, f64)>,
    /// The next one.
    next: u64,
}

/// Later than the end of anything.
const NEVER: f64 = 1e18;

impl VacationArrivals {
    /// Arrivals from zero on at these rates; none before the first.
    pub(super) fn new(
        spacing: Spacing,
        rates: Vec<(u64, f64)>,
        random: &mut impl Rng,
    ) -> VacationArrivals {
        let mut arrivals = VacationArrivals { spacing, rates, next: 0 };
        arrivals.advance(random);
        arrivals
    }

    /// When the next packet arrives.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Goes on to the one after.
    pub(super) fn advance(&mut self, random: &mut impl Rng) {
        loop {
            let from = self.next;
            let rate = self.rates.iter().take_while(|(start, _)| *start <= from).last();
            let later = self.rates.iter().map(|(start, _)| *start).find(|start| *start > from);
            let rate = rate.map_or(0.0, |(_, rate)| *rate);
            let gap = match self.spacing {
                Spacing::Constant => 1.0,
                Spacing::Poisson => Exp1.sample(random),
            };
            let next = if rate > 0.0 { from as f64 + gap * 1e9 / rate } else { NEVER };
            match later {
                // A change of the rate before it: drawn anew from there, which is exact for a Poisson process.
                Some(later) if next > later as f64 => self.next = later,
                _ => {
                    self.next = (next.min(NEVER) as u64).max(from);
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    fn count(spacing: Spacing, rates: &[(u64, f64)], end: u64) -> usize {
        let mut random = StdRng::seed_from_u64(3);
        let mut arrivals = VacationArrivals::new(spacing, rates.to_vec(), &mut random);
        let mut count = 0;
        while arrivals.next() < end {
            count += 1;
            arrivals.advance(&mut random);
        }
        count
    }

    #[test]
    fn arrivals_are_as_many_as_the_rates_have_them() {
        let ms = 1_000_000;
        let rates = [(0, 0.0), (100 * ms, 100_000.0), (200 * ms, 500_000.0), (300 * ms, 0.0)];
        let even = count(Spacing::Constant, &rates, 400 * ms);
        assert!((59_998..=60_000).contains(&even), "{even}");
        let random = count(Spacing::Poisson, &rates, 400 * ms);
        // Four standard deviations of a Poisson distribution.
        assert!(random.abs_diff(60_000) < 980, "{random}");
        assert_ne!(random, even);
    }

    #[test]
    fn nothing_arrives_without_a_rate() {
        assert_eq!(count(Spacing::Constant, &[], u64::MAX >> 8), 0);
        assert_eq!(count(Spacing::Poisson, &[(0, 0.0)], 1 << 50), 0);
    }
}
