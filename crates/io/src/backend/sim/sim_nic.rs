//! The simulated NIC as a device.

use std::sync::Arc;

use crate::Source;
use rheostat_base::{ClockSource, DeviceId, QueueId};
use rheostat_packet::{Mbuf, Mempool};
use rheostat_steer::{GenerationTable, IndirectionTable};

use super::config::{Drawing, Driver, SimConfig};
use super::counters::Sent;
use super::descriptor_ring::{
    ClaimantSide, LaneSide, NicSide, descriptor_ring, shared_descriptor_ring,
};
use super::driver::{Drive, Stepper, start_thread};
use super::engine::Engine;
use super::nic_thread::NicThread;
use super::pacing::Pacing;
use super::pumped::{DrawnArrivals, Pump, PumpedRx, PumpedTable};
use super::queue_event::QueueEvent;
use super::receive::{Filling, SimRx};
use super::replies::Replies;
use super::shared_receive::SharedRx;
use super::transmit::{Answers, SimTx, TransmitRing};
use crate::backend::shared_ring::Claimants;
use crate::device::{Device, DeviceMonitor, QueuePair, Replay, RxQueue, TxQueue};
use crate::replay_barrier::ReplayBarrier;
use crate::sink::Sink;
use crate::{OpenError, Peer, Responder};

/// A network interface in the process.
///
/// Dropping it stops the source and, where it has one, joins its thread; what has arrived can still be
/// received.
pub struct SimNic {
    name: String,
    id: DeviceId,
    table: Arc<dyn IndirectionTable>,
    queues: Vec<QueuePair>,
    engine: Arc<dyn Engine>,
    stepper: Option<Stepper>,
    /// Only to be dropped with the device.
    _thread: Option<NicThread>,
}

/// The table of a device before it is rewritten.
fn entries(config: &SimConfig) -> GenerationTable {
    GenerationTable::new(config.steering.buckets(), config.queues.into())
}

/// Replies to what a device sends, and what makes them.
struct Answered {
    replies: Arc<Replies>,
    responder: Box<dyn FnMut(QueueId) -> Box<dyn Responder>>,
}

impl Answered {
    fn new(config: &SimConfig, peer: Peer, pool: &Mempool) -> Answered {
        let Peer { delay, most, responder } = peer;
        Answered { replies: Arc::new(Replies::new(config, pool, (delay, most))), responder }
    }
}

/// Transmit queues, which count into `sent`. `pump` is what places replies, unless a stepper does.
fn senders(
    config: &SimConfig,
    mut sink: impl FnMut(QueueId) -> Box<dyn Sink>,
    mut answered: Option<Answered>,
    sent: &[Arc<Sent>],
    pump: Option<&Arc<Pump>>,
) -> Vec<Box<dyn TxQueue>> {
    let sender = |(sent, number): (&Arc<Sent>, u16)| {
        let ring = config
            .transmit_descriptors
            .map(|descriptors| TransmitRing::new(descriptors, config.link_rate));
        let answers = answered.as_mut().map(|Answered { replies, responder }| {
            Answers::new(responder(QueueId(number)), replies.clone(), pump.cloned())
        });
        let sink = sink(QueueId(number));
        Box::new(SimTx { sink, sent: sent.clone(), ring, answers }) as Box<dyn TxQueue>
    };
    sent.iter().zip(0..).map(sender).collect()
}

/// One per queue where a thread of the device makes packets arrive while lanes sleep; none otherwise.
fn queue_events(config: &SimConfig) -> Result<Vec<Arc<QueueEvent>>, OpenError> {
    let queues = if matches!(config.driver, Driver::Threaded(_)) { config.queues } else { 0 };
    let event = |_| {
        let refused = |source| OpenError::Event { device: config.name.clone(), source };
        QueueEvent::new().map(Arc::new).map_err(refused)
    };
    (0..queues).map(event).collect()
}

/// The side of a ring that its lanes empty.
enum LanesSide {
    Own(LaneSide<Mbuf>),
    Shared(ClaimantSide<Mbuf>, Arc<Claimants>),
}

/// A ring of a device that puts packets into rings.
fn ring(config: &SimConfig) -> (NicSide<Mbuf>, LanesSide) {
    if config.claimants == 1 {
        let (nic_side, lane_side) = descriptor_ring(config.descriptors);
        return (nic_side, LanesSide::Own(lane_side));
    }
    let (nic_side, lanes_side) = shared_descriptor_ring(config.descriptors);
    let claimants = Arc::new(Claimants::new(config.claimants.into()));
    (nic_side, LanesSide::Shared(lanes_side, claimants))
}

fn pairs(
    receivers: impl Iterator<Item = Box<dyn RxQueue>>,
    senders: Vec<Box<dyn TxQueue>>,
) -> Vec<QueuePair> {
    receivers.zip(senders).map(|(rx, tx)| QueuePair { rx, tx }).collect()
}

impl SimNic {
    /// Makes the device: packets come from `source`, and those sent through a queue go to the sink
    /// that `sink` gives for it. A thread of the device that enqueues takes its buffers from `pool`.
    ///
    /// # Errors
    /// [`OpenError`] when the configuration is impossible or no thread can be started.
    pub fn open(
        config: SimConfig,
        source: Box<dyn Source>,
        sink: impl FnMut(QueueId) -> Box<dyn Sink>,
        pool: &Mempool,
    ) -> Result<SimNic, OpenError> {
        SimNic::open_with(config, source, sink, pool, None)
    }

    /// The same with a peer that answers what the device sends. A reply arrives [`Peer::delay`] after its packet was sent,
    /// whatever lanes do, and takes a descriptor or is dropped as the packets of `source` are, among which it comes; of two
    /// that are due at once, that of the source first. Replies have stamps of their own, in the order in which they
    /// arrive: a source whose packets are of the same direction of the same flows must not be answered.
    ///
    /// # Errors
    /// As [`SimNic::open`], and [`OpenError::Answering`] unless packets arrive in an open loop, by the pumped driver or a
    /// stepper, lanes do not share queues, and the source is not fed while it runs.
    pub fn open_answering(
        config: SimConfig,
        source: Box<dyn Source>,
        sink: impl FnMut(QueueId) -> Box<dyn Sink>,
        pool: &Mempool,
        peer: Peer,
    ) -> Result<SimNic, OpenError> {
        let has_open_loop = matches!(config.pacing, Pacing::OpenLoop { .. }) && !source.is_fed();
        let has_thread = matches!(config.driver, Driver::Threaded(_));
        if !has_open_loop || has_thread || config.claimants != 1 {
            return Err(OpenError::Answering { device: config.name });
        }
        let answered = Answered::new(&config, peer, pool);
        SimNic::open_with(config, source, sink, pool, Some(answered))
    }

    fn open_with(
        config: SimConfig,
        source: Box<dyn Source>,
        sink: impl FnMut(QueueId) -> Box<dyn Sink>,
        pool: &Mempool,
        answered: Option<Answered>,
    ) -> Result<SimNic, OpenError> {
        config.check()?;
        let never_sleeps =
            config.pacing != Pacing::Lossless && !source.is_fed() && config.claimants == 1;
        match &config.driver {
            Driver::Pumped(drawing) if never_sleeps => {
                let clock = match drawing {
                    Drawing::AsPolled => None,
                    Drawing::Ahead(clock) => Some(clock.clone()),
                };
                let entries = Arc::new(entries(&config));
                let replies = answered.as_ref().map(|answered| answered.replies.clone());
                let pump =
                    Pump::new(&config, source, &entries.read(), pool, clock.clone(), replies);
                let pump = Arc::new(pump);
                let mut nic = SimNic::pumped(&config, pump.clone(), entries, sink, answered);
                if let Some(clock) = clock {
                    let thread = pump.start_drawing(&config.name, clock);
                    let failed = |source| OpenError::Thread { device: config.name, source };
                    nic._thread = Some(thread.map_err(failed)?);
                }
                Ok(nic)
            }
            _ => SimNic::driven(config, source, sink, pool, answered),
        }
    }

    /// Makes a pumped device at which arrives what was drawn, from the first poll on or from the origin of its pacing.
    /// Tables that are rewritten hold from then on by `clock`, which is the one that lanes go by.
    ///
    /// # Errors
    /// [`OpenError`] when the configuration is impossible.
    pub fn open_drawn(
        config: &SimConfig,
        drawn: &DrawnArrivals,
        clock: Arc<dyn ClockSource>,
        sink: impl FnMut(QueueId) -> Box<dyn Sink>,
    ) -> Result<SimNic, OpenError> {
        config.check()?;
        let entries = Arc::new(entries(config));
        let pump = Arc::new(Pump::with_drawn(config, drawn, &entries.read(), clock));
        Ok(SimNic::pumped(config, pump, entries, sink, None))
    }

    fn pumped(
        config: &SimConfig,
        pump: Arc<Pump>,
        entries: Arc<GenerationTable>,
        sink: impl FnMut(QueueId) -> Box<dyn Sink>,
        answered: Option<Answered>,
    ) -> SimNic {
        let senders = senders(config, sink, answered, &pump.sent, Some(&pump));
        let receivers = (0..usize::from(config.queues))
            .map(|queue| Box::new(PumpedRx::new(pump.clone(), queue)) as Box<dyn RxQueue>);
        SimNic {
            name: config.name.clone(),
            id: config.device,
            table: Arc::new(PumpedTable::new(entries, pump.clone())),
            queues: pairs(receivers, senders),
            engine: pump,
            stepper: None,
            _thread: None,
        }
    }

    /// A device that puts packets into rings.
    fn driven(
        config: SimConfig,
        source: Box<dyn Source>,
        sink: impl FnMut(QueueId) -> Box<dyn Sink>,
        pool: &Mempool,
        answered: Option<Answered>,
    ) -> Result<SimNic, OpenError> {
        let table = Arc::new(entries(&config));
        let events = queue_events(&config)?;
        let (nic_sides, lanes_sides): (Vec<_>, Vec<_>) =
            (0..config.rings()).map(|_| ring(&config)).unzip();
        let sharing = lanes_sides.iter().filter_map(|side| match side {
            LanesSide::Shared(_, claimants) => Some(claimants.clone()),
            LanesSide::Own(_) => None,
        });
        let rings = (nic_sides, sharing.collect());
        let replies = answered.as_ref().map(|answered| answered.replies.clone());
        let drive = Drive::new(&config, source, rings, table.clone(), events.clone(), replies);
        let drive = Arc::new(drive);
        let pump = matches!(config.driver, Driver::Pumped(_)).then(|| drive.clone());
        let filling = Filling::new(pump, config.pacing);
        let mut events = events.into_iter();
        let mut receivers: Vec<Box<dyn RxQueue>> = Vec::new();
        for side in lanes_sides {
            match side {
                LanesSide::Own(ring) => {
                    receivers.push(Box::new(SimRx::new(ring, filling.clone(), events.next())));
                }
                LanesSide::Shared(ring, claimants) => {
                    let count = usize::from(config.claimants);
                    let events: Vec<_> = events.by_ref().take(count).collect();
                    receivers.extend((0..count).map(|claimant| -> Box<dyn RxQueue> {
                        let claimants = (claimants.clone(), claimant);
                        let (ring, filling) = (ring.clone(), filling.clone());
                        Box::new(SharedRx::new(ring, filling, claimants, events.clone()))
                    }));
                }
            }
        }
        let senders = senders(&config, sink, answered, &drive.sent, None);
        let (stepper, thread) = match config.driver {
            Driver::Pumped(_) => (None, None),
            Driver::Stepped => (Some(Stepper::new(drive.clone())), None),
            Driver::Threaded(clock) => {
                let thread = start_thread(&config.name, drive.clone(), clock, pool.clone())
                    .map_err(|source| OpenError::Thread { device: config.name.clone(), source })?;
                (None, Some(thread))
            }
        };
        Ok(SimNic {
            id: config.device,
            name: config.name,
            table,
            queues: pairs(receivers.into_iter(), senders),
            engine: drive,
            stepper,
            _thread: thread,
        })
    }

    /// Takes the handle that makes packets arrive at a stepped NIC; `None` for the other drivers, and
    /// the second time.
    pub fn stepper(&mut self) -> Option<Stepper> {
        self.stepper.take()
    }
}

impl Device for SimNic {
    fn name(&self) -> &str {
        &self.name
    }

    fn id(&self) -> DeviceId {
        self.id
    }

    fn queues(&mut self) -> Vec<QueuePair> {
        std::mem::take(&mut self.queues)
    }

    fn table(&self) -> Option<Arc<dyn IndirectionTable>> {
        Some(self.table.clone())
    }

    fn as_replay(&mut self) -> Option<&mut dyn Replay> {
        Some(self)
    }

    fn await_begin(&mut self) {
        self.engine.await_begin();
    }

    fn monitor(&self) -> Arc<dyn DeviceMonitor> {
        self.engine.clone()
    }
}

impl Replay for SimNic {
    fn replay_by(&mut self, barrier: Arc<ReplayBarrier>) {
        self.engine.replay_by(barrier);
    }
}

impl Drop for SimNic {
    fn drop(&mut self) {
        self.engine.stop();
    }
}
