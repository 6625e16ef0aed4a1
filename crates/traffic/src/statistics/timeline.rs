//! Traffic over time, in a bounded number of intervals however long it lasts.

use rheostat_base::Time;
use serde::Serialize;

/// More intervals than this are joined in pairs.
const MOST: usize = 400;

/// Figures of equal intervals from the first packet on, to be drawn.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OverTime {
    /// The length of an interval, in seconds.
    pub interval: f64,
    /// Packets per second.
    pub packets_per_second: Vec<f64>,
    /// Flows between their first and their last packet.
    pub flows: Vec<u64>,
    /// Flows per second whose first packet came.
    pub new_flows_per_second: Vec<f64>,
}

/// Packets of each interval.
#[derive(Debug)]
pub(super) struct Timeline {
    /// Nanoseconds.
    interval: u64,
    counts: Vec<u64>,
}

impl Default for Timeline {
    fn default() -> Timeline {
        Timeline { interval: 1_000_000, counts: Vec::new() }
    }
}

impl Timeline {
    pub(super) fn count(&mut self, now: Time) {
        while now.as_nanos() / self.interval >= MOST as u64 {
            self.interval *= 2;
            self.counts = self.counts.chunks(2).map(|pair| pair.iter().sum()).collect();
        }
        let place = self.place(now);
        if place >= self.counts.len() {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] += 1;
    }

    fn place(&self, now: Time) -> usize {
        (now.as_nanos() / self.interval) as usize
    }

    /// Together with the first and last packets of all flows.
    pub(super) fn over_time(&self, flows: impl Iterator<Item = (Time, Time)>) -> OverTime {
        let mut began = vec![0_u64; self.counts.len()];
        let mut ended = began.clone();
        for (first, last) in flows {
            began[self.place(first)] += 1;
            ended[self.place(last)] += 1;
        }
        let mut open = 0;
        let at_once = began.iter().zip(&ended).map(|(began, ended)| {
            open += began;
            let here = open;
            open -= ended;
            here
        });
        let interval = self.interval as f64 / 1e9;
        let per_second = |counts: &[u64]| counts.iter().map(|n| *n as f64 / interval).collect();
        OverTime {
            interval,
            packets_per_second: per_second(&self.counts),
            flows: at_once.collect(),
            new_flows_per_second: per_second(&began),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_grow_with_the_time_and_lose_no_packet() {
        let mut timeline = Timeline::default();
        (0..1_000).for_each(|ms| timeline.count(Time::from_millis(ms)));
        let flows = [(0, 5), (3, 999), (999, 999)]
            .map(|(a, b)| (Time::from_millis(a), Time::from_millis(b)));
        let figures = timeline.over_time(flows.into_iter());
        assert_eq!((figures.interval, figures.flows.len()), (0.004, 250));
        assert!(figures.packets_per_second.iter().all(|rate| *rate == 1_000.0));
        assert_eq!((&figures.flows[..3], figures.flows[249]), (&[2, 2, 1][..], 2));
        assert_eq!(
            (figures.new_flows_per_second[0], figures.new_flows_per_second[249]),
            (500.0, 250.0)
        );
    }

    #[test]
    fn a_stamp_from_the_far_future_takes_no_more_room() {
        let mut timeline = Timeline::default();
        timeline.count(Time::ZERO);
        timeline.count(Time::NEVER);
        assert!(timeline.counts.len() <= MOST);
        assert_eq!(timeline.counts.iter().sum::<u64>(), 2);
    }
}
