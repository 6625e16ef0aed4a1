//! What a simulated lane measures of packets by class, as a lane of a run would.

use std::time::Duration;

use rheostat_measure::quantiles::rank;
use rheostat_steer::policy::{Class, ClassLoad, Waits};

/// One regular packet in so many is measured; priority packets are few, so all are.
const SAMPLE: u64 = 8;

/// Mean and variance of a stream of figures (Welford).
#[derive(Clone, Copy, Debug, Default)]
struct ClassMoments {
    count: u64,
    mean: f64,
    squares: f64,
}

impl ClassMoments {
    fn add(&mut self, figure: f64) {
        self.count += 1;
        let off = figure - self.mean;
        self.mean += off / self.count as f64;
        self.squares += off * (figure - self.mean);
    }

    /// The squared coefficient of variation.
    fn cv2(&self) -> f64 {
        if self.count < 2 || self.mean == 0.0 {
            return 0.0;
        }
        self.squares / self.count as f64 / (self.mean * self.mean)
    }
}

#[derive(Clone, Debug, Default)]
struct OfClass {
    packets: u64,
    /// When the packet before arrived.
    last: Option<u64>,
    gaps: ClassMoments,
    services: ClassMoments,
    /// Nanoseconds of sampled packets.
    waits: Vec<u64>,
}

/// The packets of one lane since the last look.
#[derive(Clone, Debug, Default)]
pub(super) struct ClassMeter {
    classes: [OfClass; Class::ALL.len()],
}

impl ClassMeter {
    /// A packet that arrived at `at` left after so many nanoseconds, of which it took `service` itself.
    pub(super) fn note(&mut self, class: Class, at: u64, latency: u64, service: u64) {
        let of = &mut self.classes[class.index()];
        of.packets += 1;
        if let Some(last) = of.last.replace(at) {
            of.gaps.add(at.abs_diff(last) as f64);
        }
        if class == Class::Priority || of.packets.is_multiple_of(SAMPLE) {
            of.services.add(service as f64);
            of.waits.push(latency.saturating_sub(service));
        }
    }

    /// What was measured, with the wait that this share of packets did not exceed; begins anew.
    pub(super) fn take(&mut self, percentile: f64) -> [Option<ClassLoad>; Class::ALL.len()] {
        self.classes.each_mut().map(|class| {
            let last = class.last;
            let of = std::mem::take(class);
            class.last = last;
            (!of.waits.is_empty()).then(|| of.load(percentile))
        })
    }
}

impl OfClass {
    fn load(mut self, percentile: f64) -> ClassLoad {
        let samples = self.waits.len();
        let rank = rank(samples, percentile).min(samples - 1);
        let (_, tail, _) = self.waits.select_nth_unstable(rank);
        let tail = Duration::from_nanos(*tail);
        let mean = Duration::from_nanos(self.waits.iter().sum::<u64>() / samples as u64);
        ClassLoad {
            packets: self.packets,
            arrival_cv2: self.gaps.cv2(),
            service_cv2: self.services.cv2(),
            service: Duration::from_nanos(self.services.mean.round() as u64),
            waits: Some(Waits { samples: samples as u64, mean, tail }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_and_percentiles_are_those_of_the_packets() {
        let mut meter = ClassMeter::default();
        // Every 10 ns, 1 to 100 ns of waiting, services of 4 and 12 ns in turn.
        for packet in 1..=100 {
            let service = if packet % 2 == 0 { 4 } else { 12 };
            meter.note(Class::Priority, 10 * packet, packet + service, service);
        }
        let [priority, regular] = meter.take(0.95);
        let ClassLoad { packets, arrival_cv2, service_cv2, service, waits } = priority.unwrap();
        assert_eq!((packets, service, regular), (100, Duration::from_nanos(8), None));
        assert!(arrival_cv2.abs() < 1e-12 && (service_cv2 - 0.25).abs() < 1e-12);
        let [mean, tail] = [50, 95].map(Duration::from_nanos);
        assert_eq!(waits, Some(Waits { samples: 100, mean, tail }));
        assert_eq!(meter.take(0.95), [None, None], "each look begins anew");
    }
}
