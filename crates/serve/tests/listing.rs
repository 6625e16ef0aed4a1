//! Connections of a running service, as lists show them.
//!
//! Timed: threads.

use std::time::Duration;

use rheostat_base::{LaneId, ShardId};
use rheostat_serve::echo::Echo;
use rheostat_serve::{ConnectionFilter, ConnectionList, ServeConfig, ServeControl};
use rheostat_tcp::State;

use crate::rig::{Client, Plan, Rig};

/// Asks in a thread of its own, while the lanes go on.
pub(crate) fn list(
    rig: &mut Rig,
    clients: &mut [Client],
    filter: ConnectionFilter,
    most: usize,
) -> ConnectionList {
    let control: ServeControl = rig.control.clone();
    let asks = std::thread::spawn(move || control.list(filter, most, Duration::from_secs(60)));
    while !asks.is_finished() {
        rig.step(clients);
    }
    asks.join().unwrap()
}

#[test]
fn a_list_shows_what_is_known_of_each_connection() {
    let mut rig = Rig::new(Echo, Plan::default());
    let mut clients: Vec<_> = (0..3).map(|n| rig.connect(4_000 + n)).collect();
    clients[0].outgoing = vec![7; 100_000];
    rig.pass(&mut clients, Duration::from_millis(300));
    // One that takes nothing.
    clients[1].reads = false;
    clients[1].outgoing = vec![8; 1_000_000];
    rig.pass(&mut clients, Duration::from_secs(3));
    let all = list(&mut rig, &mut clients, ConnectionFilter::default(), 10);
    assert_eq!((all.records.len(), all.matched, all.silent), (3, 3, 0));
    let of = |port: u16| *all.records.iter().find(|seen| seen.remote.port() == port).unwrap();
    let busy = of(4_001);
    let info = busy.info.unwrap();
    assert_eq!((busy.state, busy.local.to_string()), (State::Established, "10.0.0.1:80".into()));
    assert!(info.unread > 0, "{info:?}");
    assert!(info.unsent > 0 && info.unsent <= info.unacknowledged, "{info:?}");
    assert_eq!(info.send_window, 0, "{info:?}");
    assert!(info.round_trip.unwrap() <= Duration::from_millis(50), "{info:?}");
    assert!(info.congestion_window > 10_000);
    let quiet = of(4_002);
    assert_eq!(quiet.info.unwrap().unread, 0);
    assert!(quiet.idle >= Duration::from_secs(3), "{:?}", quiet.idle);
    assert!(usize::from(quiet.shard.0) < crate::rig::SHARDS);
    rig.finish();
}

#[test]
fn filters_narrow_a_list() {
    let mut rig = Rig::new(Echo, Plan::default());
    let mut clients: Vec<_> = (0..40).map(|n| rig.connect(4_000 + n)).collect();
    rig.pass(&mut clients, Duration::from_millis(50));
    for client in &mut clients[..10] {
        client.finishes = true;
    }
    rig.pass(&mut clients, Duration::from_millis(50));
    let default = ConnectionFilter::default;
    let mut count = |filter| list(&mut rig, &mut clients, filter, 100).records.len();
    assert_eq!(count(default()), 30);
    assert_eq!(count(ConnectionFilter { remote_port: Some(4_030), ..default() }), 1);
    assert_eq!(count(ConnectionFilter { remote_port: Some(4_003), ..default() }), 0);
    assert_eq!(count(ConnectionFilter { local_port: Some(80), ..default() }), 30);
    assert_eq!(count(ConnectionFilter { local_port: Some(81), ..default() }), 0);
    assert_eq!(count(ConnectionFilter { remote: "10.0.0.2".parse().ok(), ..default() }), 30);
    assert_eq!(count(ConnectionFilter { local: "10.0.0.2".parse().ok(), ..default() }), 0);
    assert_eq!(count(ConnectionFilter { states: vec![State::FinWait1], ..default() }), 0);
    let of_lanes =
        (0..2).map(|lane| count(ConnectionFilter { lane: Some(LaneId(lane)), ..default() }));
    let of_lanes: Vec<_> = of_lanes.collect();
    assert_eq!(of_lanes.iter().sum::<usize>(), 30);
    assert!(of_lanes.iter().all(|lane| *lane > 0), "{of_lanes:?}");
    let of_shards =
        (0..16).map(|shard| count(ConnectionFilter { shard: Some(ShardId(shard)), ..default() }));
    assert_eq!(of_shards.sum::<usize>(), 30);
    rig.finish();
}

#[test]
fn connections_in_time_wait_are_listed_when_they_are_asked_for() {
    let mut rig = Rig::new(Echo, Plan::default());
    let mut clients: Vec<_> = (0..4).map(|n| rig.connect(4_000 + n)).collect();
    rig.pass(&mut clients, Duration::from_millis(50));
    // We close first.
    rig.control.drain();
    rig.pass(&mut clients, Duration::from_secs(1));
    for client in &mut clients {
        client.finishes = true;
    }
    rig.pass(&mut clients, Duration::from_secs(1));
    let filter = ConnectionFilter { states: vec![State::TimeWait], ..ConnectionFilter::default() };
    let waiting = list(&mut rig, &mut clients, filter, 10);
    assert_eq!((waiting.records.len(), rig.control.time_wait()), (4, 4));
    assert!(waiting.records.iter().all(|record| record.info.is_none()));
    assert_eq!(list(&mut rig, &mut clients, ConnectionFilter::default(), 10).matched, 0);
    rig.finish();
}

#[test]
fn ten_thousand_connections_are_listed_once_each_as_many_as_wanted_while_shards_move() {
    let limits = ServeConfig { half_open: 20_000, ..ServeConfig::default() };
    let mut rig = Rig::new(Echo, Plan { lanes: 3, limits, ..Plan::default() });
    let mut none = [];
    for port in 0..10_000 {
        // Clients that are never heard of again.
        let mut client = rig.connect(1_024 + port);
        let now = rig.now;
        let syn = client.poll_frame(now).unwrap();
        rig.inject(syn, port.into());
        if port % 100 == 0 {
            rig.step(&mut none);
        }
    }
    rig.pass(&mut none, Duration::from_millis(20));
    // The handshakes stay half-open.
    let half_open = rig.control.connections();
    assert_eq!(half_open, 10_000);
    let mut turn = 0_u16;
    let control = rig.control.clone();
    for (most, expected) in [(20_000, half_open), (100, 100), (0, 0)] {
        let control = control.clone();
        let asks = std::thread::spawn(move || {
            control.list(ConnectionFilter::default(), most, Duration::from_secs(60))
        });
        let mut is_moving = most == 100;
        while !asks.is_finished() {
            if is_moving {
                rig.move_shard(turn % 16, turn % 3);
                turn = turn.wrapping_mul(25_173).wrapping_add(13_849);
                is_moving = turn != 0;
            }
            rig.step(&mut none);
        }
        let found = asks.join().unwrap();
        assert_eq!((found.records.len(), found.silent), (expected, 0));
    }
    let visits = std::thread::spawn(move || {
        let mut peers = std::collections::BTreeSet::new();
        let silent =
            control.visit(ConnectionFilter::default(), Duration::from_secs(60), |record| {
                peers.insert(record.remote);
            });
        (peers.len(), silent)
    });
    while !visits.is_finished() {
        rig.step(&mut none);
    }
    assert_eq!(visits.join().unwrap(), (half_open, 0));
    rig.finish();
}

#[test]
fn a_lane_that_does_not_answer_is_counted() {
    let rig = Rig::new(Echo, Plan::default());
    let found = rig.control.list(ConnectionFilter::default(), 10, Duration::from_millis(1));
    assert_eq!((found.silent, found.matched), (2, 0));
    rig.finish();
}
