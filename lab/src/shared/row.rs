//! What a row says.

use rheostat_measure::record::{Column, TableRow};
use serde::{Deserialize, Serialize};

use super::measurement::{Order, Rate};
use super::{PacketWork, QueueKind};

/// A kind of queue with so many workers. The fields are those of the JSON output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SharedStateRow {
    /// The kind of queue: non-blocking, ordered, spin-lock, mutex or per-worker.
    pub queue: String,
    /// Workers.
    pub workers: usize,
    /// Bytes of a packet, from the Ethernet header on.
    pub size: usize,
    /// What is done with a packet: light or heavy.
    pub work: String,
    /// Million packets per second, the median of windows in which packets are always there; `None` where workers are more
    /// than cores, or where packets come at a rate.
    pub mpps: Option<f64>,
    /// `mpps` by that of a queue for each worker, the median over rounds that measured both.
    pub by_per_worker: Option<f64>,
    /// The rate at which packets come, as a share of what workers with queues of their own can do; `None` where they are
    /// always there.
    pub load: Option<f64>,
    /// The mean of the latencies, from when a packet was due to its departure, in microseconds; `None` without a rate.
    pub mean_us: Option<f64>,
    /// Their 99th percentile; `None` without a rate.
    pub p99_us: Option<f64>,
    /// Packets that left behind one with a larger number, as a share (RFC 4737, 4.1).
    pub reordered_share: f64,
    /// The largest distance of such a packet from the first that it should have been ahead of (RFC 4737, 4.2), in packets.
    pub extent: u64,
    /// Packets that the three before them should have followed, as a share: what TCP takes for losses (RFC 4737, 5.3).
    pub three_reordered_share: f64,
    /// Packets that were received by nobody, or never left.
    pub lost: u64,
    /// Packets that left more than once.
    pub duplicated: u64,
    /// Times that a worker was away while it received.
    pub preempted: u64,
    /// From when a worker was done with a claim to when its packets left, 99th percentile in microseconds; `None` where
    /// packets leave at once.
    pub ordered_delay_p99_us: Option<f64>,
}

impl SharedStateRow {
    pub(super) fn new(
        queue: QueueKind,
        (workers, size, work): (usize, usize, PacketWork),
        rate: &Rate,
        order: &Order,
    ) -> SharedStateRow {
        let measured = |value: f64| (value > 0.0).then_some(value);
        let mut row = SharedStateRow {
            queue: queue.name().to_owned(),
            workers,
            size,
            work: work.name().to_owned(),
            mpps: measured(rate.mpps),
            by_per_worker: measured(rate.by_own),
            load: None,
            mean_us: None,
            p99_us: None,
            reordered_share: 0.0,
            extent: 0,
            three_reordered_share: 0.0,
            lost: 0,
            duplicated: 0,
            preempted: 0,
            ordered_delay_p99_us: None,
        };
        row.set_order(order);
        row
    }

    fn set_order(&mut self, order: &Order) {
        let found = &order.reordering;
        self.reordered_share = found.share();
        self.extent = found.extent;
        self.three_reordered_share = found.beyond_three as f64 / found.packets.max(1) as f64;
        (self.lost, self.duplicated) = (found.lost, found.duplicated);
        self.preempted = order.preempted;
        let delay = order.delays.quantile(0.99).map(|ns| ns as f64 / 1e3);
        self.ordered_delay_p99_us = delay.filter(|_| self.queue == QueueKind::Ordered.name());
    }

    /// Makes it a row of packets that come at a rate.
    pub(super) fn set_latency(&mut self, load: f64, order: &Order) {
        (self.mpps, self.by_per_worker) = (None, None);
        self.set_order(order);
        self.load = Some(load);
        let latencies = &order.latencies;
        let (sum, count) = latencies.bins().fold((0.0, 0), |(sum, count), (value, times)| {
            (sum + value as f64 * times as f64, count + times)
        });
        self.mean_us = (count > 0).then(|| sum / count as f64 / 1e3);
        self.p99_us = latencies.quantile(0.99).map(|ns| ns as f64 / 1e3);
    }

    /// Whether every packet left once, and in order where it has to.
    pub fn is_sound(&self) -> bool {
        let keeps_order = self.queue == QueueKind::Ordered.name()
            || self.queue == QueueKind::PerWorker.name()
            || self.workers == 1;
        self.lost == 0 && self.duplicated == 0 && (!keeps_order || self.reordered_share == 0.0)
    }
}

impl TableRow for SharedStateRow {
    const COLUMNS: &'static [Column<SharedStateRow>] = &[
        Column::name("queue", 13, |row| &row.queue),
        Column::count("workers", 7, |row| row.workers as u64),
        Column::count("bytes", 5, |row| row.size as u64),
        Column::name("work", 5, |row| &row.work),
        Column::known("load", 6, 2, |row| row.load),
        Column::known("Mpps", 8, 2, |row| row.mpps),
        Column::known("by own", 7, 3, |row| row.by_per_worker),
        Column::known("mean us", 9, 2, |row| row.mean_us),
        Column::known("p99 us", 9, 2, |row| row.p99_us),
        Column::percent("reordered", 10, 3, |row| row.reordered_share),
        Column::count("extent", 7, |row| row.extent),
        Column::count("lost", 5, |row| row.lost),
        Column::count("doubled", 7, |row| row.duplicated),
        Column::count("preempted", 9, |row| row.preempted),
        Column::known("delay us", 9, 2, |row| row.ordered_delay_p99_us),
    ];
}
