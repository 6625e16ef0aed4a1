//! What became of every packet.

use std::ops::Range;

use super::lane::Job;
use crate::delays::delays;
use hdrhistogram::Histogram;

/// Follows each packet from its arrival to its end. Nothing is taken on trust from the lanes: packets are
/// identified by their numbers, order by what left before.
#[derive(Debug)]
pub(super) struct Ledger {
    /// When a packet has to arrive to be part of the figures.
    measured: Range<u64>,
    /// Of the packets that are.
    pub(super) arrived: u64,
    pub(super) delivered: u64,
    pub(super) dropped: u64,
    /// Nanoseconds from arrival to departure.
    pub(super) latency: Histogram<u64>,
    /// Their sum.
    pub(super) waited_ns: u64,
    /// Of all packets, those before and after included.
    pub(super) all: LedgerCounts,
    pub(super) duplicated: u64,
    pub(super) reordered: u64,
    /// A bit per packet that has left, by number.
    left: Vec<u64>,
    /// By flow and direction, the youngest packet that has left, counted from 1.
    youngest: Vec<u32>,
}

/// Packets so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LedgerCounts {
    pub(super) arrived: u64,
    /// Each once.
    pub(super) left: u64,
    pub(super) dropped: u64,
}

impl Ledger {
    pub(super) fn new(measured: Range<u64>) -> Ledger {
        Ledger {
            measured,
            arrived: 0,
            delivered: 0,
            dropped: 0,
            latency: delays(),
            waited_ns: 0,
            all: LedgerCounts::default(),
            duplicated: 0,
            reordered: 0,
            left: Vec::new(),
            youngest: Vec::new(),
        }
    }

    /// A packet arrives at `at`. Returns its number.
    pub(super) fn arrive(&mut self, at: u64) -> u32 {
        self.all.arrived += 1;
        self.arrived += u64::from(self.measured.contains(&at));
        u32::try_from(self.all.arrived - 1).expect("a run has fewer than 2^32 packets")
    }

    /// There was no room for a packet.
    pub(super) fn drop(&mut self, job: &Job) {
        self.all.dropped += 1;
        self.dropped += u64::from(self.measured.contains(&job.at));
    }

    /// A packet leaves at `now`.
    pub(super) fn depart(&mut self, job: &Job, now: u64) {
        let (word, bit) = (job.number as usize / 64, 1 << (job.number % 64));
        if word >= self.left.len() {
            self.left.resize((word + 1).next_power_of_two(), 0);
        }
        if self.left[word] & bit != 0 {
            self.duplicated += 1;
            return;
        }
        self.left[word] |= bit;
        self.all.left += 1;
        self.note_order(job);
        if self.measured.contains(&job.at) {
            let waited = now - job.at;
            self.delivered += 1;
            self.latency.saturating_record(waited);
            self.waited_ns += waited;
        }
    }

    fn note_order(&mut self, job: &Job) {
        let flow = job.flow as usize;
        if flow >= self.youngest.len() {
            self.youngest.resize((flow + 1).next_power_of_two(), 0);
        }
        let youngest = &mut self.youngest[flow];
        if job.number + 1 < *youngest {
            self.reordered += 1;
        } else {
            *youngest = job.number + 1;
        }
    }

    /// Packets that are missing, once nothing is under way any more.
    pub(super) fn lost(&self) -> u64 {
        self.all.arrived.saturating_sub(self.all.left + self.all.dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_packet_has_one_end() {
        let mut ledger = Ledger::new(100..200);
        let mut job = |at, flow| Job { at, number: ledger.arrive(at), flow, ..Job::default() };
        let jobs = [job(50, 7), job(100, 7), job(150, 8), job(199, 7), job(200, 9)];
        for (job, now) in [(0, 60), (3, 210), (1, 220), (3, 230)] {
            ledger.depart(&jobs[job], now);
        }
        ledger.drop(&jobs[2]);
        assert_eq!((ledger.duplicated, ledger.reordered, ledger.lost()), (1, 1, 1));
        assert_eq!((ledger.arrived, ledger.delivered, ledger.dropped), (3, 2, 1));
        assert_eq!(ledger.waited_ns, 11 + 120);
    }
}
