//! The two ends of a memory device that a lane holds.
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rheostat_base::sync::spsc::{self, Consumer, Producer};
use rheostat_base::{DeviceId, Time};
use rheostat_io::{ArrivalOrder, QueuePair, RxQueue, Stamping, TxQueue};
use rheostat_packet::{BURST, Burst, HashKind, Mbuf, PoolCache};

use super::conversation::{ConversationProgress, ConversationSide, Planned, Upcoming};
use super::frames::{self, About};
use super::line::{self, MemoryLine};
use super::{CYCLE, LAN, MemoryMonitor, QueueCounters, WAN, frame};
use crate::calibration::Calibrator;
use arrayvec::ArrayVec;

/// What one device contributes to a lane.
pub(super) struct Half {
    pub(super) side: ConversationSide,
    pub(super) counters: Arc<QueueCounters>,
    pub(super) monitor: Arc<MemoryMonitor>,
    /// Whether packets have the time of the poll that receives them.
    pub(super) stamped: bool,
}

/// A lane's queues of the device inside and of the one outside. What came from one leaves through the
/// other, and its buffer then returns to the one.
pub(super) fn pairs([inside, outside]: [Half; 2], calibrator: Calibrator) -> [QueuePair; 2] {
    // Room for a device's whole round, and no more: a ring is walked from end to end however few
    // are in it, and its lines would push the packets' out of the caches.
    let (sent_outside, from_inside) = spsc::ring(CYCLE);
    let (sent_inside, from_outside) = spsc::ring(CYCLE);
    let tx = |sent, half: &Half| MemoryTx {
        sent,
        progress: half.side.progress(),
        counters: half.counters.clone(),
    };
    let (tx_inside, tx_outside) = (tx(sent_inside, &inside), tx(sent_outside, &outside));
    let rx = |device, recycled, half: Half, calibrator| {
        let Half { side, counters, monitor, stamped } = half;
        let (covered, of_maker) = (side.covered(), counters.clone());
        let (spare, issued, stamp) = (ArrayVec::new(), 0, 0);
        let maker = Maker { device, covered, recycled, spare, issued, stamp, counters: of_maker };
        MemoryRx { side, maker, calibrator, counters, monitor, stamped }
    };
    [
        QueuePair {
            rx: Box::new(rx(LAN, from_inside, inside, Some(calibrator))),
            tx: Box::new(tx_inside),
        },
        QueuePair { rx: Box::new(rx(WAN, from_outside, outside, None)), tx: Box::new(tx_outside) },
    ]
}

/// Like the other parts that its lane writes, on cache lines of its own: the next lane's lie behind it.
#[repr(align(128))]
struct MemoryRx {
    side: ConversationSide,
    maker: Maker,
    /// One of a lane's queues reports the speed of its processor.
    calibrator: Option<Calibrator>,
    counters: Arc<QueueCounters>,
    monitor: Arc<MemoryMonitor>,
    stamped: bool,
}

#[repr(align(128))]
struct MemoryTx {
    sent: Producer<Mbuf>,
    progress: Arc<ConversationProgress>,
    counters: Arc<QueueCounters>,
}

/// Makes packets, each in one of the buffers that were sent longest ago.
struct Maker {
    device: DeviceId,
    /// What the device's hashes cover.
    covered: HashKind,
    recycled: Consumer<Mbuf>,
    /// A burst of them.
    spare: ArrayVec<Mbuf, BURST>,
    /// Buffers that this queue has brought into the round.
    issued: usize,
    stamp: u32,
    counters: Arc<QueueCounters>,
}

impl Maker {
    /// A packet whose bytes are to be written.
    #[inline(always)]
    fn make(&mut self, hash: u32, len: u16, pool: &mut PoolCache) -> Option<Mbuf> {
        let made = match self.oldest() {
            Some(oldest) => pool.renew(oldest, len.into()),
            None => pool.alloc(len.into()),
        };
        let Ok(mut packet) = made else {
            self.counters.no_buffer.increment();
            return None;
        };
        packet.set_device(self.device);
        packet.set_hash(hash, self.covered);
        packet.set_stamp(self.stamp);
        self.stamp = self.stamp.wrapping_add(1);
        Some(packet)
    }

    /// A packet as planned.
    fn make_planned(&mut self, planned: &Planned, pool: &mut PoolCache) -> Option<Mbuf> {
        let Planned { ends, step, hash } = planned;
        let mut packet = self.make(*hash, step.len, pool)?;
        frame::write(packet.data_mut(), ends, step);
        Some(packet)
    }

    #[inline(always)]
    fn oldest(&mut self) -> Option<Mbuf> {
        if self.issued < CYCLE {
            self.issued += 1;
            return None;
        }
        if self.spare.is_empty() {
            self.recycled.pop_each(BURST, |packet| self.spare.push(packet));
        }
        self.spare.pop()
    }
}

impl MemoryRx {
    /// Gives packets of the opening; returns how many, and their bytes.
    #[cold]
    fn open(&mut self, burst: &mut Burst, pool: &mut PoolCache) -> (usize, u64) {
        let (mut arrived, mut bytes) = (0, 0);
        while !burst.is_full()
            && let Some(planned) = self.side.next_opening()
        {
            arrived += 1;
            bytes += u64::from(planned.step.len);
            burst.extend(self.maker.make_planned(&planned, pool));
        }
        (arrived, bytes)
    }

    /// Gives data packets; returns how many, and their bytes.
    fn converse(&mut self, burst: &mut Burst, pool: &mut PoolCache) -> (usize, u64) {
        let MemoryRx { side, maker, .. } = self;
        let (mut passed_over, mut bytes) = (0, 0);
        let seen = match side.upcoming(burst.remaining_capacity()) {
            Upcoming::Lines(lines, round) => {
                for line in lines {
                    let (len, packet) = match line {
                        MemoryLine::Plain { template, hash } => {
                            let mut packet = maker.make(*hash, template.frame_len, pool);
                            if let Some(packet) = &mut packet {
                                template.write(packet.data_mut(), round);
                            }
                            (template.frame_len, packet)
                        }
                        MemoryLine::Other { ends, numbers, hash } => {
                            let mut packet = maker.make(*hash, ends.frame_len, pool);
                            if let Some(packet) = &mut packet {
                                let from_client = side.is_clients();
                                line::write(packet.data_mut(), ends, numbers, round, from_client);
                            }
                            (ends.frame_len, packet)
                        }
                        &MemoryLine::Brief { connection, role, opened_before } => {
                            let Some(planned) = side.brief(connection, role, opened_before, round)
                            else {
                                passed_over += 1;
                                continue;
                            };
                            (planned.step.len, maker.make_planned(&planned, pool))
                        }
                    };
                    bytes += u64::from(len);
                    burst.extend(packet);
                }
                lines.len()
            }
            Upcoming::Frames(frames, from, count) => {
                for (About { hash, len }, first_bytes) in frames.range(from, count) {
                    bytes += u64::from(len);
                    if let Some(mut packet) = maker.make(hash, len, pool) {
                        frames::copy(packet.data_mut(), first_bytes);
                        burst.push(packet);
                    }
                }
                count
            }
        };
        let given = seen - passed_over;
        side.advance(seen, given);
        (given, bytes)
    }
}

impl RxQueue for MemoryRx {
    fn recv(&mut self, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize {
        if self.monitor.stopped.load(Ordering::Relaxed) {
            return 0;
        }
        if let Some(calibrator) = &mut self.calibrator {
            calibrator.poll();
        }
        let before = burst.len();
        let (arrived, bytes) = match self.side.is_ready() {
            true => self.converse(burst, pool),
            false => self.open(burst, pool),
        };
        self.counters.arrived.add(arrived as u64);
        self.counters.arrived_bytes.add(bytes);
        if self.stamped {
            burst[before..].iter_mut().for_each(|packet| packet.set_timestamp(now));
        }
        burst.len() - before
    }

    fn order(&self) -> ArrivalOrder<'_> {
        ArrivalOrder { stamping: Stamping::by_device(self.stamped), rings: None }
    }

    fn backlog(&self) -> usize {
        0
    }
}

impl TxQueue for MemoryTx {
    fn send(&mut self, burst: &mut Burst, _: &mut PoolCache, _: Time) -> usize {
        if self.progress.is_curious() {
            burst.iter().for_each(|packet| self.progress.passed(packet.data()));
        }
        let bytes: usize = burst.iter().map(Mbuf::len).sum();
        let offered = burst.len();
        let mut packets = burst.drain(..);
        let sent = self.sent.push_all(&mut packets);
        // The ring holds more than the buffers that are under way.
        debug_assert_eq!(sent, offered, "a ring for all buffers is full");
        self.counters.sent.add(sent as u64);
        self.counters.sent_bytes.add(bytes as u64);
        sent
    }
}
