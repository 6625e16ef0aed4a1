//! What the ledger notices when a simulated machine loses, doubles or overtakes packets.

use rheostat_base::{LaneId, ShardId, Time};
use rheostat_control::ShardMigrator;
use rheostat_run::Move;
use rheostat_steer::policy::{Load, Offloads};

use super::lane::Message;
use super::ledger::Ledger;
use super::machine::{CorePlacement, SimClasses, SimMachine, Size};
use super::packet::SimPacket;
use super::pauses::Pauses;
use super::phase_meter::PhaseMeter;
use super::work::{Overhead, SimWork};

/// A microsecond for each packet.
struct Even;

impl SimWork for Even {
    fn packet(&self, _: u32, _: usize) -> u64 {
        1_000
    }

    fn working_set(&self, _: f64) -> usize {
        0
    }

    fn overhead(&self) -> Overhead {
        Overhead {
            poll: 50,
            handoff: 100,
            release: 300,
            install: 300,
            fence: 5_000,
            ..Overhead::default()
        }
    }
}

const SHARDS: usize = 8;

fn machine(lanes: u16) -> SimMachine<Even> {
    // Small bursts, so that packets wait while a lane polls.
    let size = Size { burst: 2, ..Size::of(lanes, SHARDS, 1_000) };
    let ledger = Ledger::new(0..u64::MAX);
    SimMachine::new(size, Even, CorePlacement::Table, |_| Pauses::none(), ledger)
}

/// Packets of one flow per shard every 12 us, at times many, and shard 0 goes from lane 0 to lane 1 and back all the time;
/// `meddle` is called while packets wait.
fn run(lanes: u16, mut meddle: impl FnMut(u32, &mut SimMachine<Even>)) -> SimMachine<Even> {
    let mut machine = machine(lanes);
    let mut now = 0;
    for round in 0..2_000 {
        for flow in 0..SHARDS as u32 {
            let (luck, checksum, connection) = (0, 0, false);
            let packet =
                SimPacket { at: now, flow, hash: flow, luck, bytes: 0, checksum, connection };
            let count = if round % 20 == 0 { 20 } else { 1 };
            (0..count).for_each(|_| machine.arrive(&packet, now));
        }
        let soon = now + 1_500;
        machine.advance(soon);
        machine.migrator.step(Time::from_nanos(soon));
        if machine.migrator.is_idle() {
            let from = machine.migrator.owners()[0];
            let one = Move { shard: ShardId(0), from, to: LaneId(1 - from.0) };
            machine.migrator.start(&[one], Time::from_nanos(soon)).unwrap();
        }
        machine.tell(soon);
        now += 12_000;
        for time in (soon..now).step_by(500) {
            machine.advance(time);
            meddle(round, &mut machine);
        }
    }
    machine.run_dry(now, 5_000, 1_000_000_000);
    machine
}

fn faults(machine: &SimMachine<Even>) -> (u64, u64, bool) {
    let ledger = &machine.ledger;
    (ledger.lost(), ledger.duplicated, ledger.reordered > 0)
}

#[test]
fn shards_move_and_no_packet_is_lost_doubled_or_overtaken() {
    for lanes in [2, 3, 5] {
        let machine = run(lanes, |_, _| {});
        assert!(machine.migrator.arrived > 50, "{} shards moved", machine.migrator.arrived);
        assert_eq!(faults(&machine), (0, 0, false), "{lanes} lanes");
        let owned: usize = machine.workers().map(|lane| lane.owned).sum();
        assert_eq!(owned, SHARDS, "every shard has one owner");
    }
}

#[test]
fn a_packet_that_vanishes_is_noticed() {
    let mut stolen = 0;
    let machine = run(3, |round, machine| {
        if round % 100 == 20 {
            let queue = machine.lanes.iter_mut().find(|lane| !lane.queue.is_empty());
            stolen += u64::from(queue.and_then(|lane| lane.queue.pop_back()).is_some());
        }
    });
    assert!(stolen > 0);
    // A shard that waits for the watermark behind it waits for ever.
    assert!(machine.ledger.lost() >= stolen, "{stolen} of {}", machine.ledger.lost());
}

#[test]
fn a_packet_that_leaves_twice_is_noticed() {
    let mut doubled = 0;
    let machine = run(3, |round, machine| {
        if round % 100 == 20
            && let Some(lane) = machine.lanes.iter_mut().find(|lane| !lane.burst.is_empty())
        {
            lane.burst.push(lane.burst[0]);
            doubled += 1;
        }
    });
    assert!(doubled > 0);
    assert_eq!(faults(&machine).0, 0);
    assert_eq!(machine.ledger.duplicated, doubled);
}

#[test]
fn a_shard_that_leaves_before_its_packets_were_processed_is_noticed() {
    let machine = run(3, |_, machine| {
        for release in machine.lanes.iter_mut().flat_map(|lane| &mut lane.releases) {
            release.watermark = 0;
        }
    });
    assert!(machine.migrator.arrived > 50);
    let (lost, duplicated, reordered) = faults(&machine);
    assert!(reordered, "late packets are overtaken by those that were held");
    assert_eq!((lost, duplicated), (0, 0));
}

/// As [`run`] on three lanes, while the flows of lanes 0 and 1 leave for lane 2 and come home all the time.
fn run_offloading(mut meddle: impl FnMut(&mut SimMachine<Even>)) -> SimMachine<Even> {
    let mut calls = 0;
    run(3, |_, machine| {
        if calls == 0 {
            machine.tell_classes(SimClasses {
                is_priority: Box::new(|_| false),
                percentile: 0.995,
                phases: PhaseMeter::new(0, 1_000_000, 1),
            });
        }
        if calls % 200 == 0 {
            let share = if calls % 400 == 0 { Load::FULL } else { Load::ZERO };
            let links = vec![Some(LaneId(2)), Some(LaneId(2)), None];
            let offloads = Offloads { links, shares: vec![share; SHARDS] };
            machine.migrator.offload(&offloads, &[Load::FULL; SHARDS]);
        }
        calls += 1;
        meddle(machine);
    })
}

fn flows_moved(machine: &SimMachine<Even>) -> (u64, u64) {
    let flows = machine.workers().filter_map(|lane| lane.flows.as_ref());
    flows.fold((0, 0), |(left, home), flows| (left + flows.left, home + flows.returned))
}

#[test]
fn flows_leave_and_come_home_and_no_packet_is_lost_doubled_or_overtaken() {
    let machine = run_offloading(|_| {});
    let (left, home) = flows_moved(&machine);
    assert!(left > 200 && home > 200 && machine.migrator.arrived > 50, "{left} left, {home} home");
    assert_eq!(faults(&machine), (0, 0, false));
}

#[test]
fn a_flow_that_comes_home_before_its_packets_were_processed_is_noticed() {
    let machine = run_offloading(|machine| {
        for lane in &mut machine.lanes {
            let last = lane.flows.as_ref().map_or(0, |flows| flows.messages);
            if last > 0 {
                lane.inbox.push_front(Message::Cycled(last));
            }
        }
    });
    let (lost, duplicated, reordered) = faults(&machine);
    assert!(reordered, "packets at home overtake those that are away");
    assert_eq!((lost, duplicated), (0, 0));
}
