//! A lane that takes packets from its queue.

use std::hint::{black_box, spin_loop};
use std::iter::Sum;
use std::thread;

use rheostat_base::clock::Cycles;
use rheostat_base::core_set::{CoreError, pin_current_thread};
use rheostat_base::{Clock, CoreId, Counter};

use super::Action;
use super::arrivals::{Flow, Packet};
use super::sink::Departures;
use super::tables::Tables;

/// Packets taken at a time, and sent together.
pub(super) const BURST: usize = 32;
/// How often a lane looks whether it may go on before it lets others have the core.
const LOOKS: u32 = 1_000;

/// Keeps lanes together, as a source does that fills their queues in turn and waits while one is full.
#[derive(Debug)]
pub(super) struct Pace {
    /// By lane, the position of the packet it is about to take; the greatest number once it has none.
    positions: Vec<Position>,
    /// Packets of the sequence by which a lane may be ahead of another: as many as lie in all queues.
    ahead: u64,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Position(Counter);

impl Pace {
    /// All lanes before their first packet, with queues of `queue` packets.
    pub(super) fn new(lanes: usize, queue: u32) -> Pace {
        let positions = (0..lanes).map(|_| Position::default()).collect();
        Pace { positions, ahead: lanes as u64 * u64::from(queue) }
    }

    /// What `lane` asks before it takes packets.
    fn of(&self, lane: usize) -> Turn<'_> {
        Turn { pace: self, own: &self.positions[lane].0 }
    }
}

/// A lane's part in the pace. Whoever drops it has no packet left, for whatever reason, and nobody
/// waits for him any more.
struct Turn<'a> {
    pace: &'a Pace,
    own: &'a Counter,
}

impl Turn<'_> {
    /// Waits until all lanes are near `position`, which this one is about to take. The lane that is
    /// furthest behind never waits, so that somebody always goes on.
    fn wait(&self, position: u64) {
        self.own.set(position);
        let is_far = |other: &Position| other.0.get().saturating_add(self.pace.ahead) < position;
        let mut looks = 0_u32;
        while self.pace.positions.iter().any(is_far) {
            looks += 1;
            if looks.is_multiple_of(LOOKS) {
                thread::yield_now();
            }
            spin_loop();
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.own.set(u64::MAX);
    }
}

/// What processing took, waiting for packets apart.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spent {
    pub(super) cycles: u64,
    pub(super) nanos: u64,
}

impl Sum for Spent {
    fn sum<I: Iterator<Item = Spent>>(lanes: I) -> Spent {
        lanes.fold(Spent::default(), |sum, lane| Spent {
            cycles: sum.cycles + lane.cycles,
            nanos: sum.nanos + lane.nanos,
        })
    }
}

/// A lane's pass through its queue.
#[derive(Debug)]
pub(super) struct Passed<'a> {
    pub(super) started: Cycles,
    pub(super) ended: Cycles,
    pub(super) spent: Spent,
    pub(super) departures: Departures<'a>,
}

/// A lane with its queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lane<'a> {
    pub(super) lane: usize,
    pub(super) queue: &'a [Packet],
    pub(super) flows: &'a [Flow],
    /// The position of the sequence's first packet.
    pub(super) first: u64,
    pub(super) action: Action,
    pub(super) work: u32,
    pub(super) clock: &'a Clock,
}

impl<'a> Lane<'a> {
    /// Processes all packets of the queue on a core.
    pub(super) fn run(
        self,
        mut tables: impl Tables,
        core: CoreId,
        pace: &Pace,
    ) -> Result<Passed<'a>, CoreError> {
        let turn = pace.of(self.lane);
        pin_current_thread(core)?;
        let mut spent = Spent::default();
        let mut departures = Departures::of(self.queue);
        let started = self.clock.cycles();
        for burst in self.queue.chunks(BURST) {
            turn.wait(burst[0].position.into());
            let before = self.clock.cycles();
            for packet in burst {
                self.process(packet, &mut tables);
            }
            let after = self.clock.cycles();
            departures.note(after);
            spent.cycles += after.0.saturating_sub(before.0);
            spent.nanos += self.clock.nanos_between(before, after);
        }
        Ok(Passed { started, ended: self.clock.cycles(), spent, departures })
    }

    #[inline]
    fn process(&self, packet: &Packet, tables: &mut impl Tables) {
        let flow = &self.flows[packet.flow as usize];
        let position = self.first + u64::from(packet.position);
        let seed = flow.hash.0;
        match self.action {
            Action::Nothing => work(seed, self.work),
            Action::Read => {
                let packets = tables.with(flow, |state| state.packets());
                work(seed ^ packets, self.work);
            }
            Action::Write => {
                tables.with(flow, |state| state.pass(position));
                work(seed, self.work);
            }
            Action::Ordered => {
                let pass = |tables: &mut _| {
                    Tables::with(tables, flow, |state| state.pass(position));
                    work(seed, self.work);
                };
                tables.alone(packet.flow, pass);
            }
        }
    }
}

/// Draws pseudo-random numbers, each from the one before (Marsaglia, "Xorshift RNGs", 2003).
#[inline]
fn work(seed: u64, numbers: u32) {
    let mut number = seed | 1;
    for _ in 0..numbers {
        number ^= number << 13;
        number ^= number >> 7;
        number ^= number << 17;
    }
    black_box(number);
}
