//! Applications over the kernel's sockets, on loopback.
//!
//! Timed: sleep, clock, sockets.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rheostat_base::LaneId;
use rustix::net::sockopt;

use super::{Host, HostConfig, HostError, HostReport, RunningHost};
use crate::application::{Application, Encoded, Handled, Parsed, ReplyBuffer};
use crate::config::ServeConfig;

/// Nothing on loopback takes so long.
const PATIENCE: Duration = Duration::from_secs(30);

/// Replies to lines. `panic` panics, `long N` has a reply of N bytes in pieces, `huge` one of 2 MiB at once, `slow N` takes N turns;
/// others come back.
struct Lines;

enum Request {
    Line(Vec<u8>),
    Slow(usize),
}

enum Reply {
    Bytes(Vec<u8>),
    Long(usize),
}

impl Application for Lines {
    type Conn = ();
    type Worker = usize;
    type Request = Request;
    type Reply = Reply;

    fn worker(&self, _: LaneId) -> usize {
        0
    }

    fn accept(&self, peer: SocketAddr) {
        assert!(peer.ip().is_loopback());
    }

    fn parse(&self, (): &mut (), bytes: &[u8]) -> Parsed<Request, Reply> {
        let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
            return Parsed::Need(bytes.len() + 1);
        };
        let line = bytes[..end].to_vec();
        let number = |text: &[u8]| String::from_utf8_lossy(text).parse().unwrap_or(0);
        let request = match line.strip_prefix(b"slow ") {
            Some(turns) => Request::Slow(number(turns)),
            None if line == b"refuse" => return Parsed::Refuse(Reply::Bytes(b"no\n".to_vec())),
            None => Request::Line(line),
        };
        Parsed::Request { request, len: end + 1, class: 0 }
    }

    fn handle(&self, handled: &mut usize, request: Request) -> Handled<Request, Reply> {
        *handled += 1;
        let line = match request {
            Request::Slow(0) => b"slow".to_vec(),
            Request::Slow(turns) => return Handled::More(Request::Slow(turns - 1)),
            Request::Line(line) => line,
        };
        let text = String::from_utf8_lossy(&line).into_owned();
        Handled::Done(match text.split_once(' ') {
            _ if text == "panic" => panic!("this request panics"),
            _ if text == "huge" => Reply::Bytes(vec![b'h'; 2 << 20]),
            Some(("long", length)) => Reply::Long(length.parse().unwrap_or(0)),
            _ => Reply::Bytes([&line[..], b"\n"].concat()),
        })
    }

    fn too_large(&self) -> Option<Reply> {
        Some(Reply::Bytes(b"too large\n".to_vec()))
    }

    fn encode(&self, (): &mut (), reply: &mut Reply, out: &mut ReplyBuffer<'_>) -> Encoded {
        match reply {
            Reply::Bytes(bytes) => out.put(bytes),
            Reply::Long(left) => {
                *left -= out.put_piece(&vec![b'x'; *left]);
                if *left > 0 {
                    return Encoded::More;
                }
            }
        }
        Encoded::Done
    }

    fn time_out(&self, (): &mut ()) -> Option<Reply> {
        Some(Reply::Bytes(b"late\n".to_vec()))
    }
}

fn config(lanes: usize) -> HostConfig {
    let ips = [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()];
    HostConfig {
        listen: ips.into_iter().map(|ip| SocketAddr::new(ip, 0)).collect(),
        lanes,
        limits: ServeConfig { reply_memory: 1 << 20, ..ServeConfig::default() },
        idle_timeout: PATIENCE,
        request_timeout: None,
    }
}

fn start(config: HostConfig) -> RunningHost {
    Host::bind(config).unwrap().start(Lines).unwrap()
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Everything that comes back until the end of the stream.
fn ask(address: SocketAddr, question: &[u8]) -> Vec<u8> {
    let mut stream = connect(address);
    stream.write_all(question).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn finish(host: RunningHost) -> HostReport {
    let report = host.finish(PATIENCE);
    assert_eq!((&report.running[..], &report.failed[..]), (&[][..], &[][..]));
    let totals = report.totals;
    assert_eq!(totals.accepted, totals.ended(), "{totals:?}");
    report
}

#[test]
fn replies_come_over_ipv4_and_ipv6_in_the_order_of_pipelined_requests() {
    for lanes in [1, 3] {
        let host = start(config(lanes));
        assert_eq!(host.addresses().len(), 2);
        for address in host.addresses() {
            assert_ne!(address.port(), 0);
            let question: String = (0..10_000).map(|number| format!("{number}\n")).collect();
            assert!(ask(*address, question.as_bytes()) == question.as_bytes(), "{address}");
            assert_eq!(ask(*address, b"slow 100\nand\nhalf"), b"slow\nand\n");
        }
        let report = finish(host);
        assert_eq!(report.totals.accepted, 4);
        assert_eq!(report.totals.requests, 2 * 10_002);
        assert_eq!(report.totals.finished, 4);
    }
}

#[test]
fn a_long_reply_to_a_slow_reader_takes_the_memory_of_a_piece() {
    let host = start(config(1));
    let mut stream = connect(host.addresses()[0]);
    stream.write_all(b"long 20000000\nafter\n").unwrap();
    let mut buffer = vec![0; 10_000];
    let mut got = 0;
    while got < 20_000_000 {
        let count = stream.read(&mut buffer[..]).unwrap();
        assert!(count > 0, "the stream ends after {got}");
        let of_reply = count.min(20_000_000 - got);
        assert!(buffer[..of_reply].iter().all(|byte| *byte == b'x'));
        assert!(
            host.control.shared.budget.memory().used() < 1 << 20,
            "{}",
            host.control.shared.budget.memory().used()
        );
        got += count;
    }
    stream.shutdown(Shutdown::Write).unwrap();
    stream.read_to_end(&mut buffer).unwrap();
    wait_until("the connection ends", || host.control().connections() == 0);
    assert_eq!(host.control.shared.budget.memory().used(), 0);
    assert_eq!(finish(host).totals.bytes_written, 20_000_000 + 6);
}

#[test]
fn peers_that_vanish_reset_or_panic_leave_nothing_behind() {
    let host = start(config(2));
    let address = host.addresses()[0];
    for question in [&b"long 50000000\n"[..], b"half a line", b"panic\n"] {
        let mut stream = connect(address);
        stream.write_all(question).unwrap();
        if question == b"panic\n" {
            assert_eq!(stream.read(&mut [0; 10]).unwrap_err().kind(), ErrorKind::ConnectionReset);
        } else {
            let before = host.control().totals().accepted;
            wait_until("it is accepted", || before > 0 || host.control().totals().accepted > 0);
            sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
        }
        drop(stream);
    }
    wait_until("all connections end", || {
        host.control().connections() == 0 && host.control().totals().accepted == 3
    });
    assert_eq!(host.control.shared.budget.memory().used(), 0);
    assert_eq!(ask(address, b"still here\n"), b"still here\n");
    let report = finish(host);
    assert_eq!((report.totals.panics, report.totals.aborted), (1, 1));
}

#[test]
fn requests_and_replies_beyond_their_bounds_end_as_in_lanes() {
    let mut config = config(1);
    config.limits.longest_request = 1_000;
    let host = start(config);
    let address = host.addresses()[0];
    assert_eq!(ask(address, b"huge\nnext\n"), b"too large\nnext\n");
    assert_eq!(ask(address, b"one\nrefuse\ntwo\n"), b"one\nno\n");
    let mut stream = connect(address);
    stream.write_all(&[b'y'; 2_000]).unwrap();
    assert_eq!(stream.read(&mut [0; 10]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    let report = finish(host);
    assert_eq!((report.totals.too_large, report.totals.aborted), (1, 1));
}

#[test]
fn connections_beyond_the_bound_are_reset_and_counted() {
    let mut config = config(1);
    config.limits.connections = 2;
    let host = start(config);
    let address = host.addresses()[1];
    let mut kept: Vec<_> = (0..2).map(|_| connect(address)).collect();
    for stream in &mut kept {
        stream.write_all(b"in\n").unwrap();
        stream.read_exact(&mut [0; 3]).unwrap();
    }
    let mut refused = connect(address);
    assert_eq!(refused.read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    drop(kept);
    wait_until("two places are free", || host.control().connections() == 0);
    assert_eq!(ask(address, b"now\n"), b"now\n");
    assert_eq!(finish(host).totals.refused, 1);
}

#[test]
fn silent_connections_and_slow_requests_end_by_their_time_outs() {
    let times = Duration::from_millis(50);
    let host = start(HostConfig { idle_timeout: times, ..config(1) });
    let mut silent = connect(host.addresses()[0]);
    assert_eq!(silent.read(&mut [0; 1]).unwrap(), 0);
    assert_eq!(finish(host).totals.idle_closed, 1);
    let host = start(HostConfig { request_timeout: Some(times), ..config(1) });
    let mut slow = connect(host.addresses()[0]);
    slow.write_all(b"half").unwrap();
    let mut answer = Vec::new();
    slow.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, b"late\n");
    assert_eq!(finish(host).totals.late, 1);
}

#[test]
fn a_drain_closes_idle_connections_and_finishes_replies() {
    let host = start(config(2));
    let address = host.addresses()[0];
    let mut idle = connect(address);
    let mut busy = connect(address);
    busy.write_all(b"long 20000000\nnever\n").unwrap();
    busy.read_exact(&mut [0; 1]).unwrap();
    wait_until("both are there", || host.control().connections() == 2);
    host.drain();
    assert_eq!(idle.read(&mut [0; 1]).unwrap(), 0);
    let mut rest = Vec::new();
    busy.read_to_end(&mut rest).unwrap();
    assert_eq!(rest.len(), 20_000_000 - 1, "the reply at hand, and no other");
    wait_until("nobody listens", || TcpStream::connect(address).is_err());
    drop((idle, busy));
    wait_until("all are gone", || host.control().connections() == 0);
    assert_eq!(finish(host).totals.finished, 2);
}

#[test]
fn an_address_that_cannot_be_listened_at_is_named_with_the_fix() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let error = |address: SocketAddr, lanes| {
        let config = HostConfig { listen: vec![address], ..config(lanes) };
        Host::bind(config).err().expect("it is refused")
    };
    for lanes in [1, 2] {
        let in_use = error(address, lanes);
        assert!(matches!(in_use, HostError::InUse(_)), "{in_use}");
        assert!(in_use.to_string().contains("choose another port"), "{in_use}");
    }
    // RFC 5737.
    let elsewhere = error("192.0.2.1:0".parse().unwrap(), 1);
    assert!(matches!(elsewhere, HostError::NoSuchAddress(_)), "{elsewhere}");
}
