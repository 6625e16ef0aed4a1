//! The client against servers, over loopback.
//!
//! Timed: threads, sockets.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use super::client::{ClientPace, PeerClient, REQUEST};
use super::epoll_server::EpollServer;
use crate::live::LiveError;
use crate::testbed::Cores;

const SPAN: Duration = Duration::from_millis(50);

#[test]
fn every_reply_of_the_server_is_the_request_and_none_is_left_under_way() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = listener.local_addr().expect("an address");
    let core = Cores::available().expect("cores").first();
    let server = EpollServer::start(listener, core).expect("a server");
    let mut client = PeerClient::connect(at, 20).expect("connections");
    for pace in [ClientPace::Saturated { under_way: 8 }, ClientPace::PerSecond(1_000)] {
        let outcome = client.run(pace, SPAN).expect("replies");
        assert!(outcome.replies > 0, "{pace:?}");
        assert_eq!(outcome.latency.len(), outcome.replies);
        assert_eq!(outcome.lateness.len(), outcome.replies);
        assert!(outcome.lateness.max() <= outcome.latency.max(), "{pace:?}");
    }
    assert_eq!(client.run(ClientPace::PerSecond(0), SPAN).expect("silence").replies, 0);
    drop(client);
    server.stop().expect("a server that has served");
}

#[test]
fn a_reply_with_a_wrong_byte_is_no_reply() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = listener.local_addr().expect("an address");
    let serving = thread::spawn(move || {
        let (mut connection, _) = listener.accept().expect("a connection");
        let mut bytes = [0; REQUEST];
        connection.read_exact(&mut bytes).expect("a request");
        bytes[REQUEST - 1] ^= 1;
        connection.write_all(&bytes).expect("a client");
    });
    let mut client = PeerClient::connect(at, 1).expect("a connection");
    let outcome = client.run(ClientPace::Saturated { under_way: 1 }, SPAN);
    assert!(matches!(outcome, Err(LiveError::Socket { task: "exchange", .. })), "{outcome:?}");
    serving.join().expect("it has served");
}
