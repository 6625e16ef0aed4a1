//! What lanes measured by class between two looks.

use std::sync::Arc;
use std::time::Duration;

use rheostat_steer::policy::{Class, ClassLoad, ClassLoads, Waits};

use super::ClassFigures;
use super::figures::{BatchSample, MomentSample, OfClass};

/// One observer of the lanes' figures: each look returns what was measured since the look before.
#[derive(Debug)]
pub struct ClassLooks {
    /// The share of packets whose waits the tail is above.
    percentile: f64,
    /// By lane and class.
    last: Vec<[Seen; Class::ALL.len()]>,
}

/// The figures of a class at the last look.
#[derive(Clone, Debug, Default)]
struct Seen {
    packets: u64,
    gaps: MomentSample,
    services: BatchSample,
    /// The bins of the histogram that had values, ascending.
    waits: Vec<(u64, u64)>,
}

impl ClassLooks {
    /// An observer of waits at this percentile, as a share of packets.
    pub fn new(percentile: f64) -> ClassLooks {
        ClassLooks { percentile, last: Vec::new() }
    }

    /// What the lanes measured since the last look.
    pub fn take(&mut self, lanes: &[Arc<ClassFigures>]) -> ClassLoads {
        self.last.resize_with(lanes.len(), Default::default);
        let percentile = self.percentile;
        let lanes = lanes.iter().zip(&mut self.last);
        let take = |(lane, last): (&Arc<ClassFigures>, &mut [Seen; Class::ALL.len()])| {
            let mut seen = lane.classes.iter().zip(last);
            [(); Class::ALL.len()].map(|()| {
                let (class, last) = seen.next().expect("one per class");
                last.look(class, lane.knows_arrivals(), percentile)
            })
        };
        lanes.map(take).collect()
    }
}

impl Seen {
    fn look(&mut self, of: &OfClass, knows_arrivals: bool, percentile: f64) -> Option<ClassLoad> {
        let now = Seen {
            packets: of.packets.get(),
            gaps: of.gaps.sample(),
            services: of.services.sample(),
            waits: of.waits.bins().collect(),
        };
        let before = std::mem::replace(self, now);
        let packets = self.packets - before.packets;
        let services = self.services.since(before.services);
        // Without a sample, nothing is known of the packets.
        (packets > 0 && services.mean() > 0.0).then(|| ClassLoad {
            packets,
            // Where arrivals are not known, they are taken for independent.
            arrival_cv2: if knows_arrivals { self.gaps.since(before.gaps).cv2() } else { 1.0 },
            service_cv2: services.cv2(),
            service: Duration::from_nanos(services.mean().round() as u64),
            waits: waits(&self.waits, &before.waits, percentile),
        })
    }
}

/// The waits that were added between two states of a histogram.
fn waits(after: &[(u64, u64)], before: &[(u64, u64)], percentile: f64) -> Option<Waits> {
    let earlier = |value: u64| {
        let found = before.binary_search_by_key(&value, |(value, _)| *value);
        found.map_or(0, |place| before[place].1)
    };
    let added =
        || after.iter().map(|&(value, count)| (value, count.saturating_sub(earlier(value))));
    let samples: u64 = added().map(|(_, count)| count).sum();
    let rank = ((samples as f64 * percentile).ceil() as u64).max(1);
    let mut seen = 0;
    let tail = added().find(|(_, count)| {
        seen += count;
        seen >= rank
    });
    let sum: u128 = added().map(|(value, count)| u128::from(value) * u128::from(count)).sum();
    let mean = sum.checked_div(samples.into())?;
    Some(Waits {
        samples,
        mean: Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX)),
        tail: Duration::from_nanos(tail?.0),
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_look_has_what_came_since_the_last() {
        let lane = Arc::new(ClassFigures::new(0));
        let mut looks = ClassLooks::new(0.95);
        let lanes = [lane.clone()];
        assert_eq!(looks.take(&lanes), [[None, None]]);
        let of = &lane.classes[Class::Regular.index()];
        of.packets.add(400);
        of.services.add(4.0, 100.0);
        let mut gap = MomentSample::default();
        gap.add(1_000.0);
        of.gaps.add_all(gap);
        (1..=20).for_each(|wait| of.waits.record(wait));
        let [[None, Some(load)]] = looks.take(&lanes)[..] else { panic!("one class") };
        assert_eq!((load.packets, load.service), (400, Duration::from_nanos(100)));
        assert_eq!(load.arrival_cv2, 1.0, "no device knows arrivals");
        let nanos = Duration::from_nanos;
        let expected = Waits { samples: 20, mean: nanos(10), tail: nanos(19) };
        assert_eq!(load.waits, Some(expected));
        of.packets.add(8);
        of.services.add(8.0, 50.0);
        of.waits.record(40);
        let [[None, Some(load)]] = looks.take(&lanes)[..] else { panic!("one class") };
        assert_eq!((load.packets, load.service), (8, nanos(50)));
        assert_eq!(load.waits, Some(Waits { samples: 1, mean: nanos(40), tail: nanos(40) }));
        assert_eq!(looks.take(&lanes), [[None, None]]);
    }
}
