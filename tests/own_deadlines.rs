//! Functions that do not decide how long the flows of their chain live: to each, a flow ends when its own time for it is up, at that
//! time, from any number of lanes.

use std::collections::HashMap;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rheostat::{
    Cx, FunctionSpec, Harness, NetworkFunction, Objects, Outcome, Packet, StateLayout, Unusual,
    Verdict,
};
use rheostat_base::{Counter, Nanos, Time};
use rheostat_nf::{DynamicChain, Ending, Link, Steady, link, shared_link};
use rheostat_packet::LinkType;
use rheostat_packet::build::{FrameBuilder, Payload, Transport};
use rheostat_run::Metrics;
use rheostat_state::object::Distributed;
use rheostat_traffic::{Arrival, Source};

/// What a function counts: the states that ended because their time was up, the packets of these, and the times at which they
/// ended, in units of 256 ns since the start. Then the states that the end of the run ended.
type Names = [&'static str; 4];

const WATCH: Names = ["watch ended", "watch packets", "watch times", "watch stopped"];
const TRACK: Names = ["track ended", "track packets", "track times", "track stopped"];
const START: Time = Time::from_secs(1_000);

/// Counts the packets of each flow, which is over when none came for a while.
struct Idle {
    names: Names,
    lifetime: Duration,
    decides: bool,
}

fn watch(seconds: u64) -> Idle {
    Idle { names: WATCH, lifetime: Duration::from_secs(seconds), decides: false }
}

fn track(seconds: u64) -> Idle {
    Idle { names: TRACK, lifetime: Duration::from_secs(seconds), decides: true }
}

fn units(time: Time) -> u64 {
    time.as_nanos().div_ceil(256) - START.as_nanos() / 256
}

impl NetworkFunction for Idle {
    type Flow = u64;
    type Shard = [u64; 4];

    fn spec(&self) -> FunctionSpec {
        let decides_lifetime = self.decides;
        FunctionSpec { decides_lifetime, ends_with_run: true, ..FunctionSpec::five_tuple() }
    }

    fn packet(
        &self,
        cx: &mut Cx<'_, [u64; 4]>,
        _: &mut Packet<'_>,
        packets: &mut u64,
    ) -> Outcome<Verdict> {
        *packets += 1;
        cx.expire_in(self.lifetime);
        Ok(Verdict::Forward)
    }

    fn steady<'a>(&'a self, _: &'a [Counter]) -> impl Steady<u64> {
        Counted(self)
    }

    fn closed(
        &self,
        cx: &mut Cx<'_, [u64; 4]>,
        _: &rheostat_packet::FlowKey,
        packets: &mut u64,
        why: Ending,
    ) -> Outcome<()> {
        let at = units(cx.now());
        let counts = cx.shard();
        match why {
            Ending::Expired => {
                counts[0] += 1;
                counts[1] += *packets;
                counts[2] += at;
            }
            _ => counts[3] += 1,
        }
        Ok(())
    }

    fn metrics(&self, local: &[u64; 4], metrics: &mut Metrics) {
        self.names.into_iter().zip(local).for_each(|(name, count)| metrics.add(name, *count));
    }
}

struct Counted<'a>(&'a Idle);

impl Steady<u64> for Counted<'_> {
    type Step = ();

    fn shortest(&self) -> Nanos {
        self.0.lifetime.into()
    }

    fn may_leave(&self, _: &u64) -> bool {
        true
    }

    fn decide(&self, _: &Packet<'_>, _: &u64) -> Option<()> {
        Some(())
    }

    fn commit(&self, (): (), now: Time, _: &mut Packet<'_>, packets: &mut u64) -> Option<Time> {
        *packets += 1;
        Some(now + self.0.lifetime)
    }
}

/// The same on objects that all lanes share.
struct SharedIdle {
    lifetime: Duration,
    counts: Distributed<[u64; 4]>,
}

impl SharedIdle {
    fn new(seconds: u64, objects: &Objects) -> SharedIdle {
        let merge = |counts: &mut [u64; 4], other: &[u64; 4]| {
            counts.iter_mut().zip(other).for_each(|(count, other)| *count += other);
        };
        let counts = Distributed::new(objects, "idle", [0; 4], merge, Duration::ZERO);
        SharedIdle { lifetime: Duration::from_secs(seconds), counts }
    }
}

impl NetworkFunction for SharedIdle {
    type Flow = u64;
    type Shard = ();

    fn spec(&self) -> FunctionSpec {
        FunctionSpec { ends_with_run: true, ..FunctionSpec::five_tuple() }
    }

    fn packet(
        &self,
        cx: &mut Cx<'_, ()>,
        _: &mut Packet<'_>,
        packets: &mut u64,
    ) -> Outcome<Verdict> {
        *packets += 1;
        cx.expire_in(self.lifetime);
        Ok(Verdict::Forward)
    }

    fn closed(
        &self,
        cx: &mut Cx<'_, ()>,
        _: &rheostat_packet::FlowKey,
        packets: &mut u64,
        why: Ending,
    ) -> Outcome<()> {
        let at = units(cx.now());
        self.counts.update(cx, |counts| match why {
            Ending::Expired => {
                counts[0] += 1;
                counts[1] += *packets;
                counts[2] += at;
            }
            _ => counts[3] += 1,
        })?;
        Ok(())
    }

    fn metrics(&self, (): &(), metrics: &mut Metrics) {
        let total = self.counts.total();
        WATCH.into_iter().zip(total).for_each(|(name, count)| metrics.add(name, count));
    }
}

/// A datagram of a flow, at a time since the start.
type Datagram = (Duration, u8);

/// Datagrams in the order of their times.
struct Datagrams(std::vec::IntoIter<Datagram>);

impl Source for Datagrams {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        let (time, flow) = self.0.next()?;
        let udp = Transport::Udp { ports: (1_000, 53) };
        let (from, to) = ([10, 0, 0, flow], [192, 0, 2, 1]);
        *frame = FrameBuilder::new(from.into(), to.into(), udp, Payload::Pattern(8)).to_vec();
        let len = frame.len();
        Some(Arrival { time: START + time, len, wire_len: len as u32, link: LinkType::Raw })
    }
}

/// Ten flows with silences of some seconds, and a last datagram of another flow, when all these have ended.
fn random(seed: u64) -> Vec<Datagram> {
    let mut random = SmallRng::seed_from_u64(seed);
    let mut now = 0;
    let datagrams = (0..5_000).map(|_| {
        now += random.random_range(0..800_000_000);
        (Duration::from_nanos(now), random.random_range(0..10))
    });
    let mut datagrams: Vec<_> = datagrams.collect();
    datagrams.push((Duration::from_nanos(now) + Duration::from_secs(100), 10));
    datagrams
}

/// What a function counts whose flows end after so many seconds of silence.
fn model(datagrams: &[Datagram], seconds: u64) -> [u64; 4] {
    let mut flows: HashMap<u8, (u64, Time)> = HashMap::new();
    let mut counts = [0; 4];
    for (time, flow) in datagrams {
        let now = START + *time;
        let (packets, deadline) =
            flows.entry(*flow).or_insert((0, START + Duration::from_secs(1_000_000)));
        if units(*deadline) * 256 + START.as_nanos() <= now.as_nanos() {
            counts[0] += 1;
            counts[1] += std::mem::take(packets);
            counts[2] += units(*deadline);
        }
        *packets += 1;
        *deadline = now + Duration::from_secs(seconds);
    }
    let last = datagrams.last().map_or(START, |(time, _)| START + *time);
    for (packets, deadline) in flows.into_values() {
        if units(deadline) * 256 + START.as_nanos() <= last.as_nanos() {
            counts[0] += 1;
            counts[1] += packets;
            counts[2] += units(deadline);
        } else {
            counts[3] += 1;
        }
    }
    counts
}

/// Lanes, how many of them share a queue, and per cent of the packets that do not take the fast path.
const WAYS: [(usize, usize, u32); 5] = [(1, 1, 0), (1, 1, 100), (2, 1, 10), (2, 2, 10), (8, 1, 0)];

/// What the functions count, and how many flows the chain had.
fn run(
    (lanes, claimants, percent): (usize, usize, u32),
    links: Vec<Box<dyn Link>>,
    datagrams: &[Datagram],
) -> ([Option<[u64; 4]>; 2], u64) {
    let mut layout = StateLayout::new();
    let chain = DynamicChain::new(links, &mut layout).expect("a chain");
    let unusual = Unusual::percent(percent, 3);
    let harness = Harness { lanes, claimants, unusual, ..Harness::new(chain, layout) };
    let source = Datagrams(Vec::from(datagrams).into_iter());
    let report = harness.run(source, |_, _| {}).expect("memory and lanes");
    assert_eq!(report.violations, []);
    assert_eq!(report.counters.sent, datagrams.len() as u64);
    let counted: HashMap<_, _> = report.metrics.iter().collect();
    let of = |names: Names| counted.contains_key(names[0]).then(|| names.map(|name| counted[name]));
    ([of(WATCH), of(TRACK)], report.counters.flows_created)
}

#[test]
fn a_flow_ends_for_each_function_at_its_own_time() {
    let datagrams = random(1);
    let (short, long) = (model(&datagrams, 2), model(&datagrams, 10));
    assert!(short[0] > 400 && long[0] > 5 && long[0] < short[0] / 4, "{short:?} {long:?}");
    for way in WAYS {
        for is_first in [true, false] {
            let mut links = vec![link(watch(2)), link(track(10))];
            if !is_first {
                links.reverse();
            }
            let (counted, flows) = run(way, links, &datagrams);
            assert_eq!(counted, [Some(short), Some(long)], "{way:?}");
            assert_eq!(flows, long[0] + long[3], "{way:?}");
        }
    }
}

#[test]
fn a_function_on_shared_objects_has_its_own_time_beside_others() {
    let datagrams = random(2);
    let (short, long) = (model(&datagrams, 2), model(&datagrams, 10));
    for way in WAYS {
        let objects = Objects::new(way.0);
        let shared = SharedIdle::new(2, &objects);
        let links = vec![shared_link(shared, &objects), link(track(10))];
        assert_eq!(run(way, links, &datagrams).0, [Some(short), Some(long)], "{way:?}");
    }
}

#[test]
fn an_entry_about_which_no_function_decides_ends_with_the_last_state() {
    let datagrams = random(3);
    let (short, long) = (model(&datagrams, 2), model(&datagrams, 10));
    for way in WAYS {
        let slow = Idle { names: TRACK, ..watch(10) };
        let (counted, flows) = run(way, vec![link(watch(2)), link(slow)], &datagrams);
        assert_eq!(counted, [Some(short), Some(long)], "{way:?}");
        assert_eq!(flows, long[0] + long[3], "{way:?}");
    }
}

#[test]
fn a_flow_ends_for_all_functions_when_a_deciding_one_ends_it() {
    let datagrams = random(4);
    let short = model(&datagrams, 2);
    for way in WAYS {
        let (counted, flows) = run(way, vec![link(watch(10)), link(track(2))], &datagrams);
        let [Some(watched), Some(tracked)] = counted else { panic!("nothing counted") };
        assert_eq!((tracked, flows), (short, short[0] + short[3]), "{way:?}");
        // The end of the flow is the end of its time to both.
        assert_eq!(watched, short, "{way:?}");
        // Two that decide: the earlier time counts.
        let slow = Idle { names: WATCH, ..track(10) };
        assert_eq!(run(way, vec![link(slow), link(track(2))], &datagrams).0, counted, "{way:?}");
    }
}
