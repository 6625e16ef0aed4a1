//! Connections for threads, whose lanes run in virtual time: what is called here never waits.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::time::Duration;

use rheostat_base::DropReason;
use rheostat_serve::OutgoingConfig;
use rheostat_serve::blocking::{Blocking, BlockingConfig, BlockingStream};
use rheostat_tcp::{CloseReason, Header, SequenceNumber};

use crate::rig::{Client, PORT, Plan, Rig};

const SECOND: Duration = Duration::from_secs(1);

/// A service, a client that has sent `data`, and the service's end of its connection.
fn accepted(data: &[u8]) -> (Rig, [Client; 1], BlockingStream) {
    let sockets = Blocking::new(BlockingConfig::default());
    let mut rig = Rig::with_handler(sockets.handler(), OutgoingConfig::default(), Plan::default());
    sockets.run_by(rig.control.clone());
    let mut client = [rig.connect(1_000)];
    client[0].outgoing = data.to_vec();
    rig.pass(&mut client, SECOND / 10);
    let (stream, _) = sockets.listen(PORT).accept_timeout(SECOND).expect("it has arrived");
    (rig, client, stream)
}

#[test]
fn unread_bytes_in_the_pipe_or_behind_it_reset_a_dropped_stream() {
    // All in the pipe; some with the connection, as the pipe takes 64 KiB.
    for len in [2, 100_000] {
        let (mut rig, mut client, mut stream) = accepted(&vec![7; len]);
        stream.read_exact(&mut [0]).unwrap();
        stream.write_all(b"an answer that is lost").unwrap();
        drop(stream);
        rig.pass(&mut client, SECOND / 10);
        assert_eq!(client[0].closed, Some(CloseReason::Reset), "{len} bytes");
        assert_eq!(client[0].received, b"", "{len} bytes");
        rig.finish();
    }
}

#[test]
fn a_stream_that_is_dropped_when_everything_is_read_ends_behind_what_was_written() {
    let (mut rig, mut client, mut stream) = accepted(b"question");
    stream.read_exact(&mut [0; 8]).unwrap();
    stream.write_all(b"answer").unwrap();
    drop(stream);
    rig.pass(&mut client, SECOND / 10);
    assert_eq!(client[0].received, b"answer");
    assert!(client[0].peer_finished);
    // More arrives: nobody reads it.
    client[0].outgoing = b"more".to_vec();
    rig.pass(&mut client, SECOND / 10);
    assert_eq!(client[0].closed, Some(CloseReason::Reset));
    rig.finish();
}

#[test]
fn shutting_reads_down_discards_what_is_unread_and_what_comes() {
    let (mut rig, mut client, mut stream) = accepted(&[7; 100_000]);
    stream.shutdown(Shutdown::Read).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    // More than the buffers of both ends take.
    client[0].outgoing = vec![7; 2_000_000];
    rig.run_until(&mut client, 10 * SECOND, |all| {
        all[0].outgoing.is_empty() && all[0].tcp.unacknowledged() == 0
    });
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    stream.write_all(b"answer").unwrap();
    drop(stream);
    client[0].finishes = true;
    rig.pass(&mut client, SECOND);
    assert_eq!(
        (&client[0].received[..], client[0].closed),
        (&b"answer"[..], Some(CloseReason::Finished))
    );
    rig.finish();
}

#[test]
fn shutting_both_directions_down_ends_them_at_once() {
    let (mut rig, mut client, mut stream) = accepted(b"question");
    stream.shutdown(Shutdown::Both).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    assert_eq!(stream.write(b"more").unwrap_err().kind(), ErrorKind::BrokenPipe);
    rig.pass(&mut client, SECOND / 10);
    assert!(client[0].peer_finished);
    client[0].finishes = true;
    drop(stream);
    rig.pass(&mut client, SECOND);
    assert_eq!(client[0].closed, Some(CloseReason::Finished), "nothing was unread");
    rig.finish();
}

#[test]
fn segments_that_arrive_behind_a_reset_are_no_faults_of_their_sender() {
    let (mut rig, mut client, stream) = accepted(b"question");
    drop(stream);
    rig.pass(&mut client, SECOND / 10);
    assert_eq!(client[0].closed, Some(CloseReason::Reset));
    // What the client has sent before the reset arrived.
    let header = Header { ack: Some(SequenceNumber(77)), ..Header::default() };
    rig.inject(client[0].frame(&header, b"more"), 0);
    rig.step(&mut client);
    let dropped = rig.sample().dropped;
    assert_eq!(dropped[DropReason::NoConnection as usize], 1);
    assert_eq!(dropped[DropReason::TcpInvalid as usize], 0);
    rig.finish();
}
