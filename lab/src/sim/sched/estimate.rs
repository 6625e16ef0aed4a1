//! Percentiles, and how far they may be off.

use super::meter::{SimLatencies, quantile_us};
use super::source::RequestSource;
use super::system::System;

/// How long is simulated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Precision {
    /// Requests of a batch at first.
    pub(super) batch: u64,
    /// Requests after which half as good a margin is good enough; eight times as many end a run in any case.
    pub(super) most: u64,
    /// Simulated until the percentile is known so well: half of its interval of 95 % by the percentile.
    pub(super) margin: f64,
    /// The percentile, as a share.
    pub(super) percentile: f64,
}

/// Batches that a run is divided into.
pub(super) const BATCHES: usize = 20;
/// The 97.5th percentile of Student's t with 19 degrees of freedom, by tables.
const T: f64 = 2.093;

impl Precision {
    /// As many requests in any case.
    pub(super) fn fixed(batch: u64) -> Precision {
        Precision { batch, most: 0, margin: f64::INFINITY, percentile: 0.999 }
    }

    /// Whether so many requests are enough, which give this margin.
    fn is_reached(&self, margin: f64, requests: u64) -> bool {
        margin <= self.margin
            || (requests >= self.most && margin <= 2.0 * self.margin)
            || requests >= 8 * self.most
    }
}

/// What requests took.
#[derive(Clone, Debug)]
pub(super) struct SchedEstimate {
    pub(super) latencies: SimLatencies,
    /// The same by batch.
    pub(super) batches: Vec<SimLatencies>,
    /// Half of the interval of 95 % by the percentile that was asked for.
    pub(super) margin: f64,
    /// Requests that left per second.
    pub(super) throughput: f64,
    /// The share of replies that waited for an earlier one of their connection.
    pub(super) waited_for_order: f64,
    /// Requests simulated, those of the warm-up included.
    pub(super) simulated: u64,
    /// By batch, in nanoseconds: the mean time in the service beyond that in the application.
    pub(super) waits: Vec<f64>,
    /// By batch, in microseconds: the mean latency of short and of long requests.
    #[cfg(test)]
    pub(super) means: Vec<(f64, f64)>,
}

/// Simulates until the percentile is known as well as was asked for.
///
/// A run is divided into 20 batches one after the other; their percentiles differ by chance, from which the interval follows. If that is too
/// wide, each two batches become one, and as many requests are simulated again. Neighbouring batches are nearly independent where a
/// batch is much longer than a queue remembers, which is a second reason for making them longer.
pub(super) fn estimate<S: System>(
    system: &mut S,
    source: &mut RequestSource,
    precision: &Precision,
) -> SchedEstimate {
    run(system, source, 2 * precision.batch);
    let start = system.state().meter.last;
    let mut simulated = system.state().meter.completed;
    let (mut batch, mut waited_for_order) = (precision.batch, 0);
    let mut batches: Vec<SimLatencies> = Vec::with_capacity(BATCHES);
    let mut waits = Vec::with_capacity(BATCHES);
    #[cfg(test)]
    let mut means = Vec::new();
    loop {
        while batches.len() < BATCHES {
            system.state_mut().meter.clear();
            run(system, source, batch);
            let meter = &system.state().meter;
            batches.push(meter.latencies.clone());
            waits.push((meter.sojourn - meter.service) / meter.completed.max(1) as f64 / 1e3);
            #[cfg(test)]
            means.push((meter.latencies.short.mean() / 1e3, meter.latencies.long.mean() / 1e3));
            simulated += meter.completed;
            waited_for_order += meter.waited_for_order;
        }
        let mut latencies = SimLatencies::new();
        batches.iter().for_each(|batch| latencies.add(batch));
        let margin = margin(&batches, &latencies, precision.percentile);
        if precision.is_reached(margin, latencies.len()) {
            let counted = latencies.len() as f64;
            let seconds = (system.state().meter.last - start) as f64 / 1e12;
            return SchedEstimate {
                margin,
                throughput: counted / seconds,
                waited_for_order: waited_for_order as f64 / counted,
                latencies,
                batches,
                simulated,
                waits,
                #[cfg(test)]
                means,
            };
        }
        let mut pairs = Vec::with_capacity(BATCHES);
        let mut singles = batches.drain(..);
        while let (Some(mut first), Some(second)) = (singles.next(), singles.next()) {
            first.add(&second);
            pairs.push(first);
        }
        drop(singles);
        batches = pairs;
        waits = waits.chunks(2).map(|pair| pair.iter().sum::<f64>() / pair.len() as f64).collect();
        #[cfg(test)]
        means.clear();
        batch *= 2;
    }
}

/// Simulates until so many replies more have left.
pub(super) fn run<S: System>(system: &mut S, source: &mut RequestSource, replies: u64) {
    let end = system.state().meter.completed + replies;
    while system.state().meter.completed < end {
        let next = system.state().events.next();
        if source.next_at() <= next.time() {
            system.arrive(&source.take());
        } else {
            system.advance(next);
        }
    }
}

/// Half of the interval of 95 % by the percentile.
fn margin(batches: &[SimLatencies], all: &SimLatencies, percentile: f64) -> f64 {
    let of = |latencies: &SimLatencies| quantile_us(&latencies.all(), percentile);
    let value = of(all);
    let squares: f64 = batches.iter().map(|batch| (of(batch) - value).powi(2)).sum();
    let count = batches.len() as f64;
    T * (squares / (count - 1.0) / count).sqrt() / value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_when_the_percentile_is_known_or_after_many_requests() {
        let precision = Precision { batch: 1, most: 100, margin: 0.05, percentile: 0.999 };
        assert!(precision.is_reached(0.05, 1) && !precision.is_reached(0.06, 99));
        assert!(precision.is_reached(0.06, 100) && !precision.is_reached(0.11, 799));
        assert!(precision.is_reached(0.11, 800));
        assert!(Precision::fixed(1).is_reached(f64::NAN, 20));
    }
}
