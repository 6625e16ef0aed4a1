//! Members of a pool that end by themselves, outside of a request: what they held is counted, and others go on.
//!
//! Timed: threads, sleep, clock.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use rheostat_base::LaneId;
use rheostat_run::MemberFailure;
use rheostat_serve::{Application, Encoded, Handled, Parsed, ReplyBuffer};
use rheostat_tcp::CloseReason;

use crate::rig::{Client, Members, Plan, QUEUEING, Rig, parse_line};

const SECOND: Duration = Duration::from_secs(1);

/// Requests are lines, which come back. With "end" the member that has it ends.
#[derive(Clone, Default)]
struct Mortal {
    ended: Arc<AtomicU16>,
}

/// A member's part, which is dropped when the lane can see that the member has ended.
struct Life(Arc<AtomicU16>);

impl Drop for Life {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Release);
    }
}

/// What a request panics with. It is dropped when the panic has been caught.
struct Payload;

impl Drop for Payload {
    fn drop(&mut self) {
        panic!("outside of a request");
    }
}

impl Application for Mortal {
    type Conn = ();
    type Worker = Life;
    type Request = Vec<u8>;
    type Reply = Vec<u8>;

    fn worker(&self, _: LaneId) -> Life {
        Life(self.ended.clone())
    }

    fn accept(&self, _: SocketAddr) {}

    fn parse(&self, _: &mut (), bytes: &[u8]) -> Parsed<Vec<u8>, Vec<u8>> {
        parse_line(bytes)
    }

    fn handle(&self, _: &mut Life, request: Vec<u8>) -> Handled<Vec<u8>, Vec<u8>> {
        if request == b"end\n" {
            std::panic::panic_any(Payload);
        }
        Handled::Done(request)
    }

    fn encode(&self, _: &mut (), reply: &mut Vec<u8>, out: &mut ReplyBuffer<'_>) -> Encoded {
        out.put(reply);
        Encoded::Done
    }
}

/// A lane with two members.
fn rig(app: &Mortal, members: Members) -> Rig {
    let members = Members { are_threads: true, ..members };
    Rig::new(app.clone(), Plan { lanes: 1, members: Some(members), ..Plan::default() })
}

/// Steps, with time for threads, until it is done.
fn wait_until(rig: &mut Rig, clients: &mut [Client], is_done: impl Fn(&[Client]) -> bool) {
    let last = Instant::now() + Duration::from_secs(120);
    while !is_done(clients) {
        assert!(Instant::now() < last, "not done");
        rig.step(clients);
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// Has a member end by a request of this client, and waits until lanes can see so.
fn end_a_member(rig: &mut Rig, app: &Mortal, client: &mut Client) {
    let before = app.ended.load(Ordering::Acquire);
    client.outgoing = b"end\n".to_vec();
    let clients = std::slice::from_mut(client);
    wait_until(rig, clients, |all| all[0].closed == Some(CloseReason::Reset));
    wait_until(rig, clients, |_| app.ended.load(Ordering::Acquire) > before);
}

#[test]
fn a_member_that_ends_is_named_its_request_is_counted_and_others_handle_the_rest() {
    for queueing in QUEUEING {
        let app = Mortal::default();
        let mut rig = rig(&app, Members { queueing, ..Members::default() });
        let mut first = rig.connect(1_000);
        end_a_member(&mut rig, &app, &mut first);
        let mut clients: Vec<_> = (1..9).map(|n| rig.connect(1_000 + n)).collect();
        for client in &mut clients {
            client.outgoing = b"a\nb\nc\n".to_vec();
        }
        wait_until(&mut rig, &mut clients, |all| {
            all.iter().all(|client| client.received == b"a\nb\nc\n")
        });
        clients.iter_mut().for_each(|client| client.finishes = true);
        wait_until(&mut rig, &mut clients, |all| {
            all.iter().all(|client| client.closed == Some(CloseReason::Finished))
        });
        rig.pass(&mut clients, SECOND);
        let (control, members) = (rig.control.clone(), rig.take_members());
        rig.finish();
        let totals = control.totals();
        let counts = (totals.requests, totals.unanswered, totals.aborted, totals.panics);
        assert_eq!(counts, (24, 1, 1, 0), "{queueing:?}");
        let report = members.stop(60 * SECOND);
        assert!(
            matches!(&report.failures[..], [MemberFailure::Panicked { message, .. }]
                if message == "outside of a request"),
            "{queueing:?}: {report:?}"
        );
        assert_eq!((report.tasks, report.running), (24, vec![]));
    }
}

#[test]
fn a_service_without_members_resets_counts_and_ends_in_order() {
    for queueing in QUEUEING {
        let app = Mortal::default();
        let mut rig = rig(&app, Members { queueing, ..Members::default() });
        for port in 1_000..1_002 {
            let mut client = rig.connect(port);
            end_a_member(&mut rig, &app, &mut client);
        }
        let mut clients: Vec<_> = (2..9).map(|n| rig.connect(1_000 + n)).collect();
        for client in &mut clients {
            client.outgoing = b"a\n".to_vec();
        }
        wait_until(&mut rig, &mut clients, |all| {
            all.iter().all(|client| client.closed == Some(CloseReason::Reset))
        });
        let (control, members) = (rig.control.clone(), rig.take_members());
        rig.finish();
        let totals = control.totals();
        let counts = (totals.requests, totals.unanswered, totals.aborted);
        assert_eq!(counts, (0, 2 + 7, 2 + 7), "{queueing:?}");
        assert_eq!(members.stop(60 * SECOND).failures.len(), 2);
    }
}
