//! Connections move with their shards.

use std::time::Duration;

use rheostat_serve::echo::Echo;
use rheostat_tcp::CloseReason;

use crate::rig::{Plan, Rig, SHARDS};

/// Bytes that a client sends every half millisecond.
const PIECE: usize = 1_000;
/// Moves at least, unless the environment variable `RHEO_CONNECTION_MOVES` wants another number (`.ci/soak connections`).
const MOVES: u32 = 500;

#[test]
fn byte_streams_stay_intact_while_their_shards_move_hundreds_of_times() {
    let wanted =
        std::env::var("RHEO_CONNECTION_MOVES").ok().map(|text| text.parse().expect("a number"));
    let wanted = wanted.unwrap_or(MOVES);
    let mut rig = Rig::new(Echo, Plan { lanes: 3, ..Plan::default() });
    let data: Vec<u8> =
        (0..wanted * 800).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let mut clients: Vec<_> = (0..40).map(|n| rig.connect(3_000 + n)).collect();
    let mut pieces = data.chunks(PIECE);
    let (mut moves, mut turn) = (0, 0_u64);
    while clients.iter().any(|client| client.closed.is_none()) {
        // A piece each at a time, so that it takes a while.
        let piece = pieces.next();
        for client in &mut clients {
            client.outgoing.extend_from_slice(piece.unwrap_or_default());
            client.finishes = piece.is_none();
        }
        for _ in 0..4 {
            turn = turn
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let shard = (turn >> 33) as u16 % SHARDS as u16;
            let lane = (turn >> 49) as u16 % 3;
            moves += u32::from(rig.move_shard(shard, lane));
        }
        rig.step(&mut clients);
        assert!(
            rig.now < rheostat_base::Time::from_secs(600 + u64::from(wanted)),
            "all come to an end"
        );
    }
    assert!(moves >= wanted, "{moves} moves");
    for client in &clients {
        assert!(client.received == data, "{} of {} bytes", client.received.len(), data.len());
        assert_eq!(client.closed, Some(CloseReason::Finished));
    }
    let totals = rig.control.totals();
    assert!(totals.moved_connections >= u64::from(wanted), "{totals:?}");
    assert_eq!((totals.accepted, totals.reset, totals.aborted), (40, 0, 0));
    assert_eq!(totals.retransmitted, 0, "nothing was lost, so nothing is sent again");
    println!("{moves} moves of shards, {} of connections", totals.moved_connections);
    rig.finish();
}

#[test]
fn timers_go_on_in_the_lane_that_gets_the_shard() {
    let mut rig = Rig::new(Echo, Plan::default());
    let mut client = [rig.connect(3_000)];
    rig.pass(&mut client, Duration::from_millis(100));
    client[0].outgoing = b"a request".to_vec();
    let now = rig.now;
    client[0].tick(now);
    let frame = client[0].poll_frame(now).expect("the request");
    rig.inject(frame, 0);
    // The client is gone; the reply is not acknowledged.
    rig.step(&mut []);
    assert_eq!(rig.stray.len(), 1);
    for lane in [1, 0, 1] {
        let moved = (0..SHARDS as u16).filter(|shard| rig.move_shard(*shard, lane)).count();
        assert!(moved >= SHARDS / 2);
        rig.pass(&mut [], Duration::from_millis(3));
    }
    assert!(rig.control.totals().moved_connections >= 2);
    rig.pass(&mut [], Duration::from_secs(2));
    // After 200, 600 and 1,400 ms.
    assert_eq!(rig.stray.len(), 4, "the reply was sent again");
    rig.finish();
}
