//! Regular turns of shards: each has one in a round of half a second, for which an idle lane wakes up rarely.

use std::time::Duration;

use rheostat_base::Time;
use rheostat_packet::BURST;
use rheostat_run::TimeSource;
use rheostat_testkit::datagrams::Datagrams;
use rheostat_testkit::world::{Setup, World};

/// How long a round takes.
const ROUND: Duration = Duration::from_millis(512);
const SHARDS: usize = 64;

fn world(packets: u64) -> World {
    let setup = Setup { shards: SHARDS, time: TimeSource::Poll, ..Setup::lossless(1) };
    World::open(&setup, Box::new(Datagrams::new(packets as u16, packets)))
}

/// When the lane has to be polled next, after a poll now.
fn next(world: &mut World) -> Time {
    world.lanes[0].poll(world.now).next_deadline.expect("a lane with shards has turns to give")
}

/// Flows in the lane's shards.
fn flows(world: &World) -> usize {
    world.lanes[0].shards().iter().map(|shard| shard.table.counts().live as usize).sum()
}

#[test]
fn an_idle_lane_wakes_rarely_and_ends_all_flows_in_a_round() {
    let mut world = world(1_000);
    while world.deliver() + world.poll(0) > 0 {}
    assert_eq!(flows(&world), 1_000, "each packet is the first of a flow");
    // Datagrams without an answer live for two minutes; the wheel's ticks are of half a second.
    let (end, mut wakes) = (Time::from_secs(121) + ROUND, 0);
    let calm = Time::from_secs(100);
    while world.now < end {
        world.now = next(&mut world);
        wakes += u64::from(world.now < calm);
    }
    assert_eq!(flows(&world), 0, "every shard has had its turn");
    let rounds = calm.as_nanos() / ROUND.as_nanos() as u64;
    let rows = SHARDS as u64 / 16;
    assert!((rounds * rows..=(rounds + 2) * rows).contains(&wakes), "{wakes} in {rounds} rounds");
}

#[test]
fn a_lane_with_packets_gives_one_shard_its_turn_at_a_time() {
    let mut world = world(8 * BURST as u64);
    assert_eq!(world.deliver(), 8 * BURST);
    assert_eq!(world.poll(0), BURST);
    let turn = ROUND / SHARDS as u32;
    for _ in 1..8 {
        world.now += turn;
        assert_eq!(next(&mut world), world.now + turn);
    }
    // No packet is left.
    world.now += turn;
    assert_eq!(next(&mut world), world.now + turn * 16);
}
