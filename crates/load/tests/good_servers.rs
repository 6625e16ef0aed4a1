//! Servers that answer: every request that was due is accounted for.
//!
//! Timed: clock.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use rheostat_load::report::{Asked, Verdict};
use rheostat_load::{
    ClassMix, LoadReport, Protocol, QueueHash, Session, Spread, interval_log, self_check,
};
use rheostat_serve::work::{WorkReply, WorkRequest};

use crate::server::{measure, plan, run_plan, start};

/// Longer than a busy machine keeps a thread waiting.
const SPAN: Duration = Duration::from_secs(2);

fn echo(mut stream: TcpStream, _: usize) {
    let mut bytes = [0; 4_096];
    while let Ok(count @ 1..) = stream.read(&mut bytes) {
        if stream.write_all(&bytes[..count]).is_err() {
            return;
        }
    }
}

/// Requests of a tenth take 100 us, the others 1 us, by what is said.
fn work(mut stream: TcpStream, _: usize) {
    let mut bytes = [0; 128];
    while stream.read_exact(&mut bytes).is_ok() {
        let request = WorkRequest::parse(&bytes).unwrap();
        let is_long = request.draw < u64::MAX / 10;
        let (class, target) = if is_long { (1, 100_000) } else { (0, 1_000) };
        let reply =
            WorkReply { number: request.number, length: 128, class, target, took: target + 5 };
        let mut answer = Vec::new();
        reply.write(|piece| answer.extend_from_slice(piece));
        if stream.write_all(&answer).is_err() {
            return;
        }
    }
}

/// HTTP/1.0: a reply, and the end of the connection.
fn old_http(mut stream: TcpStream, _: usize) {
    let mut bytes = [0; 1_024];
    if matches!(stream.read(&mut bytes), Ok(1..)) {
        let _ = stream.write_all(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok");
    }
}

fn asked(mix: ClassMix) -> Asked {
    Asked {
        server: "here".to_owned(),
        scheduler: None,
        protocol: "work".to_owned(),
        arrivals: "exponential".to_owned(),
        connections: 4,
        rate: 2_000.0,
        mix,
    }
}

#[test]
fn every_request_of_an_echo_is_answered_and_counted_once() {
    let server = start(echo);
    let mut session = Session::open(plan(server, "echo", 4)).unwrap();
    for seed in 0..2 {
        let run = rheostat_load::RunPlan { seed, ..run_plan(2_000.0, SPAN) };
        let result = session.run(&run, &AtomicBool::new(false));
        assert!(result.problem.is_none() && !result.is_early, "{result:?}");
        assert!(result.sent.due > 300, "{}", result.sent.due);
        assert_eq!(result.sent.due, result.sent.sent + result.sent.not_sent);
        assert_eq!((result.ledger.answered(), result.unanswered), (result.sent.sent, 0));
        assert_eq!(result.ends, rheostat_load::Ends::default());
    }
}

#[test]
fn classes_of_a_server_that_picks_them_are_told_apart_with_their_slowdowns() {
    let result = measure(plan(start(work), "work", 4), &run_plan(2_000.0, SPAN)).unwrap();
    assert_eq!(result.ledger.answered(), result.sent.sent);
    let runs = [(SystemTime::now(), result)];
    let report =
        LoadReport::new(asked(ClassMix::default()), std::slice::from_ref(&runs[0].1), None, None);
    let names: Vec<_> = report.classes.iter().map(|class| class.name.as_str()).collect();
    assert_eq!(names, ["1us", "100us"]);
    for class in &report.classes {
        let (service, took) = (class.service_us.unwrap(), class.took_us.unwrap());
        assert!((took - service - 0.005).abs() < 1e-9, "{class:?}");
        let (p999, slowdown) = (class.p999_us.unwrap(), class.slowdown_p999.unwrap());
        assert!((slowdown * service / p999 - 1.0).abs() < 0.01, "{class:?}");
    }
    assert_ne!(report.verdict(), Verdict::Failed);
    let mut log = Vec::new();
    interval_log::write(&mut log, &report, &runs).unwrap();
    let log = String::from_utf8(log).unwrap();
    assert!(log.contains("Tag=class-0,") && log.contains("Tag=class-1,"), "{log}");
    assert_eq!(report.tsv().lines().count(), 4);
}

#[test]
fn classes_that_the_client_names_ask_for_what_they_say() {
    let mix = || {
        ClassMix::new(["a=0.5:SET k v", "b=0.5:GET k"].map(|c| c.parse().unwrap()).to_vec())
            .unwrap()
    };
    let server = start(|mut stream, _| {
        let mut bytes = Vec::new();
        let mut piece = [0; 4_096];
        while let Ok(count @ 1..) = stream.read(&mut piece) {
            bytes.extend_from_slice(&piece[..count]);
            // Commands of one kind have one length.
            loop {
                let (len, reply): (_, &[u8]) = match bytes.get(1) {
                    Some(b'3') => ("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n".len(), b"+OK\r\n"),
                    Some(_) => ("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n".len(), b"-ERR none\r\n"),
                    None => break,
                };
                if bytes.len() < len {
                    break;
                }
                bytes.drain(..len);
                stream.write_all(reply).unwrap();
            }
        }
    });
    let mut plan = plan(server, "resp", 2);
    plan.protocol = Protocol::new("resp", 128, &mix(), server).unwrap();
    let run = rheostat_load::RunPlan { mix: mix(), ..run_plan(2_000.0, SPAN) };
    let result = measure(plan, &run).unwrap();
    assert_eq!(result.ledger.answered(), result.sent.sent);
    let errors = result.ledger.classes[1].latency.count();
    assert!(errors > 0 && result.ledger.failed == errors, "{errors} of {}", result.ledger.failed);
    let report = LoadReport::new(asked(mix()), &[result], None, None);
    let names: Vec<_> = report.classes.iter().map(|class| class.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn a_server_that_ends_each_connection_behind_its_reply_is_asked_over_new_ones() {
    let result = measure(plan(start(old_http), "http", 4), &run_plan(200.0, SPAN)).unwrap();
    assert!(result.problem.is_none(), "{result:?}");
    assert!(result.sent.sent > 4, "{result:?}");
    assert_eq!((result.ledger.answered(), result.ledger.lost), (result.sent.sent, 0));
    assert!(result.ends.reopened + 4 >= result.sent.sent, "{:?}", result.ends);
}

#[test]
fn source_ports_spread_connections_as_the_server_hashes_them() {
    let server = start(echo);
    for (spread, expected) in [(Spread::Even, vec![4, 4, 4, 4]), (Spread::Skew, vec![8, 3, 3, 2])] {
        let hash = Some(QueueHash::new("microsoft", 128, 4).unwrap());
        let plan = rheostat_load::LoadPlan { spread, hash, ..plan(server, "echo", 16) };
        assert_eq!(Session::open(plan).unwrap().queues(), Some(expected.as_slice()));
    }
}

#[test]
fn a_run_that_is_stopped_reports_what_it_measured() {
    let server = start(echo);
    let mut session = Session::open(plan(server, "echo", 2)).unwrap();
    let stop = AtomicBool::new(true);
    let run = run_plan(1_000.0, Duration::from_secs(3_600));
    let result = session.run(&run, &stop);
    assert!(result.is_early && result.problem.is_none());
    assert_eq!(result.ledger.answered(), result.sent.sent);
    let warm_up = rheostat_load::RunPlan { warm_up: Duration::from_secs(1_800), ..run };
    assert!(session.run(&warm_up, &stop).is_warm_up);
}

#[test]
fn the_client_measures_itself_and_refuses_what_it_cannot_offer() {
    let plan = plan(start(echo), "work", 8);
    // A busy machine may make the client too slow, but not every time.
    let check = |_| self_check(&plan, &run_plan(1_000.0, SPAN), 128, &AtomicBool::new(false)).ok();
    let floor = (0..10).find_map(check).unwrap();
    assert!(floor.p50 > 0 && floor.p50 <= floor.p999 && floor.offered > 0.0, "{floor:?}");
    // No client sends so many.
    let refusal =
        self_check(&plan, &run_plan(1e7, SPAN / 10), 128, &AtomicBool::new(false)).unwrap_err();
    assert!(refusal.to_string().contains("cannot offer 10000000"), "{refusal}");
}
