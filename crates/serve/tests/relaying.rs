//! The relay: both directions, both ways to end, slow readers, and pairs that move.

use std::net::SocketAddr;
use std::time::Duration;

use rheostat_serve::OutgoingConfig;
use rheostat_serve::relay::Relay;
use rheostat_tcp::CloseReason;

use crate::rig::{Client, LOCAL_V6, Plan, Rig, SHARDS};

const TARGET: u16 = 9_000;
/// Virtual time that anything may take, in steps of half a millisecond.
const STEPS: usize = 200_000;

fn rig(targets: &[&str], plan: Plan) -> Rig {
    let targets: Vec<SocketAddr> = targets.iter().map(|text| text.parse().unwrap()).collect();
    let mut rig = Rig::with_handler(Relay::new(targets), OutgoingConfig::default(), plan);
    rig.accepting = Some(TARGET);
    rig
}

fn bytes(len: u32, seed: u32) -> Vec<u8> {
    (0..len).map(|at| ((at ^ seed).wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// Steps until `is_done`.
fn run(
    rig: &mut Rig,
    clients: &mut [Client],
    mut is_done: impl FnMut(&mut Rig, &[Client]) -> bool,
) {
    for _ in 0..STEPS {
        if is_done(rig, clients) {
            return;
        }
        rig.step(clients);
    }
    panic!("not done");
}

#[test]
fn bytes_pass_both_ways_and_each_direction_ends_by_itself() {
    for target in ["10.0.0.2:9000", "[fd00::2]:9000"] {
        let mut rig = rig(&[target], Plan::default());
        let is_v4 = target.starts_with('1');
        let client = match is_v4 {
            true => rig.connect(5_000),
            false => Client::connect(LOCAL_V6, "fd00::5", 5_000, None, rig.now),
        };
        let mut clients = [client];
        let (up, down) = (bytes(1_000_000, 1), bytes(700_000, 2));
        clients[0].outgoing = up.clone();
        clients[0].finishes = true;
        run(&mut rig, &mut clients, |rig, _| rig.peers.iter().any(|peer| peer.peer_finished));
        assert!(rig.peers[0].received == up, "{target}: {} bytes", rig.peers[0].received.len());
        assert!(!clients[0].peer_finished, "the other direction goes on");
        rig.peers[0].outgoing = down.clone();
        rig.peers[0].finishes = true;
        run(&mut rig, &mut clients, |rig, clients| {
            clients[0].closed.is_some() && rig.peers[0].closed.is_some()
        });
        assert!(clients[0].received == down);
        assert_eq!(clients[0].closed, Some(CloseReason::Finished));
        assert_eq!(rig.peers[0].closed, Some(CloseReason::Finished));
        rig.pass(&mut clients, Duration::from_millis(10));
        let totals = rig.control.totals();
        assert_eq!((totals.accepted, totals.connected, totals.finished), (1, 1, 2));
        assert_eq!((totals.bytes_in, totals.bytes_out), (1_700_000, 1_700_000));
        assert_eq!(totals.retransmitted, 0);
        rig.finish();
    }
}

#[test]
fn a_peer_that_does_not_read_stops_the_one_that_sends() {
    let mut rig = rig(&["10.0.0.2:9000"], Plan::default());
    let mut clients = [rig.connect(5_000)];
    rig.window = 64 << 10;
    run(&mut rig, &mut clients, |rig, _| !rig.peers.is_empty());
    rig.peers[0].reads = false;
    let up = bytes(8_000_000, 3);
    clients[0].outgoing = up.clone();
    clients[0].finishes = true;
    rig.pass(&mut clients, Duration::from_secs(20));
    let left = clients[0].outgoing.len();
    assert!(left > 6_000_000, "{left} bytes wait at their source");
    assert!(rig.control.memory() <= 4 * (256 << 10), "{} bytes", rig.control.memory());
    rig.peers[0].reads = true;
    run(&mut rig, &mut clients, |rig, _| rig.peers[0].peer_finished);
    assert!(rig.peers[0].received == up);
    rig.peers[0].finishes = true;
    run(&mut rig, &mut clients, |_, clients| clients[0].closed.is_some());
    rig.finish();
}

#[test]
fn what_a_closed_connection_has_left_unread_still_arrives() {
    let mut rig = rig(&["10.0.0.2:9000"], Plan::default());
    let mut clients = [rig.connect(5_000)];
    rig.window = 16 << 10;
    run(&mut rig, &mut clients, |rig, _| !rig.peers.is_empty());
    // The target has nothing to send, and reads late: the client's connection is over before.
    rig.peers[0].reads = false;
    rig.peers[0].finishes = true;
    // More than the relay's buffer for the target and the target's own take.
    let up = bytes(110_000, 4);
    clients[0].outgoing = up.clone();
    clients[0].finishes = true;
    run(&mut rig, &mut clients, |_, clients| clients[0].closed.is_some());
    assert_eq!(clients[0].closed, Some(CloseReason::Finished));
    assert!(rig.peers[0].received.len() < up.len());
    rig.peers[0].reads = true;
    run(&mut rig, &mut clients, |rig, _| rig.peers[0].closed.is_some());
    assert!(rig.peers[0].received == up, "{} bytes", rig.peers[0].received.len());
    rig.finish();
}

#[test]
fn a_reset_of_one_side_resets_the_other() {
    for is_client in [true, false] {
        let mut rig = rig(&["10.0.0.2:9000"], Plan::default());
        let mut clients = [rig.connect(5_000)];
        run(&mut rig, &mut clients, |rig, _| !rig.peers.is_empty());
        rig.pass(&mut clients, Duration::from_millis(20));
        match is_client {
            true => clients[0].tcp.abort(),
            false => rig.peers[0].tcp.abort(),
        }
        run(&mut rig, &mut clients, |rig, clients| {
            clients[0].closed.is_some() && rig.peers[0].closed.is_some()
        });
        let other = if is_client { rig.peers[0].closed } else { clients[0].closed };
        assert_eq!(other, Some(CloseReason::Reset));
        assert_eq!(rig.control.connections(), 0);
        rig.finish();
    }
}

#[test]
fn a_target_that_does_not_answer_is_followed_by_the_next() {
    let plan = Plan::default();
    let mut outgoing = OutgoingConfig::default();
    outgoing.tcp.connect_timeout = Duration::from_secs(5);
    let targets = ["10.0.0.2:9001", "10.0.0.2:9000"].map(|text| text.parse().unwrap());
    let mut rig = Rig::with_handler(Relay::new(targets.to_vec()), outgoing, plan);
    rig.accepting = Some(TARGET);
    let mut clients = [rig.connect(5_000)];
    clients[0].outgoing = b"first words".to_vec();
    run(&mut rig, &mut clients, |rig, _| {
        rig.peers.first().is_some_and(|peer| peer.received == b"first words")
    });
    let totals = rig.control.totals();
    assert_eq!((totals.connect_failed, totals.connected), (1, 1));
    rig.finish();
}

#[test]
fn without_a_target_that_can_be_reached_the_client_is_reset() {
    // No route leads there.
    let mut rig = rig(&["203.0.113.1:9000"], Plan::default());
    let mut clients = [rig.connect(5_000)];
    run(&mut rig, &mut clients, |_, clients| clients[0].closed.is_some());
    assert_eq!(clients[0].closed, Some(CloseReason::Reset));
    assert_eq!(rig.control.totals().connect_failed, 1);
    rig.finish();
}

#[test]
fn pairs_stay_together_and_intact_while_their_shards_move() {
    let mut rig = rig(&["10.0.0.2:9000"], Plan { lanes: 3, ..Plan::default() });
    let mut clients: Vec<_> = (0..20).map(|n| rig.connect(5_000 + n)).collect();
    let up = bytes(300_000, 5);
    for client in &mut clients {
        client.outgoing = up.clone();
        client.finishes = true;
    }
    let (mut turn, mut moves) = (0_u64, 0);
    run(&mut rig, &mut clients, |rig, clients| {
        for _ in 0..4 {
            turn = turn
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let (shard, lane) = ((turn >> 33) as u16 % SHARDS as u16, (turn >> 49) as u16 % 3);
            moves += u32::from(rig.move_shard(shard, lane));
        }
        for peer in &mut rig.peers {
            // What arrives goes back.
            let back = std::mem::take(&mut peer.received);
            peer.outgoing.extend(back);
            peer.finishes |= peer.peer_finished && peer.closed.is_none();
        }
        clients.iter().all(|client| client.closed.is_some())
    });
    assert!(moves > 100, "{moves} moves");
    for client in &clients {
        assert!(client.received == up, "{} bytes", client.received.len());
        assert_eq!(client.closed, Some(CloseReason::Finished));
    }
    // The old lane's last segments and the new one's first may change places on their ways out.
    let totals = rig.control.totals();
    assert!(totals.retransmitted <= totals.moved_connections, "{totals:?}");
    rig.finish();
}

#[test]
fn draining_ends_both_directions_behind_what_has_arrived() {
    let mut rig = rig(&["10.0.0.2:9000"], Plan::default());
    let mut clients = [rig.connect(5_000)];
    clients[0].outgoing = b"half a sent".to_vec();
    run(&mut rig, &mut clients, |rig, _| rig.peers.iter().any(|peer| !peer.received.is_empty()));
    rig.control.drain();
    run(&mut rig, &mut clients, |rig, clients| {
        clients[0].peer_finished && rig.peers[0].peer_finished
    });
    assert_eq!(rig.peers[0].received, b"half a sent");
    clients[0].finishes = true;
    rig.peers[0].finishes = true;
    run(&mut rig, &mut clients, |rig, _| rig.control.connections() == 0);
    assert_eq!(clients[0].closed, Some(CloseReason::Finished));
    rig.finish();
}
