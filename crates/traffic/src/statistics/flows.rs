//! Flows: how long they are, how long they last, how many there are at once.

use std::collections::HashMap;

use rheostat_base::Time;
use rheostat_packet::{Family, FlowKey};
use serde::Serialize;

use super::distribution::Distribution;

/// What the largest flows have of the whole. Shares lie between 0 and 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TopShares {
    /// What the largest 1 % of the flows have.
    pub top_1_percent: f64,
    /// What the largest 10 % have.
    pub top_10_percent: f64,
}

/// All flows seen, both directions counted as one.
#[derive(Debug, Default)]
pub(super) struct FlowStatistics {
    seen: HashMap<FlowKey, FlowSpan>,
    /// The second that is being counted, the flows that were active in it, the most in one before, and the sum.
    second: u64,
    active: u64,
    most_active: u64,
    all_active: u64,
}

#[derive(Debug)]
struct FlowSpan {
    packets: u64,
    bytes: u64,
    first: Time,
    last: Time,
}

impl FlowStatistics {
    pub(super) fn count(&mut self, key: FlowKey, now: Time, wire_len: u32) {
        let key = if key.is_sorted() { key } else { key.reversed() };
        let second = |time: Time| time.as_nanos() / 1_000_000_000;
        if second(now) > self.second {
            self.second = second(now);
            self.active = 0;
        }
        let mut is_new = false;
        let seen = self.seen.entry(key).or_insert_with(|| {
            is_new = true;
            FlowSpan { packets: 0, bytes: 0, first: now, last: now }
        });
        if is_new || second(seen.last) < self.second {
            self.active += 1;
            self.all_active += 1;
            self.most_active = self.most_active.max(self.active);
        }
        seen.packets += 1;
        seen.bytes += u64::from(wire_len);
        seen.last = now;
    }

    pub(super) fn len(&self) -> u64 {
        self.seen.len() as u64
    }

    fn distribution(&self, of: impl Fn(&FlowSpan) -> u64) -> Distribution {
        Distribution::of(self.seen.values().map(of).collect())
    }

    pub(super) fn packets(&self) -> Distribution {
        self.distribution(|seen| seen.packets)
    }

    pub(super) fn bytes(&self) -> Distribution {
        self.distribution(|seen| seen.bytes)
    }

    /// From the first packet to the last, in nanoseconds.
    pub(super) fn durations(&self) -> Distribution {
        self.distribution(|seen| seen.last.as_nanos() - seen.first.as_nanos())
    }

    /// The share of flows over IPv6.
    pub(super) fn ipv6(&self) -> f64 {
        let count = self.seen.keys().filter(|key| key.family() == Family::V6).count();
        count as f64 / self.len().max(1) as f64
    }

    /// First and last packets.
    pub(super) fn spans(&self) -> impl Iterator<Item = (Time, Time)> {
        self.seen.values().map(|seen| (seen.first, seen.last))
    }

    /// Flows with a packet in one second, on average and at most, on a clock of whole seconds from the first
    /// packet on.
    pub(super) fn active_per_second(&self) -> (f64, u64) {
        (self.all_active as f64 / (self.second + 1) as f64, self.most_active)
    }

    /// The share of flows active in a second that are in their first.
    pub(super) fn new_among_active(&self) -> f64 {
        self.len() as f64 / self.all_active.max(1) as f64
    }

    /// Flows between their first and last packet, at most.
    pub(super) fn at_once(&self) -> u64 {
        let mut starts: Vec<_> = self.spans().map(|(first, _)| first).collect();
        let mut ends: Vec<_> = self.spans().map(|(_, last)| last).collect();
        starts.sort_unstable();
        ends.sort_unstable();
        let mut over = 0;
        let at_start = |(started, start): (usize, &Time)| {
            while ends[over] < *start {
                over += 1;
            }
            (started + 1 - over) as u64
        };
        starts.iter().enumerate().map(at_start).max().unwrap_or(0)
    }
}

impl TopShares {
    pub(super) fn of(distribution: &Distribution) -> TopShares {
        TopShares {
            top_1_percent: distribution.share_of_top(0.01),
            top_10_percent: distribution.share_of_top(0.1),
        }
    }
}
