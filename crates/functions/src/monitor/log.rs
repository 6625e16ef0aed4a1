//! The log of flows. Records leave the shards over rings, so that no packet waits for a disk.
#![expect(
    clippy::disallowed_types,
    reason = "held before the first packet and after the last, and by the reader: lanes have rings"
)]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rheostat_base::ShardId;
use rheostat_base::sync::spsc::{self, Consumer, Producer};

use super::record::FlowRecord;
use super::talkers::Ranked;

/// Records that a shard may be ahead of the reader.
const RECORDS: usize = 2_048;
/// Reports of an interval that a shard may be ahead of the reader.
const REPORTS: usize = 4;

/// The rankings of one shard in one interval.
#[derive(Debug)]
pub struct TopReport {
    /// The shard.
    pub shard: ShardId,
    /// The number of the interval: it ends at this plus one, times its length.
    pub interval: u64,
    /// One summary for each ranking.
    pub ranked: Vec<Ranked>,
}

/// The reader's end of all shards' logs.
#[derive(Clone, Debug, Default)]
pub struct MonitorLog(Arc<Mutex<Ends>>);

#[derive(Debug, Default)]
struct Ends {
    records: Vec<Consumer<FlowRecord>>,
    reports: Vec<Consumer<TopReport>>,
    /// Records of flows that the end of the run has ended: all at once, more than a ring holds.
    last: Vec<FlowRecord>,
}

impl MonitorLog {
    /// A log of nothing yet.
    pub fn new() -> MonitorLog {
        MonitorLog::default()
    }

    /// The end for one more shard; before the first packet, or when a shard gets another log.
    pub(super) fn open(&self) -> LogEnd {
        let (records, for_reader) = spsc::ring(RECORDS);
        let (reports, for_top) = spsc::ring(REPORTS);
        let mut ends = self.ends();
        ends.records.push(for_reader);
        ends.reports.push(for_top);
        LogEnd { records, reports, log: self.clone() }
    }

    /// Shards that write to the log.
    pub fn shards(&self) -> usize {
        self.ends().records.len()
    }

    /// Takes the records so far, in order for each shard. Returns how many there were.
    pub fn drain(&self, mut read: impl FnMut(FlowRecord)) -> usize {
        // A shard that opens an end meanwhile does not wait for what `read` writes.
        let mut records = std::mem::take(&mut self.ends().records);
        let ringed: usize = records.iter_mut().map(|ring| ring.pop_each(RECORDS, &mut read)).sum();
        let mut ends = self.ends();
        records.append(&mut ends.records);
        ends.records = records;
        let last = std::mem::take(&mut ends.last);
        drop(ends);
        let count = ringed + last.len();
        last.into_iter().for_each(read);
        count
    }

    /// Takes the reports of intervals so far. Returns how many there were.
    pub fn drain_reports(&self, mut read: impl FnMut(TopReport)) -> usize {
        let mut reports = std::mem::take(&mut self.ends().reports);
        let count = reports.iter_mut().map(|ring| ring.pop_each(REPORTS, &mut read)).sum();
        let mut ends = self.ends();
        reports.append(&mut ends.reports);
        ends.reports = reports;
        count
    }

    fn ends(&self) -> MutexGuard<'_, Ends> {
        // Held for a moment by the reader and by threads that open ends, and after the last packet by those that close them.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A shard's end.
#[derive(Debug)]
pub(super) struct LogEnd {
    records: Producer<FlowRecord>,
    reports: Producer<TopReport>,
    log: MonitorLog,
}

impl LogEnd {
    /// Whether it is an end of this log.
    pub(super) fn is_of(&self, log: &MonitorLog) -> bool {
        Arc::ptr_eq(&self.log.0, &log.0)
    }

    /// Notes a record; `false` when the reader is too far behind, and the record is lost. Once the run
    /// is over no packet waits, and none is lost.
    pub(super) fn note(&mut self, record: FlowRecord, run_is_over: bool) -> bool {
        if run_is_over {
            self.log.ends().last.push(record);
            return true;
        }
        self.records.push(record).is_ok()
    }

    /// Sends a report off, unless the reader is behind: the next one is as good.
    pub(super) fn report(&mut self, report: TopReport) {
        let _ = self.reports.push(report);
    }
}
