//! When packets of an open loop arrive: a Poisson process.

use rand::Rng;
use rand_distr::{Distribution as _, Exp1};
use rheostat_base::Time;

/// Moments with independent, exponentially distributed gaps.
#[derive(Clone, Debug)]
pub(crate) struct Poisson {
    per_second: f64,
    /// Nanoseconds; exact for the first three months.
    time: f64,
}

impl Poisson {
    /// A process of which the first moment is at zero; [`Poisson::pass`] brings a random one.
    pub(crate) fn new(per_second: f64) -> Poisson {
        Poisson { per_second, time: 0.0 }
    }

    /// The moment the process is at.
    pub(crate) fn now(&self) -> Time {
        Time::from_nanos(self.time as u64)
    }

    /// Lets a gap pass that knows nothing of the one before.
    pub(crate) fn pass(&mut self, rng: &mut impl Rng) {
        let gap: f64 = Exp1.sample(rng);
        self.time += gap * 1e9 / self.per_second;
    }
}
