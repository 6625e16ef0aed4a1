//! `rheo bench shared`: one receive queue that several workers empty, beside a queue for each and a queue behind a lock.
//!
//! The queue has no producer: a descriptor holds a packet again once the tail has passed it, or, where packets arrive at a
//! rate, when the packet that was assigned to it is due. So nothing but the way in which workers share the queue differs
//! between rows, and no other thread takes part. After the non-blocking driver, chapter 7: Tables 7.1 and 7.2 (rates), Figures
//! 7.1 to 7.4 (latency), 7.5 and 7.6 (order).

mod measurement;
mod queue;
mod reordering;
mod row;
mod source;
mod worker;

use std::time::Duration;

use crate::error::BenchError;
use crate::testbed::Cores;
use measurement::{Rate, measure_latency, measure_order, measure_rates};
pub use row::SharedStateRow;

/// How workers share what arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueKind {
    /// One queue; workers claim its packets and do not wait for each other (COREC).
    NonBlocking,
    /// The same, and packets leave in the order of claims.
    Ordered,
    /// One queue; a worker that receives holds a lock for which others spin.
    SpinLock,
    /// One queue; a worker that receives holds a lock for which others sleep.
    Mutex,
    /// A queue for each worker; packets are spread over them.
    PerWorker,
}

impl QueueKind {
    /// All of them.
    pub const ALL: [QueueKind; 5] = [
        QueueKind::NonBlocking,
        QueueKind::Ordered,
        QueueKind::SpinLock,
        QueueKind::Mutex,
        QueueKind::PerWorker,
    ];

    /// The name in rows.
    pub fn name(self) -> &'static str {
        match self {
            QueueKind::NonBlocking => "non-blocking",
            QueueKind::Ordered => "ordered",
            QueueKind::SpinLock => "spin-lock",
            QueueKind::Mutex => "mutex",
            QueueKind::PerWorker => "per-worker",
        }
    }
}

/// What is done with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketWork {
    /// A route is looked up, and TTL and checksum are changed, as a router does (Table 7.1).
    Light,
    /// The same, and 100 pseudo-random numbers are drawn, in place of a cipher (Table 7.2).
    Heavy,
}

impl PacketWork {
    /// Both.
    pub const ALL: [PacketWork; 2] = [PacketWork::Light, PacketWork::Heavy];

    /// The name in rows.
    pub fn name(self) -> &'static str {
        match self {
            PacketWork::Light => "light",
            PacketWork::Heavy => "heavy",
        }
    }
}

/// What is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedBench {
    /// Queues.
    pub queues: Vec<QueueKind>,
    /// Numbers of workers. More than there are cores share these: then order and loss count, and no rate.
    pub workers: Vec<usize>,
    /// Bytes of a packet, from the Ethernet header on.
    pub sizes: Vec<usize>,
    /// What is done with packets.
    pub work: Vec<PacketWork>,
    /// Packets per second that arrive, as shares of what one worker with a queue of its own can do for each worker, for
    /// latencies.
    pub loads: Vec<f64>,
    /// Descriptors of a queue: a power of two.
    pub descriptors: u64,
    /// Windows per rate; the median counts. One more comes first and does not count.
    pub windows: usize,
    /// The length of a window.
    pub window: Duration,
    /// Packets whose order is looked at, and whose latency is measured at each load.
    pub packets: u64,
}

impl Default for SharedBench {
    fn default() -> SharedBench {
        SharedBench {
            queues: QueueKind::ALL.to_vec(),
            workers: vec![1, 2, 3, 4],
            sizes: vec![60, 512, 1_514],
            work: PacketWork::ALL.to_vec(),
            loads: vec![0.3, 0.6, 0.8, 0.9],
            descriptors: 1_024,
            windows: 7,
            window: Duration::from_millis(60),
            packets: 100_000,
        }
    }
}

impl SharedBench {
    /// Measures; `each` is told every row. All queues of a number of workers, a size and a work are measured in turn, so that
    /// what drifts with time falls on all alike.
    ///
    /// # Errors
    /// [`BenchError`] when memory is lacking or the cores of the process are not known.
    pub fn run(&self, mut each: impl FnMut(&SharedStateRow)) -> Result<(), BenchError> {
        let cores = Cores::available()?;
        for &work in &self.work {
            for &size in &self.sizes {
                let mut alone = None;
                for &workers in &self.workers {
                    let rates = if workers <= cores.count() {
                        measure_rates(self, (workers, size, work), &cores)?
                    } else {
                        vec![Rate::default(); self.queues.len()]
                    };
                    let own = self.queues.iter().position(|kind| *kind == QueueKind::PerWorker);
                    if let (None, Some(own)) = (alone, own) {
                        alone = (workers == 1).then(|| rates[own].mpps);
                    }
                    for (&queue, rate) in self.queues.iter().zip(&rates) {
                        let order = measure_order(self, queue, (workers, size, work), &cores)?;
                        let mut row =
                            SharedStateRow::new(queue, (workers, size, work), rate, &order);
                        each(&row);
                        let latencies_wanted = workers <= cores.count() && size == self.sizes[0];
                        let Some(alone) = alone.filter(|_| latencies_wanted) else { continue };
                        for &load in &self.loads {
                            let pps = alone * 1e6 * load * workers as f64;
                            let latency =
                                measure_latency(self, queue, (workers, size, work), (pps, &cores))?;
                            row.set_latency(load, &latency);
                            each(&row);
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    //! Timed: threads.

    use super::*;

    #[test]
    fn every_packet_leaves_each_kind_of_queue_once_and_in_order_where_it_has_to() {
        let bench = SharedBench {
            workers: vec![1, 3],
            sizes: vec![60],
            work: vec![PacketWork::Light],
            loads: vec![0.1],
            descriptors: 64,
            windows: 1,
            window: Duration::from_millis(5),
            packets: 20_000,
            ..SharedBench::default()
        };
        let mut rows = Vec::new();
        bench.run(|row| rows.push(row.clone())).unwrap();
        let told: Vec<_> = rows.iter().map(|row| (row.queue.as_str(), row.workers)).collect();
        for kind in QueueKind::ALL {
            assert!(told.contains(&(kind.name(), 1)) && told.contains(&(kind.name(), 3)));
        }
        for row in &rows {
            assert!(row.is_sound(), "{row:?}");
            assert_eq!(row.load.is_some(), row.p99_us.is_some(), "{row:?}");
            assert_eq!(row.ordered_delay_p99_us.is_some(), row.queue == "ordered", "{row:?}");
        }
        let spoilt = SharedStateRow { lost: 1, ..rows[0].clone() };
        let disordered = SharedStateRow {
            queue: "ordered".into(),
            workers: 3,
            reordered_share: 0.1,
            ..rows[0].clone()
        };
        assert!(!spoilt.is_sound() && !disordered.is_sound());
    }
}
