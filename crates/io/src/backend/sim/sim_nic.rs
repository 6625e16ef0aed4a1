//! The simulated NIC as a device.

use std::sync::{Arc, OnceLock};

use crate::Source;
use rheostat_base::{ClockSource, DeviceId, QueueId};
use rheostat_packet::{Mbuf, Mempool};
use rheostat_steer::{GenerationTable, IndirectionTable};

use super::config::{Drawing, Driver, SimConfig};
use super::counters::{Arrivals, Sent};
use super::descriptor_ring::{NicSide, descriptor_ring, shared_descriptor_ring};
use super::driver::{Drive, DriverThread, Stepper};
use super::monitor::{Engine, SimMonitor};
use super::nic::{Nic, Replaying};
use super::pacing::Pacing;
use super::pumped::{DrawingThread, DrawnArrivals, Pump, PumpedRx, PumpedTable};
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
    monitor: Arc<SimMonitor>,
    stepper: Option<Stepper>,
    /// Whether packets wait until there is room for them.
    lossless: bool,
    barrier: Arc<OnceLock<Replaying>>,
    /// Only to be dropped with the device.
    _thread: Option<NicThread>,
}

/// A thread that a NIC may have.
#[expect(dead_code, reason = "held to be dropped with the device")]
enum NicThread {
    Driver(DriverThread),
    Drawing(DrawingThread),
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

/// Transmit queues, and what they count. `pump` is what places replies, unless a stepper does.
fn senders(
    config: &SimConfig,
    mut sink: impl FnMut(QueueId) -> Box<dyn Sink>,
    mut answered: Option<Answered>,
    pump: Option<&Arc<Pump>>,
) -> (Vec<Box<dyn TxQueue>>, Vec<Arc<Sent>>) {
    let sent: Vec<Arc<Sent>> = (0..config.queues).map(|_| Arc::default()).collect();
    let sender = |(sent, number): (&Arc<Sent>, u16)| {
        let ring = config
            .transmit_descriptors
            .map(|descriptors| TransmitRing::new(descriptors, config.link_rate));
        let answers = answered.as_mut().map(|Answered { replies, responder }| {
            Answers::new(responder(QueueId(number)), replies.clone(), pump.cloned())
        });
        let queue = SimTx::new(sink(QueueId(number)), sent.clone(), ring, answers);
        Box::new(queue) as Box<dyn TxQueue>
    };
    (sent.iter().zip(0..).map(sender).collect(), sent)
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

/// Makes a receive queue, once it is known what fills its ring.
type MakeReceiver = Box<dyn FnOnce(Filling) -> Box<dyn RxQueue>>;

/// The rings of a device that puts packets into rings.
struct Rings {
    nic_sides: Vec<NicSide<Mbuf>>,
    /// One per lane.
    receivers: Vec<MakeReceiver>,
    /// One per ring that several lanes empty.
    claimants: Vec<Arc<Claimants>>,
}

impl Rings {
    /// `events` has one per lane, or none.
    fn make(config: &SimConfig, events: &[Arc<QueueEvent>]) -> Rings {
        let mut rings =
            Rings { nic_sides: Vec::new(), receivers: Vec::new(), claimants: Vec::new() };
        for number in 0..usize::from(config.rings()) {
            if config.claimants == 1 {
                let (nic_side, ring) = descriptor_ring(config.descriptors);
                let event = events.get(number).cloned();
                rings.nic_sides.push(nic_side);
                rings
                    .receivers
                    .push(Box::new(|filling| Box::new(SimRx::new(ring, filling, event))));
                continue;
            }
            let (nic_side, ring) = shared_descriptor_ring(config.descriptors);
            let count = usize::from(config.claimants);
            let claimants = Arc::new(Claimants::new(count));
            let events: Vec<_> = events.iter().skip(number * count).take(count).cloned().collect();
            rings.nic_sides.push(nic_side);
            for claimant in 0..count {
                let (ring, claimants, events) = (ring.clone(), claimants.clone(), events.clone());
                rings.receivers.push(Box::new(move |filling| {
                    Box::new(SharedRx::new(ring, filling, (claimants, claimant), events))
                }));
            }
            rings.claimants.push(claimants);
        }
        rings
    }
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
                let barrier = Arc::new(OnceLock::new());
                let entries = Arc::new(entries(&config));
                let table = entries.read();
                let settled = barrier.clone();
                let pump = Pump::new(&config, source, &table, pool, clock.clone(), settled);
                let nic = SimNic::pumped(&config, pump, entries, (sink, answered), barrier);
                match clock {
                    Some(clock) => nic.with_drawing_thread(clock),
                    None => Ok(nic),
                }
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
        let barrier = Arc::new(OnceLock::new());
        let entries = Arc::new(entries(config));
        let pump = Pump::with_drawn(config, drawn, &entries.read(), clock, barrier.clone());
        Ok(SimNic::pumped(config, pump, entries, (sink, None), barrier))
    }

    fn pumped(
        config: &SimConfig,
        pump: Pump,
        entries: Arc<GenerationTable>,
        (sink, answered): (impl FnMut(QueueId) -> Box<dyn Sink>, Option<Answered>),
        barrier: Arc<OnceLock<Replaying>>,
    ) -> SimNic {
        let replies = answered.as_ref().map(|answered| answered.replies.clone());
        let pump = Arc::new(match &replies {
            Some(replies) => pump.with_replies(replies),
            None => pump,
        });
        let (senders, sent) = senders(config, sink, answered, Some(&pump));
        let receivers = (0..usize::from(config.queues))
            .map(|queue| Box::new(PumpedRx::new(pump.clone(), queue)) as Box<dyn RxQueue>);
        SimNic {
            name: config.name.clone(),
            id: config.device,
            table: Arc::new(PumpedTable::new(entries, pump.clone())),
            queues: pairs(receivers, senders),
            monitor: Arc::new(SimMonitor {
                engine: Engine::Pumped(pump),
                sent,
                claimants: Vec::new(),
                replies,
            }),
            stepper: None,
            lossless: false,
            barrier,
            _thread: None,
        }
    }

    fn with_drawing_thread(mut self, clock: Arc<dyn ClockSource>) -> Result<SimNic, OpenError> {
        if let Engine::Pumped(pump) = &self.monitor.engine {
            let thread = DrawingThread::start(&self.name, pump.clone(), clock)
                .map_err(|source| OpenError::Thread { device: self.name.clone(), source })?;
            self._thread = Some(NicThread::Drawing(thread));
        }
        Ok(self)
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
        let Rings { nic_sides, receivers, claimants } = Rings::make(&config, &events);
        let arrivals = Arc::new(Arrivals::new(config.rings()));
        let waiting = nic_sides.iter().map(|side| side.gauge()).collect();
        let barrier = Arc::new(OnceLock::new());
        let nic = Nic::new(
            &config,
            source,
            nic_sides,
            table.clone(),
            arrivals.clone(),
            barrier.clone(),
            events,
        );
        let replies = answered.as_ref().map(|answered| answered.replies.clone());
        let nic = match &replies {
            Some(replies) => nic.with_replies(replies.clone()),
            None => nic,
        };
        let drive = Arc::new(Drive::new(nic));
        let pump = matches!(config.driver, Driver::Pumped(_)).then(|| drive.clone());
        let (senders, sent) = senders(&config, sink, answered, None);
        let filling = Filling::new(pump, config.pacing);
        let receivers = receivers.into_iter().map(|receiver| receiver(filling.clone()));
        let queues = pairs(receivers, senders);
        let (stepper, thread) = match config.driver {
            Driver::Pumped(_) => (None, None),
            Driver::Stepped => (Some(Stepper::new(drive.clone())), None),
            Driver::Threaded(clock) => {
                let thread = DriverThread::start(&config.name, drive.clone(), clock, pool.clone())
                    .map_err(|source| OpenError::Thread { device: config.name.clone(), source })?;
                (None, Some(NicThread::Driver(thread)))
            }
        };
        let engine = Engine::Driven { drive, arrivals, waiting };
        Ok(SimNic {
            id: config.device,
            name: config.name,
            table,
            queues,
            monitor: Arc::new(SimMonitor { engine, sent, claimants, replies }),
            stepper,
            lossless: config.pacing == Pacing::Lossless,
            barrier,
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
        match &self.monitor.engine {
            // Lanes take what they can when they can: nothing is lost before they do.
            Engine::Driven { .. } if self.lossless => {}
            Engine::Driven { drive, .. } => drive.await_begin(),
            Engine::Pumped(pump) => pump.await_begin(),
        }
    }

    fn monitor(&self) -> Arc<dyn DeviceMonitor> {
        self.monitor.clone()
    }
}

impl Replay for SimNic {
    fn replay_by(&mut self, barrier: Arc<ReplayBarrier>) {
        let reader = match &self.monitor.engine {
            Engine::Driven { drive, .. } if self.lossless => {
                Some(barrier.join(drive.first_stamp()))
            }
            _ => None,
        };
        // Set once: lanes are built once for a device.
        let _ = self.barrier.set(Replaying { barrier, reader });
    }
}

impl Drop for SimNic {
    fn drop(&mut self) {
        self.monitor.stop();
    }
}
