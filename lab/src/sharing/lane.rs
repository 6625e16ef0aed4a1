//! A lane that takes packets from its queue.

use std::hint::black_box;
use std::iter::Sum;

use rheostat_base::clock::Cycles;
use rheostat_base::{Clock, CoreId};
use rheostat_kernel::core_set::{CoreError, pin_current_thread};

use super::SharingAction;
use super::arrivals::{SharingFlow, SharingPacket};
use super::sink::Departures;
use super::tables::Tables;
use crate::pace::LoadPace;

/// Packets taken at a time, and sent together.
pub(super) const BURST: usize = 32;

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
pub(super) struct SharingLane<'a> {
    pub(super) lane: usize,
    pub(super) queue: &'a [SharingPacket],
    pub(super) flows: &'a [SharingFlow],
    /// The position of the sequence's first packet.
    pub(super) first: u64,
    pub(super) action: SharingAction,
    pub(super) work: u32,
    pub(super) clock: &'a Clock,
}

impl<'a> SharingLane<'a> {
    /// Processes all packets of the queue on a core.
    pub(super) fn run(
        self,
        mut tables: impl Tables,
        core: CoreId,
        pace: &LoadPace,
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
    fn process(&self, packet: &SharingPacket, tables: &mut impl Tables) {
        let flow = &self.flows[packet.flow as usize];
        let position = self.first + u64::from(packet.position);
        let seed = flow.hash.0;
        match self.action {
            SharingAction::Nothing => work(seed, self.work),
            SharingAction::Read => {
                let packets = tables.with(flow, |state| state.packets());
                work(seed ^ packets, self.work);
            }
            SharingAction::Write => {
                tables.with(flow, |state| state.pass(position));
                work(seed, self.work);
            }
            SharingAction::Ordered => {
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
