//! Flows that leave and come home, threads and all, under many schedules: a NIC, two working lanes, an offloading one, and the
//! migrator, which moves the flow's shard meanwhile.

use std::sync::Arc as StdArc;
use std::sync::atomic::AtomicU64;

use rheostat_base::sync::Arc;
use rheostat_base::sync::atomic::{AtomicBool, Ordering};
use rheostat_base::{DeviceId, LaneId, QueueId, Time};
use rheostat_packet::FlowKey;
use rheostat_state::{DetachedFlow, FlowHash, Shard};
use rheostat_steer::{GenerationTable, IndirectionTable};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, Runner, thread};

use crate::invariant::Violation;
use crate::lane::migration::fixture::{A, B, C, Fixture, Queue, send_on};
use crate::lane::{Batch, HandoffPacket, Lane, Output};
use crate::migrate::{Migrator, Move};
use crate::offload::{FlowNumber, OffloadedFlows};
use crate::service::{OffloadingService, Service};
use crate::shard_set::ShardSet;

const SCHEDULES: usize = 300;
const PACKETS: u32 = 24;
const NOW: Time = Time::from_millis(1);

/// What the offloading lane does with a packet that it cannot process.
#[derive(Clone, Copy, PartialEq)]
enum Refusing {
    /// Sends it home, and all behind it.
    All,
    /// Sends it home, and processes those behind it.
    One,
}

/// Sends everything on, at home or away, and notes whether flows keep their order. Every eleventh packet can be processed at home
/// only.
struct Leaving {
    refusing: Refusing,
    /// Packets that went away, and that came back, in all lanes and schedules.
    seen: StdArc<Seen>,
}

#[derive(Default)]
struct Seen {
    processed_away: AtomicU64,
    refused: AtomicU64,
}

impl Service for Leaving {
    fn process(&mut self, batch: &mut Batch, shards: &mut ShardSet, out: &mut Output) {
        for (packet, &info) in batch.drain() {
            let table = &shards.get_mut(info.shard).expect("a packet meets its shard").table;
            match table.detached(info.hash, &info.key()) {
                None => send_on(HandoffPacket { packet, info }, shards, out),
                Some(detached) => {
                    let mut info = info;
                    info.set_offloaded(Some(FlowNumber::from_bits(detached.number)));
                    out.offload(packet, &info);
                }
            }
        }
    }

    fn offloading(&mut self) -> Option<&mut dyn OffloadingService> {
        Some(self)
    }
}

impl OffloadingService for Leaving {
    fn detach(
        &mut self,
        shard: &mut Shard,
        (hash, key): (FlowHash, &FlowKey),
        number: FlowNumber,
        _: Time,
    ) -> Option<DetachedFlow> {
        let flow = shard.table.find_now(hash, key)?;
        shard.table.detach(flow, number.bits())
    }

    fn process_offloaded(
        &mut self,
        batch: &mut Batch,
        flows: &mut OffloadedFlows,
        out: &mut Output,
    ) {
        for (packet, &info) in batch.drain() {
            let number = info.offloaded().expect("a guest has a number");
            let is_refused = packet.stamp() % 11 == 10;
            if is_refused && self.refusing == Refusing::All {
                flows.refuse(number);
            }
            match flows.get_mut(number).and_then(|flow| flow.open(())) {
                Some(mut flow) if !is_refused => {
                    let (device, stamp) = (packet.device(), packet.stamp());
                    let is_late = flow.note_arrival(info.forward(), device, stamp);
                    out.counters().reordered.add(is_late.into());
                    self.seen.processed_away.fetch_add(1, Ordering::Relaxed);
                    out.send(DeviceId(0), packet);
                }
                _ => {
                    self.seen.refused.fetch_add(1, Ordering::Relaxed);
                    out.refuse(HandoffPacket { packet, info });
                }
            }
        }
    }
}

/// Packets of the flow arrive while it leaves its lane for the offloading one, comes home, changes the offloading lane, and its
/// shard goes to the other working lane and back.
fn leave_and_come_home(refusing: Refusing, seen: StdArc<Seen>) -> Vec<Violation> {
    let service = |_| -> Box<dyn Service> { Box::new(Leaving { refusing, seen: seen.clone() }) };
    let mut fixture = Fixture::with(Queue::default(), service);
    let table = StdArc::new(GenerationTable::new(4, 3));
    table.rewrite(&[QueueId(A as u16); 4]).expect("entries that fit");
    table.acknowledge();
    let mut migrator = Migrator::new(&mut fixture.lanes, vec![table.clone()]);
    let done = Arc::new(AtomicBool::new(false));
    let nic = {
        let (done, queues, bucket) = (done.clone(), fixture.queues.clone(), fixture.shard.index());
        thread::spawn(move || {
            let mut stamps = 0..PACKETS;
            while !done.load(Ordering::Relaxed) || !stamps.is_empty() {
                table.acknowledge();
                if let Some(stamp) = stamps.next() {
                    let queue = table.lookup(bucket);
                    queues[queue.index()].stamps.lock().unwrap().push_back(stamp);
                }
                thread::yield_now();
            }
        })
    };
    let poll = |mut lane: Lane| {
        let done = done.clone();
        thread::spawn(move || {
            while !done.load(Ordering::Relaxed) {
                lane.poll(NOW);
                thread::yield_now();
            }
            lane
        })
    };
    let lanes: Vec<_> = std::mem::take(&mut fixture.lanes).into_iter().map(poll).collect();
    let [a, b, c] = [A, B, C].map(|lane| LaneId(lane as u16));
    let offload = |migrator: &mut Migrator, from, to| {
        while !migrator.offload(from, to, 100) {
            thread::yield_now();
        }
    };
    for (from, to) in [(a, b), (b, a)] {
        offload(&mut migrator, from, Some(c));
        (0..8).for_each(|_| thread::yield_now());
        // The other lane hosts it for a while.
        offload(&mut migrator, from, Some(to));
        offload(&mut migrator, to, Some(c));
        migrator.start(&[Move { shard: fixture.shard, from, to }], NOW).expect("a plan that fits");
        while !migrator.is_idle() {
            migrator.step(NOW);
            thread::yield_now();
        }
        offload(&mut migrator, from, None);
    }
    done.store(true, Ordering::Relaxed);
    nic.join().unwrap();
    fixture.lanes = lanes.into_iter().map(|lane| lane.join().unwrap()).collect();
    fixture.arrived = PACKETS.into();
    fixture.finish()
}

fn explore(scheduler: impl Scheduler + 'static, refusing: Refusing) -> StdArc<Seen> {
    let mut config = Config::new();
    // Lanes need more than shuttle's coroutines have by default.
    config.stack_size = 1 << 20;
    let seen = StdArc::new(Seen::default());
    let of_schedules = seen.clone();
    Runner::new(scheduler, config)
        .run(move || assert_eq!(leave_and_come_home(refusing, of_schedules.clone()), []));
    seen
}

#[test]
fn a_flow_leaves_and_comes_home_under_any_schedule() {
    for seen in [
        explore(RandomScheduler::new_from_seed(1, SCHEDULES), Refusing::All),
        explore(PctScheduler::new_from_seed(2, 3, SCHEDULES), Refusing::All),
    ] {
        // Flows were away, and packets came back, or nothing was shown.
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        assert!(count(&seen.processed_away) > 100 && count(&seen.refused) > 10);
    }
}

#[test]
#[should_panic(expected = "Reordered")]
fn a_lane_that_goes_on_behind_a_refused_packet_is_found_out() {
    explore(RandomScheduler::new_from_seed(1, 10 * SCHEDULES), Refusing::One);
}
