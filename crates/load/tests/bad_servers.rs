//! Servers that do not answer as they should: an error with its reason, or outcomes that are counted; and an end.
//!
//! Timed: threads.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use rheostat_load::report::{Asked, Verdict};
use rheostat_load::{ClassMix, LoadError, LoadReport, RunPlan, RunResult};

use crate::server::{Kept, measure, plan, run_plan, start};

/// Longer than a busy machine keeps a thread waiting.
const SPAN: Duration = Duration::from_secs(2);
/// Long enough that the client gives up first.
const LONG: Duration = Duration::from_secs(3_600);

fn report(result: RunResult) -> LoadReport {
    let asked = Asked {
        server: "there".to_owned(),
        scheduler: None,
        protocol: "work".to_owned(),
        arrivals: "exponential".to_owned(),
        connections: 2,
        rate: 100.0,
        mix: ClassMix::default(),
    };
    LoadReport::new(asked, &[result], None, None)
}

fn accounted(result: &RunResult) -> bool {
    let sent = result.ledger.answered() + result.ledger.lost + result.unanswered;
    sent == result.sent.sent && result.sent.sent + result.sent.not_sent == result.sent.due
}

#[test]
fn a_port_where_nothing_listens_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = measure(plan(address, "work", 2), &run_plan(100.0, SPAN)).unwrap_err();
    assert!(matches!(error, LoadError::Connect { open: 0, wanted: 2, .. }), "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
}

#[test]
fn an_address_that_cannot_be_reached_is_an_error() {
    // No host: the kernel refuses to connect to a multicast group.
    let address = SocketAddr::from(([224, 0, 0, 1], 80));
    let error = measure(plan(address, "work", 1), &run_plan(100.0, SPAN)).unwrap_err();
    assert!(matches!(error, LoadError::Connect { .. }), "{error}");
}

#[test]
fn a_server_that_closes_every_connection_is_an_error() {
    let result = measure(plan(start(|_, _| {}), "work", 2), &run_plan(100.0, LONG)).unwrap();
    assert!(matches!(result.problem, Some(LoadError::Closed { .. })), "{result:?}");
    assert!(result.is_early && accounted(&result), "{result:?}");
    assert_eq!(report(result).verdict(), Verdict::Failed);
}

#[test]
fn a_server_that_says_something_else_is_an_error() {
    let server = start(|mut stream, _| {
        let mut bytes = [0; 128];
        if stream.read_exact(&mut bytes).is_ok() {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let result = measure(plan(server, "work", 2), &run_plan(100.0, LONG)).unwrap();
    assert!(matches!(result.problem, Some(LoadError::Garbage { .. })), "{result:?}");
    assert!(result.ends.garbage > 0 && accounted(&result), "{result:?}");
    assert!(report(result).complaint().unwrap().contains("does not speak `work`"));
}

#[test]
fn more_than_was_asked_for_is_garbage() {
    let server = start(|mut stream, _| {
        let _ = stream.write_all(&[b'x'; 300]);
        let mut bytes = [0; 128];
        while matches!(stream.read(&mut bytes), Ok(1..)) {}
    });
    let result = measure(plan(server, "echo", 1), &run_plan(1.0, LONG)).unwrap();
    assert!(matches!(result.problem, Some(LoadError::Garbage { .. })), "{result:?}");
}

#[test]
fn a_server_that_never_answers_leaves_requests_without_a_reply() {
    let kept = Kept::default();
    let server = start(move |stream, _| kept.keep(stream));
    let run = RunPlan { wait: Duration::from_millis(50), ..run_plan(500.0, SPAN) };
    let result = measure(plan(server, "work", 2), &run).unwrap();
    assert!(result.problem.is_none() && result.unanswered > 0, "{result:?}");
    assert_eq!((result.unanswered, result.ledger.answered()), (result.sent.sent, 0));
    let report = report(result);
    assert_eq!((report.verdict(), report.p50_us), (Verdict::Failed, None));
    assert!(report.complaint().unwrap().contains("answered none"));
}

#[test]
fn what_no_connection_takes_is_counted_as_not_sent() {
    let kept = Kept::default();
    let server = start(move |mut stream, _| {
        // One reply, and never another.
        let mut bytes = [0; 128];
        if stream.read_exact(&mut bytes).is_ok() {
            let _ = stream.write_all(&bytes);
        }
        kept.keep(stream);
    });
    let mut plan = plan(server, "echo", 2);
    plan.outstanding = 3;
    let run = RunPlan { wait: Duration::from_millis(500), ..run_plan(1_000.0, SPAN) };
    let result = measure(plan, &run).unwrap();
    assert!(accounted(&result), "{result:?}");
    assert_eq!((result.ledger.answered(), result.unanswered), (2, 6));
    let report = report(result);
    assert_eq!(report.verdict(), Verdict::NotOffered);
    assert!(report.complaint().unwrap().contains("was not offered"));
}

#[test]
fn a_window_in_which_no_connection_took_anything_was_not_offered() {
    let kept = Kept::default();
    let server = start(move |stream, _| kept.keep(stream));
    let mut plan = plan(server, "echo", 2);
    plan.outstanding = 1;
    // Both connections are full long before the window.
    let (warm_up, wait) = (SPAN / 2, Duration::from_millis(50));
    let run = RunPlan { warm_up, wait, ..run_plan(1_000.0, SPAN) };
    let result = measure(plan, &run).unwrap();
    assert!(result.sent.sent == 0 && result.sent.not_sent > 0, "{result:?}");
    assert_eq!(report(result).verdict(), Verdict::NotOffered);
}

#[test]
fn a_connection_that_is_reset_loses_its_requests_and_is_opened_again() {
    let server = start(|mut stream, number| {
        let mut bytes = [0; 128];
        let mut left = 5;
        while stream.read_exact(&mut bytes).is_ok() {
            if number < 2 && left == 0 {
                // What is unread makes the close a reset.
                let mut part = [0; 1];
                let _ = stream.read(&mut part);
                return;
            }
            left -= i32::from(number < 2);
            if stream.write_all(&bytes).is_err() {
                return;
            }
        }
    });
    let result = measure(plan(server, "echo", 2), &run_plan(1_000.0, SPAN)).unwrap();
    assert!(result.problem.is_none(), "{result:?}");
    assert!(result.ledger.lost >= 2 && result.ends.reopened >= 2, "{result:?}");
    assert!(result.ends.reset + result.ends.closed >= 2, "{result:?}");
    assert!(accounted(&result), "{result:?}");
}

#[test]
fn a_server_that_goes_away_is_noticed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        drop(listener);
        let mut bytes = [0; 128];
        for _ in 0..3 {
            stream.read_exact(&mut bytes).unwrap();
            stream.write_all(&bytes).unwrap();
        }
    });
    let result = measure(plan(server, "echo", 1), &run_plan(500.0, LONG)).unwrap();
    assert!(matches!(result.problem, Some(LoadError::Gone { .. })), "{result:?}");
    assert!(result.ledger.answered() >= 1 && accounted(&result), "{result:?}");
}
