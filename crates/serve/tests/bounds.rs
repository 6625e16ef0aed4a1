//! What the service refuses, and what it counts.

use std::time::Duration;

use rheostat_base::DropReason;
use rheostat_serve::ServeConfig;
use rheostat_serve::echo::Echo;
use rheostat_tcp::{CloseReason, Header, SequenceNumber, State};

use crate::rig::{Client, Plan, Rig};

const SECOND: Duration = Duration::from_secs(1);
/// What a connection may have beyond a limit: the piece that is read at a time while memory is scarce, and room for its reply.
const SCARCE_PIECE: usize = 8 << 10;

fn limits(limits: ServeConfig) -> Plan {
    Plan { limits, ..Plan::default() }
}

fn dropped(rig: &Rig, reason: DropReason) -> u64 {
    rig.sample().dropped[reason as usize]
}

fn established(clients: &[Client]) -> usize {
    clients.iter().filter(|client| client.tcp.state() == State::Established).count()
}

#[test]
fn no_more_connections_than_may_be_are_accepted_and_places_come_back() {
    let mut rig = Rig::new(Echo, limits(ServeConfig { connections: 3, ..ServeConfig::default() }));
    let mut clients: Vec<_> = (0..5).map(|n| rig.connect(1_000 + n)).collect();
    rig.pass(&mut clients, SECOND / 2);
    assert_eq!((established(&clients), rig.control.connections()), (3, 3));
    assert_eq!(dropped(&rig, DropReason::ConnectionLimit), 2);
    for client in clients.iter_mut().filter(|client| client.tcp.state() == State::Established) {
        client.finishes = true;
    }
    // The others try again.
    rig.run_until(&mut clients, 10 * SECOND, |all| established(all) == 2);
    rig.finish();
}

#[test]
fn connections_in_time_wait_answer_and_are_forgotten_in_the_end() {
    let mut rig = Rig::new(Echo, Plan::default());
    rig.control.drain();
    let mut client = [rig.connect(1_000)];
    rig.pass(&mut client, SECOND / 10);
    assert_eq!(client[0].closed, Some(CloseReason::Refused), "nothing is accepted any more");
    rig.finish();
    let mut rig = Rig::new(Echo, Plan::default());
    let mut clients = [rig.connect(1_000), rig.connect(1_001)];
    rig.pass(&mut clients, SECOND / 10);
    // The end of the service closes first, and so keeps them.
    rig.control.drain();
    rig.pass(&mut clients, SECOND);
    clients.iter_mut().for_each(|client| client.finishes = true);
    rig.pass(&mut clients, SECOND);
    assert_eq!((rig.control.connections(), rig.control.time_wait()), (0, 2));
    // A repeated FIN is acknowledged.
    let fin = Header {
        seq: SequenceNumber(0),
        ack: Some(SequenceNumber(0)),
        fin: true,
        ..Header::default()
    };
    let frame = clients[0].frame(&fin, b"");
    rig.inject(frame, 0);
    rig.step(&mut []);
    assert_eq!(rig.stray.len(), 1);
    rig.pass(&mut [], 61 * SECOND);
    assert_eq!(rig.control.time_wait(), 0);
    rig.finish();
}

#[test]
fn segments_of_no_connection_are_reset_and_counted() {
    let mut rig = Rig::new(Echo, Plan::default());
    let client = rig.connect(1_000);
    let header = Header { ack: Some(SequenceNumber(77)), ..Header::default() };
    rig.inject(client.frame(&header, b"data"), 0);
    let mut wrong = client.frame(&header, b"data");
    let last = wrong.len() - 1;
    wrong[last] ^= 1;
    // The frame is padded behind four bytes of data.
    let at = wrong.len().min(14 + 20 + 20 + 3);
    wrong[at] ^= 1;
    rig.inject(wrong, 0);
    let syn_fin = Header { syn: true, fin: true, ..Header::default() };
    rig.inject(client.frame(&syn_fin, b""), 0);
    let reset = Header { rst: true, ..Header::default() };
    rig.inject(client.frame(&reset, b""), 0);
    rig.step(&mut []);
    assert_eq!(dropped(&rig, DropReason::NoConnection), 2);
    assert_eq!(dropped(&rig, DropReason::TcpInvalid), 1, "SYN with FIN");
    assert_eq!(dropped(&rig, DropReason::TcpChecksum), 1);
    assert_eq!((rig.control.totals().resets_sent, rig.stray.len()), (2, 2));
    assert_eq!(rig.control.connections(), 0);
    rig.finish();
}

#[test]
fn what_is_left_at_the_end_of_a_run_is_reset() {
    let mut rig = Rig::new(Echo, Plan::default());
    let mut clients = [rig.connect(1_000), rig.connect(1_001)];
    rig.pass(&mut clients, SECOND / 10);
    let now = rig.now;
    let sent = rig.finish();
    assert_eq!(sent.len(), 2);
    for frame in &sent {
        assert!(clients.iter_mut().any(|client| client.take(frame, now)));
    }
    let closed = clients.each_ref().map(|client| client.closed);
    assert_eq!(closed, [Some(CloseReason::Reset); 2]);
}

#[test]
fn short_of_memory_windows_close_and_new_connections_wait_while_those_that_are_there_go_on() {
    const MEMORY: usize = 96 << 10;
    let limits = ServeConfig { memory: MEMORY, shard_memory: MEMORY, ..ServeConfig::default() };
    let mut rig = Rig::new(Echo, Plan { limits, ..Plan::default() });
    let data: Vec<u8> = (0..400_000_u32).map(|at| (at.wrapping_mul(97) >> 5) as u8).collect();
    let mut clients: Vec<_> = (0..2).map(|n| rig.connect(1_000 + n)).collect();
    for client in &mut clients {
        (client.outgoing, client.reads) = (data.clone(), false);
    }
    // Not for so long that one of them is reset to make room.
    rig.pass(&mut clients, SECOND);
    assert!(rig.control.is_under_pressure(), "{} bytes", rig.control.memory());
    // Beyond the limit is only the piece that an application is in the middle of, on each connection.
    assert!(rig.control.memory() < MEMORY + 2 * (128 << 10), "{} bytes", rig.control.memory());
    let of_shards = rig.control.shard_memory();
    assert!(of_shards.iter().sum::<usize>() <= MEMORY + 2 * SCARCE_PIECE, "{of_shards:?}");
    clients.push(rig.connect(1_002));
    rig.pass(&mut clients, SECOND / 2);
    assert_eq!(established(&clients), 2);
    assert!(dropped(&rig, DropReason::ConnectionMemory) > 0);
    clients.iter_mut().for_each(|client| client.reads = true);
    rig.run_until(&mut clients, 300 * SECOND, |all| {
        all[..2].iter().all(|client| client.received.len() == data.len()) && established(all) == 3
    });
    assert!(clients[..2].iter().all(|client| client.received == data));
    clients.iter_mut().for_each(|client| client.finishes = true);
    rig.pass(&mut clients, SECOND);
    rig.finish();
}

#[test]
fn one_shard_cannot_have_the_memory_of_all() {
    let limits = ServeConfig { shard_memory: 32 << 10, ..ServeConfig::default() };
    let mut rig = Rig::new(Echo, Plan { limits, ..Plan::default() });
    let mut clients: Vec<_> = (0..64).map(|n| rig.connect(1_000 + n)).collect();
    clients[0].outgoing = vec![7; 400_000];
    clients[0].reads = false;
    rig.pass(&mut clients, 2 * SECOND);
    assert!(!rig.control.is_under_pressure() && established(&clients) == 64);
    let mut shards = rig.control.shard_memory();
    shards.sort_unstable();
    let most = (32 << 10) + SCARCE_PIECE;
    assert!((16 << 10..=most).contains(&shards[shards.len() - 1]), "{shards:?}");
    let dropped_before = dropped(&rig, DropReason::ConnectionMemory);
    clients.extend((0..64).map(|n| rig.connect(2_000 + n)));
    rig.pass(&mut clients, SECOND / 2);
    let refused = 128 - established(&clients);
    assert!((1..32).contains(&refused), "those of one shard of 16: {refused}");
    assert!(dropped(&rig, DropReason::ConnectionMemory) >= dropped_before + refused as u64);
    rig.finish();
}
