//! Packets leave in the order in which lanes that share a queue have claimed them.
//!
//! ```text
//!   shared queue --claim 7--> lane 1 --turn 7--+
//!                --claim 8--> lane 0 --turn 8--+--> turns, in order --> one transmit queue per device
//! ```
//!
//! What a lane sends of a claim waits in the claim's turn. The turn is closed when the lane asks for packets again, or rests;
//! what the lane did not send by then (dropped, consumed, or held back for later) has passed its turn. Turns leave in order,
//! through one transmit queue per device, by the lane that closes the oldest of them ([`Turns`]). What a device has no room
//! for keeps its place. No lane waits for another, unless as many descriptors are claimed and have not left as the queue has.

mod port;
mod receive;
mod transmit;

use std::sync::Arc;

use rheostat_base::sync::try_lock::TryLock;
use rheostat_base::{Histogram, Time};
use rheostat_packet::Mbuf;

use crate::backend::shared_ring::Turns;
use crate::device::{Device, QueuePair};
use crate::layer::layered::{LayerBooks, LayeredDevice};
use crate::sharing::{DepartureCounters, SharingCounters};
use port::{Books, Port};
use receive::OrderedRx;
use transmit::OrderedTx;

/// Packets of one turn at most: a claim's, and copies.
const MOST_IN_A_TURN: usize = 1_024;
/// Vectors that a lane keeps for turns to come.
const SPARE: usize = 64;

/// What leaves when a claim's turn comes.
struct Turn {
    /// Packets, each with the number of the device on which it leaves.
    packets: Vec<(u8, Mbuf)>,
    /// The books of the lane, one per device.
    books: Arc<[Books]>,
    /// When the lane was done with it.
    closed: Time,
}

/// The turns of one shared queue.
struct QueueTurns {
    turns: Turns<Turn>,
    delays: Histogram,
}

/// A claim whose turn is open.
struct OpenTurn {
    range: (u64, u64),
    packets: Vec<(u8, Mbuf)>,
}

/// What a lane's queues share: the open turn of each device from which it receives. Never contended.
type OpenTurns = Arc<TryLock<Vec<Option<OpenTurn>>>>;

/// The turns of a device's shared queues.
struct TurnsOfDevice(Vec<Arc<QueueTurns>>);

/// Wraps all devices of a run, of each of which `claimants` lanes in a row share a queue.
///
/// # Panics
/// When the queues of a device are not shared so.
pub fn in_order(mut devices: Vec<Box<dyn Device>>, claimants: usize) -> Vec<Box<dyn Device>> {
    let count = devices.len();
    let mut pairs: Vec<Vec<QueuePair>> = devices.iter_mut().map(|device| device.queues()).collect();
    let lanes = pairs.first().map_or(0, Vec::len);
    let mut ordered: Vec<Vec<QueuePair>> = (0..count).map(|_| Vec::new()).collect();
    let mut turns: Vec<Vec<Arc<QueueTurns>>> = (0..count).map(|_| Vec::new()).collect();
    for _ in 0..lanes / claimants {
        // From here on by device: the queues of the lanes that share one.
        let shared: Vec<Vec<QueuePair>> =
            pairs.iter_mut().map(|pairs| pairs.drain(..claimants).collect()).collect();
        let mut receivers = Vec::new();
        let mut ports = Vec::new();
        for (number, pairs) in shared.into_iter().enumerate() {
            let (mut rx, tx): (Vec<_>, Vec<_>) =
                pairs.into_iter().map(|pair| (pair.rx, pair.tx)).unzip();
            let descriptors = rx[0].as_shared().and_then(|queue| queue.descriptors());
            let descriptors = descriptors.expect("lanes share the queue");
            let of_queue = QueueTurns { turns: Turns::new(descriptors), delays: Histogram::new() };
            turns[number].push(Arc::new(of_queue));
            receivers.push(rx);
            ports.push(Port::new(tx));
        }
        let ports: Arc<[Port]> = ports.into();
        let mut receivers: Vec<_> = receivers.into_iter().map(Vec::into_iter).collect();
        for _ in 0..claimants {
            let open: OpenTurns = Arc::new(TryLock::new((0..count).map(|_| None).collect()));
            let books: Arc<[Books]> = (0..count).map(|_| Books::default()).collect();
            for (device, receivers) in receivers.iter_mut().enumerate() {
                let rx = receivers.next().expect("a queue for each lane");
                let of_queue = turns[device].last().expect("made above").clone();
                let lane = (open.clone(), books.clone());
                let rx = OrderedRx::new(rx, device, of_queue, lane.clone(), ports.clone());
                let ((open, books), ports, latest) = (lane, ports.clone(), Time::ZERO);
                let tx = OrderedTx { device, open, books, ports, latest };
                ordered[device].push(QueuePair { rx: Box::new(rx), tx: Box::new(tx) });
            }
        }
    }
    let wrapped = devices.into_iter().zip(ordered).zip(turns).map(|((inner, queues), turns)| {
        let device = LayeredDevice::with_books(inner, queues, TurnsOfDevice(turns));
        Box::new(device) as Box<dyn Device>
    });
    wrapped.collect()
}

impl LayerBooks for TurnsOfDevice {
    fn sharing(&self, inner: Vec<SharingCounters>) -> Vec<SharingCounters> {
        let queues = inner.into_iter().zip(&self.0);
        queues.map(|(counters, queue)| queue.told(counters)).collect()
    }
}

impl QueueTurns {
    fn told(&self, counters: SharingCounters) -> SharingCounters {
        let quantile = |q| std::time::Duration::from_nanos(self.delays.quantile(q).unwrap_or(0));
        let departures = DepartureCounters {
            turns: self.delays.count(),
            delay_p50: quantile(0.5),
            delay_p99: quantile(0.99),
            longest_delay: quantile(1.0),
        };
        SharingCounters { departures: Some(departures), ..counters }
    }
}
