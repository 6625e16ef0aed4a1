//! What lanes that share a receive queue have counted, in the summary and in explanations.

use std::fmt;
use std::time::Duration;

use rheostat_io::{DepartureCounters, SharingCounters};
use serde::{Deserialize, Serialize};

/// A receive queue that several lanes empty at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SharedQueueMetrics {
    /// The device.
    pub device: String,
    /// The queue's number among those of the device.
    pub queue: usize,
    /// Its lanes.
    pub lanes: Vec<ClaimantMetrics>,
    /// Times that all descriptors were claimed, so that lanes found nothing to claim until the oldest claim was done.
    pub stalls: u64,
    /// How long that lasted in all, in seconds.
    pub stalled_seconds: f64,
    /// How long it lasted at most, in seconds.
    pub longest_stall_seconds: f64,
    /// How packets left, where they do so in the order of claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub departures: Option<DepartureMetrics>,
}

/// How packets left that leave in the order of claims: what claims waited for those before them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DepartureMetrics {
    /// Claims that have left.
    pub turns: u64,
    /// Half of them waited no longer, in microseconds.
    pub delay_p50_us: f64,
    /// 99 of 100 waited no longer, in microseconds.
    pub delay_p99_us: f64,
    /// None waited longer, in microseconds.
    pub longest_delay_us: f64,
}

impl DepartureMetrics {
    fn of(counters: &DepartureCounters) -> DepartureMetrics {
        let micros = |time: Duration| time.as_nanos() as f64 / 1e3;
        DepartureMetrics {
            turns: counters.turns,
            delay_p50_us: micros(counters.delay_p50),
            delay_p99_us: micros(counters.delay_p99),
            longest_delay_us: micros(counters.longest_delay),
        }
    }
}

/// One lane of a shared queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimantMetrics {
    /// Its number.
    pub lane: usize,
    /// Claims.
    pub claims: u64,
    /// Packets of those claims.
    pub packets: u64,
    /// Races for a claim that another lane won.
    pub retries: u64,
    /// Stalls that this lane was the reason of: it had the oldest claim and was not done with it.
    pub pauses: u64,
}

impl SharedQueueMetrics {
    /// The figures of all queues, whose counters come by the names of their devices and in the order of their numbers.
    pub fn of(queues: &[(String, SharingCounters)]) -> Vec<SharedQueueMetrics> {
        let mut metrics: Vec<SharedQueueMetrics> = Vec::new();
        for (device, counters) in queues {
            let earlier: Vec<_> = metrics.iter().filter(|queue| queue.device == *device).collect();
            let first = earlier.iter().map(|queue| queue.lanes.len()).sum();
            let lanes =
                (first..).zip(&counters.claimants).map(|(lane, claimant)| ClaimantMetrics {
                    lane,
                    claims: claimant.claims,
                    packets: claimant.packets,
                    retries: claimant.retries,
                    pauses: claimant.pauses,
                });
            let queue = SharedQueueMetrics {
                device: device.clone(),
                queue: earlier.len(),
                lanes: lanes.collect(),
                stalls: counters.stalls,
                stalled_seconds: counters.stalled.as_secs_f64(),
                longest_stall_seconds: counters.longest_stall.as_secs_f64(),
                departures: counters.departures.as_ref().map(DepartureMetrics::of),
            };
            metrics.push(queue);
        }
        metrics
    }
}

/// A line for people.
impl fmt::Display for SharedQueueMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sum = |of: fn(&ClaimantMetrics) -> u64| self.lanes.iter().map(of).sum::<u64>();
        let (claims, packets) = (sum(|lane| lane.claims), sum(|lane| lane.packets));
        let mean = packets as f64 / claims.max(1) as f64;
        write!(
            f,
            "{} {}: shared by {} lanes, {claims} claims of {mean:.1} packets, {} races lost",
            self.device,
            self.queue,
            self.lanes.len(),
            sum(|lane| lane.retries)
        )?;
        if let Some(DepartureMetrics { delay_p50_us, delay_p99_us, longest_delay_us, .. }) =
            &self.departures
        {
            write!(
                f,
                "; left in order, {delay_p50_us:.1} us (p50), {delay_p99_us:.1} us (p99) and {longest_delay_us:.1} us (most) \
                 behind"
            )?;
        }
        if self.stalls == 0 {
            return Ok(());
        }
        write!(
            f,
            "; used up {} times, for {:.3} ms in all and {:.3} ms at most",
            self.stalls,
            self.stalled_seconds * 1e3,
            self.longest_stall_seconds * 1e3
        )?;
        let paused = self.lanes.iter().filter(|lane| lane.pauses > 0);
        for (place, lane) in paused.enumerate() {
            let before = if place == 0 { ": waited for lane" } else { ", lane" };
            write!(f, "{before} {} ({})", lane.lane, lane.pauses)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rheostat_io::ClaimantCounters;

    use super::*;

    #[test]
    fn a_stall_names_the_lane_that_was_waited_for() {
        let claimant =
            |claims, pauses| ClaimantCounters { claims, packets: 20, retries: 3, pauses };
        let calm = SharingCounters { claimants: vec![claimant(1, 0); 2], ..Default::default() };
        let stalled = SharingCounters {
            claimants: vec![claimant(2, 0), claimant(2, 7)],
            stalls: 7,
            stalled: Duration::from_micros(1_500),
            longest_stall: Duration::from_millis(1),
            departures: None,
        };
        let queues = [("lan".to_owned(), calm), ("lan".to_owned(), stalled)];
        let metrics = SharedQueueMetrics::of(&queues);
        let lines: Vec<String> = metrics.iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "lan 0: shared by 2 lanes, 2 claims of 20.0 packets, 6 races lost",
                "lan 1: shared by 2 lanes, 4 claims of 10.0 packets, 6 races lost; used up 7 times, for 1.500 ms in all \
                 and 1.000 ms at most: waited for lane 3 (7)",
            ]
        );
        let json = serde_json::to_value(&metrics[1]).unwrap();
        assert_eq!((&json["queue"], &json["lanes"][1]["pauses"]), (&1.into(), &7.into()));
    }
}
