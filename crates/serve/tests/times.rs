//! Where the time of requests goes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rheostat_base::{ClockSource, LaneId, Time, VirtualClock};
use rheostat_serve::{
    Application, Encoded, Handled, Parsed, ReplyBuffer, RequestStage, RequestTimes, TimedRequest,
    TimesConfig,
};

use crate::rig::{Members, Plan, QUEUEING, Rig};

/// Each byte is a request that takes 100 us of its clock, and its reply 10 us to encode.
struct Slow(Arc<VirtualClock>);

impl Slow {
    fn take(&self, micros: u64) {
        self.0.advance_to(self.0.now() + Duration::from_micros(micros));
    }
}

impl Application for Slow {
    type Conn = ();
    type Worker = ();
    type Request = u8;
    type Reply = u8;

    fn worker(&self, _: LaneId) {}

    fn accept(&self, _: SocketAddr) {}

    fn parse(&self, (): &mut (), bytes: &[u8]) -> Parsed<u8, u8> {
        self.take(1);
        Parsed::Request { request: bytes[0], len: 1, class: bytes[0] }
    }

    fn handle(&self, (): &mut (), request: u8) -> Handled<u8, u8> {
        self.take(100);
        Handled::Done(request)
    }

    fn encode(&self, (): &mut (), reply: &mut u8, out: &mut ReplyBuffer<'_>) -> Encoded {
        out.put(&[*reply]);
        self.take(10);
        Encoded::Done
    }
}

/// What is found out about these bytes, which come in one segment.
fn times_of(bytes: &[u8], plan: Plan) -> RequestTimes {
    let clock = Arc::new(VirtualClock::new());
    clock.advance_to(Time::from_secs(1));
    let times = TimesConfig { one_in: 1, slowest: 2, ..TimesConfig::new(clock.clone()) };
    let plan = Plan { times: Some(times), ..plan };
    let mut rig = Rig::new(Slow(clock.clone()), plan);
    let mut client = [rig.connect(1_000)];
    rig.run_until(&mut client, Duration::from_secs(1), |all| {
        all[0].tcp.state() == rheostat_tcp::State::Established
    });
    clock.advance_to(rig.now);
    client[0].outgoing = bytes.to_vec();
    rig.pass(&mut client, Duration::from_millis(5));
    assert_eq!(client[0].received, bytes);
    let times = rig.control.request_times().expect("they were asked for");
    rig.finish();
    times
}

/// Microseconds of each stage of the slowest requests, by class.
fn slowest(times: &RequestTimes) -> Vec<(u8, [u128; RequestStage::COUNT])> {
    let stages = |one: &TimedRequest| (one.class, one.stages.map(|stage| stage.as_micros()));
    let mut slowest: Vec<_> = times.slowest.iter().map(stages).collect();
    slowest.sort_unstable();
    slowest
}

#[test]
fn in_the_turn_of_its_connection_a_request_waits_before_it_is_parsed() {
    let times = times_of(b"abc", Plan::default());
    assert_eq!((times.sampled, times.slowest.len()), (3, 2));
    // The third is found behind two that were handled, and whose replies were encoded; all replies leave together.
    assert_eq!(
        slowest(&times),
        [(b'b', [0, 112, 0, 100, 0, 121]), (b'c', [0, 223, 0, 100, 0, 10])]
    );
}

#[test]
fn apart_from_its_connection_a_request_waits_in_the_queue() {
    let times = times_of(b"abc", Plan { apart: true, ..Plan::default() });
    assert_eq!((times.sampled, times.slowest.len()), (3, 2));
    // Found behind two that were parsed; each reply leaves before the next is handled.
    assert_eq!(slowest(&times), [(b'b', [0, 2, 111, 100, 0, 10]), (b'c', [0, 3, 220, 100, 0, 10])]);
    let application = times.stages[RequestStage::Application as usize];
    assert_eq!(application.mean_ns, 100_000.0);
    let text = times.to_string();
    assert!(
        text.contains("application") && text.ends_with("of 3 sampled requests, and the slowest 2"),
        "{text}"
    );
}

#[test]
fn at_a_member_a_request_is_timed_by_the_member() {
    for queueing in QUEUEING {
        let members = Some(Members { each: 1, queueing, ..Members::default() });
        let times = times_of(b"abc", Plan { members, ..Plan::default() });
        assert_eq!((times.sampled, times.slowest.len()), (3, 2));
        let mean = |stage: RequestStage| times.stages[stage as usize].mean_ns;
        assert_eq!(mean(RequestStage::Application), 100_000.0, "{queueing:?}");
        assert!(mean(RequestStage::Queue) >= 100_000.0, "behind those that the member handled");
    }
}
