//! The plain interface: reads and writes in pieces, peeks, half closes, wakes, panics.

use std::io::{IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rheostat_base::{LaneId, ShardId};
use rheostat_serve::{ConnectionId, Handler, OutgoingConfig, SocketEvent, Sockets};
use rheostat_tcp::{CloseReason, ReadError, WriteError};

use crate::rig::{Plan, Rig};

type Log = Arc<Mutex<Vec<String>>>;

/// Answers each line with `<number> <line>`: written in pieces; panics at `panic`, wakes itself at `wake`.
struct Lines {
    log: Log,
}

impl Handler for Lines {
    /// Lines answered.
    type Data = u32;
    type Worker = Vec<u8>;

    fn worker(&self, _: LaneId) -> Vec<u8> {
        Vec::new()
    }

    fn accept(&self, _: &mut Vec<u8>, local: SocketAddr, peer: SocketAddr) -> u32 {
        self.log.lock().unwrap().push(format!("accept {local} {peer}"));
        0
    }

    fn handle(
        &self,
        worker: &mut Vec<u8>,
        id: ConnectionId,
        event: SocketEvent,
        sockets: &mut Sockets<'_, u32>,
    ) {
        self.log.lock().unwrap().push(format!("{event:?}"));
        match event {
            SocketEvent::Readable => while answer(id, worker, sockets) {},
            SocketEvent::PeerFinished => {
                assert_eq!(sockets.read(id, &mut [0]), Ok(0));
                assert!(sockets.is_at_end(id));
                sockets.finish(id);
                assert_eq!(sockets.write(id, b"late"), Err(WriteError::Closed));
            }
            SocketEvent::Woken => {
                sockets.write(id, b"awake\n").unwrap();
            }
            SocketEvent::Closed(_) => {
                assert_eq!(sockets.info(id).unwrap().unread, 0);
            }
            _ => {}
        }
    }
}

fn answer(id: ConnectionId, line: &mut Vec<u8>, sockets: &mut Sockets<'_, u32>) -> bool {
    line.clear();
    line.extend(sockets.peek(id).concat());
    let Some(end) = line.iter().position(|byte| *byte == b'\n') else { return false };
    line.truncate(end + 1);
    // The first byte alone, and the rest: read in two buffers, without the end.
    let (mut first, mut rest) = ([0; 1], vec![0; end - 1]);
    let mut buffers = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut rest)];
    assert_eq!(sockets.read_vectored(id, &mut buffers), Ok(end));
    assert_eq!(sockets.skip(id, 1), 1);
    match &line[..end] {
        b"panic" => panic!("as it was told to"),
        b"wake" => sockets.wake(id),
        b"abort" => sockets.abort(id),
        _ => {}
    }
    let data = sockets.data(id).unwrap();
    *data += 1;
    let number = data.to_string();
    let pieces = [IoSlice::new(number.as_bytes()), IoSlice::new(b" "), IoSlice::new(line)];
    match sockets.write_vectored(id, &pieces) {
        Ok(written) => assert_eq!(written, number.len() + 1 + line.len()),
        Err(error) => assert_eq!((error, &line[..end]), (WriteError::Closed, &b"abort"[..])),
    }
    assert_eq!(
        sockets.read(ConnectionId { generation: id.generation + 1, ..id }, &mut [0]),
        Err(ReadError::Closed)
    );
    true
}

fn rig() -> (Rig, Log) {
    let log = Log::default();
    let handler = Lines { log: log.clone() };
    (Rig::with_handler(handler, OutgoingConfig::default(), Plan::default()), log)
}

#[test]
fn events_come_in_order_and_lines_are_answered() {
    let (mut rig, log) = rig();
    let mut clients = [rig.connect(4_000)];
    clients[0].outgoing = b"one\ntwo\nthr".to_vec();
    rig.pass(&mut clients, Duration::from_millis(50));
    assert_eq!(clients[0].received, b"1 one\n2 two\n");
    clients[0].outgoing = b"ee\n".to_vec();
    clients[0].finishes = true;
    rig.run_until(&mut clients, Duration::from_secs(5), |clients| clients[0].closed.is_some());
    assert_eq!(clients[0].received, b"1 one\n2 two\n3 three\n");
    assert_eq!(clients[0].closed, Some(CloseReason::Finished));
    rig.pass(&mut clients, Duration::from_secs(1));
    let expected = [
        "accept 10.0.0.1:80 10.0.0.2:4000",
        "Accepted",
        "Readable",
        "Readable",
        "PeerFinished",
        "Closed(Finished)",
    ];
    assert_eq!(*log.lock().unwrap(), expected);
    rig.finish();
}

#[test]
fn a_connection_wakes_itself_once() {
    let (mut rig, log) = rig();
    let mut clients = [rig.connect(4_000)];
    clients[0].outgoing = b"wake\n".to_vec();
    rig.pass(&mut clients, Duration::from_millis(100));
    assert_eq!(clients[0].received, b"1 wake\nawake\n");
    assert_eq!(log.lock().unwrap().iter().filter(|line| *line == "Woken").count(), 1);
    rig.finish();
}

#[test]
fn a_panic_costs_its_connection_and_nothing_else() {
    let (mut rig, log) = rig();
    let mut clients = [rig.connect(4_000), rig.connect(4_001)];
    clients[0].outgoing = b"first\n".to_vec();
    clients[1].outgoing = b"second\n".to_vec();
    rig.pass(&mut clients, Duration::from_millis(50));
    clients[0].outgoing = b"panic\n".to_vec();
    rig.pass(&mut clients, Duration::from_millis(50));
    assert_eq!(clients[0].closed, Some(CloseReason::Reset));
    clients[1].outgoing = b"third\n".to_vec();
    rig.pass(&mut clients, Duration::from_millis(50));
    assert_eq!(clients[1].received, b"1 second\n2 third\n");
    assert_eq!(clients[1].closed, None);
    assert_eq!(rig.control.totals().panics, 1);
    assert_eq!(rig.control.connections(), 1);
    assert!(log.lock().unwrap().contains(&"Closed(Aborted)".to_owned()), "it learns of the end");
    rig.finish();
}

#[test]
fn an_aborted_connection_is_reset_and_its_name_means_nothing_any_more() {
    let (mut rig, _log) = rig();
    let mut clients = [rig.connect(4_000)];
    clients[0].outgoing = b"abort\n".to_vec();
    rig.pass(&mut clients, Duration::from_millis(50));
    assert_eq!(clients[0].closed, Some(CloseReason::Reset));
    assert_eq!(rig.control.connections(), 0);
    rig.finish();
}

/// Writes down the shards it is called for, and writes to all connections it knows there.
struct Called {
    shards: Arc<Mutex<Vec<u16>>>,
    known: Mutex<Vec<ConnectionId>>,
}

impl Handler for Called {
    type Data = ();
    type Worker = ();

    fn worker(&self, _: LaneId) {}

    fn accept(&self, (): &mut (), _: SocketAddr, _: SocketAddr) {}

    fn handle(&self, (): &mut (), id: ConnectionId, event: SocketEvent, _: &mut Sockets<'_, ()>) {
        if event == SocketEvent::Accepted {
            self.known.lock().unwrap().push(id);
        }
    }

    fn called(&self, (): &mut (), shard: ShardId, sockets: &mut Sockets<'_, ()>) {
        self.shards.lock().unwrap().push(shard.0);
        let known = self.known.lock().unwrap();
        for id in known.iter().filter(|id| id.shard == shard) {
            assert_eq!(sockets.write(*id, b"!"), Ok(1));
        }
        drop(known);
        assert_ne!(shard.0, PANICS, "as it was told to");
    }
}

/// A shard for which the handler panics.
const PANICS: u16 = 5;

#[test]
fn calls_reach_the_lane_that_has_the_shard_wherever_it_moves() {
    let shards = Arc::<Mutex<Vec<u16>>>::default();
    let handler = Called { shards: shards.clone(), known: Mutex::default() };
    let plan = Plan { lanes: 3, ..Plan::default() };
    let mut rig = Rig::with_handler(handler, OutgoingConfig::default(), plan);
    let mut clients: Vec<_> = (2_000..2_040).map(|port| rig.connect(port)).collect();
    rig.pass(&mut clients, Duration::from_millis(50));
    let all: Vec<u16> = (0..rig.control.shards() as u16).collect();
    for round in 1..=5 {
        // Half of the calls come before the shards set off, and half while they are on their way.
        let (early, late) = all.split_at(all.len() / 2);
        early.iter().for_each(|shard| rig.control.call(ShardId(*shard)));
        for shard in &all {
            rig.move_shard(*shard, round % 3);
        }
        late.iter().chain(late).for_each(|shard| rig.control.call(ShardId(*shard)));
        rig.pass(&mut clients, Duration::from_millis(20));
        let mut called = std::mem::take(&mut *shards.lock().unwrap());
        called.sort_unstable();
        assert_eq!(called, all, "each once in round {round}");
        assert!(clients.iter().all(|client| client.received == vec![b'!'; usize::from(round)]));
    }
    assert_eq!(rig.control.totals().panics, 5, "a panic costs no connection");
    assert_eq!(rig.control.totals().aborted, 0);
    rig.finish();
}
