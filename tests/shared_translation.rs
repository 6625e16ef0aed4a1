//! The NAT whose mappings all lanes share, over whole runs. For any number of lanes the same packets leave, each
//! flow's in order, and differ from what came in by one external endpoint for each inner one and by nothing else.
//! Which endpoint that is, is free.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::StdRng;
use rheostat::{DropReason, Harness, Mix, MixConfig, Objects, Stage, StateLayout, Time};
use rheostat_functions::nat::{NatConfig, NatTimeouts, SharedNat, Sharing};
use rheostat_io::Collected;
use rheostat_packet::wire::Rewrite;
use rheostat_packet::{FlowKey, Headers, LinkType, Tuple};
use rheostat_testkit::captures;
use rheostat_testkit::spliced::Spliced;
use rheostat_traffic::{Arrival, Source};

const LANES: [usize; 3] = [1, 2, 8];
const EXTERNAL: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);

type Endpoint = (Ipv4Addr, u16);
/// Inner endpoints by protocol, with what stands for them.
type Mapped = HashMap<(u8, Endpoint), Endpoint>;

/// Two sources, one after the other.
struct Then<A, B>(A, B);

impl<A: Source, B: Source> Source for Then<A, B> {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        self.0.next(frame).or_else(|| self.1.next(frame))
    }
}

/// Turns packets to hosts inside that have a mapping into what the world outside would have sent.
struct Outside<S> {
    inner: S,
    mapped: Mapped,
}

/// Keeps a copy of every frame. One comes every microsecond: some captures leap over days, and no mapping is to end.
struct Kept<S> {
    inner: S,
    frames: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl<S: Source> Source for Outside<S> {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        let arrival = self.inner.next(frame)?;
        if let Some((headers, key)) = v4(frame, arrival.wire_len as usize, arrival.link)
            && let Some(external) = self.mapped.get(&(key.protocol(), destination(&key)))
            && let Ok(mut rewrite) = Rewrite::new(frame, &headers)
            && rewrite.set_destination(external.0.into()).is_ok()
        {
            rewrite.set_destination_port(external.1).expect("it has a port");
        }
        Some(arrival)
    }
}

impl<S: Source> Source for Kept<S> {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        let arrival = self.inner.next(frame)?;
        let mut frames = self.frames.lock().expect("no thread panicked with it");
        frames.push(frame.clone());
        Some(Arrival { time: Time::from_nanos(1_000 * frames.len() as u64), ..arrival })
    }
}

/// The headers and the key, in its own direction, of a whole packet of IPv4 that is no ICMP error.
fn v4(frame: &[u8], wire_len: usize, link: LinkType) -> Option<(Headers, FlowKey)> {
    let headers = Headers::parse_bytes(frame, wire_len, link).ok()?;
    match Tuple::of_bytes(frame, &headers) {
        Tuple::Flow(key) if key.first().is_ipv4() => Some((headers, key)),
        _ => None,
    }
}

fn endpoint(address: IpAddr, port: u16) -> Endpoint {
    match address {
        IpAddr::V4(address) => (address, port),
        IpAddr::V6(_) => unreachable!("keys of IPv4"),
    }
}

fn source(key: &FlowKey) -> Endpoint {
    endpoint(key.first(), key.first_port())
}

fn destination(key: &FlowKey) -> Endpoint {
    endpoint(key.second(), key.second_port())
}

/// What a run came to.
struct Run {
    /// Which packets left, by their place in the source.
    left: BTreeSet<u32>,
    dropped: Vec<(&'static str, u64)>,
    mapped: Mapped,
    translated: usize,
    handoff: u64,
}

fn run(lanes: usize, inner: impl Source + 'static, link: LinkType) -> Run {
    let day = Duration::from_secs(86_400);
    let config = NatConfig {
        ports: 1_024..=9_215,
        inside: ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"]
            .iter()
            .map(|prefix| prefix.parse().expect("a prefix"))
            .collect(),
        // A mapping lasts as long as the run, and can be told from what left alone.
        timeouts: NatTimeouts {
            tcp_established: day,
            tcp_transitory: day,
            tcp_time_wait: day,
            udp: day,
            icmp: day,
            other: day,
        },
        silence: None,
        answers_per_second: 0,
        ..NatConfig::new(vec![EXTERNAL])
    };
    let sharing = Sharing { flows: 16_384, ..Sharing::default() };
    let (objects, mut rng) = (Objects::new(lanes), StdRng::seed_from_u64(7));
    let nat = SharedNat::new(config, sharing, &objects, &mut rng).expect("no blocks to divide");
    let mut layout = StateLayout::new();
    let chain = Stage::on_objects(nat, &objects, &mut layout).expect("room for one state");
    let frames = Arc::default();
    let kept = Kept { inner, frames: Arc::clone(&frames) };
    let harness = Harness { lanes, flows: 4_096, ..Harness::new(chain, layout) };
    let report = harness.run(kept, |_, ()| {}).expect("a trial");
    assert_eq!(report.violations, [], "{lanes} lanes");
    let dropped = DropReason::all();
    let mut run = Run {
        left: BTreeSet::new(),
        dropped: dropped
            .map(|reason| (reason.name(), report.counters.dropped[reason as usize]))
            .collect(),
        mapped: Mapped::new(),
        translated: 0,
        handoff: report.counters.handoff_out,
    };
    let frames = frames.lock().expect("no thread panicked with it");
    let mut latest: BTreeMap<String, u32> = BTreeMap::new();
    for packet in &report.sent {
        let before = &frames[packet.stamp as usize];
        run.check(before, packet, link);
        if let Some((_, key)) = v4(before, before.len(), link) {
            let latest = latest.entry(key.to_string()).or_default();
            assert!(*latest <= packet.stamp, "{key}: {} after {latest}", packet.stamp);
            *latest = packet.stamp;
        }
    }
    let inner: BTreeSet<_> =
        run.mapped.iter().map(|((protocol, _), end)| (protocol, end)).collect();
    assert_eq!(inner.len(), run.mapped.len(), "two endpoints inside share one outside");
    run
}

impl Run {
    /// Holds a packet that left against what it was.
    fn check(&mut self, before: &[u8], packet: &Collected, link: LinkType) {
        assert!(self.left.insert(packet.stamp), "packet {} left twice", packet.stamp);
        let mut after = packet.bytes.clone();
        let (Some((_, was)), Some((headers, is))) =
            (v4(before, before.len(), link), v4(&after, after.len(), link))
        else {
            return;
        };
        let mut rewrite = Rewrite::new(&mut after, &headers).expect("it was translated");
        let (inner, external) = if source(&is).0 == EXTERNAL {
            rewrite.set_source(was.first()).expect("it was set");
            rewrite.set_source_port(was.first_port()).expect("it was set");
            (source(&was), source(&is))
        } else if destination(&was).0 == EXTERNAL {
            rewrite.set_destination(was.second()).expect("it was set");
            rewrite.set_destination_port(was.second_port()).expect("it was set");
            (destination(&is), destination(&was))
        } else {
            assert_eq!(before, after, "packet {} passes, but not as it is", packet.stamp);
            return;
        };
        assert_eq!(before, after, "packet {} differs in more than endpoints", packet.stamp);
        let known = self.mapped.entry((was.protocol(), inner)).or_insert(external);
        assert_eq!(*known, external, "packet {}: another endpoint for {inner:?}", packet.stamp);
        self.translated += 1;
    }

    /// Nothing differs but the endpoints that were given out.
    fn is_same_as(&self, other: &Run, when: &str) {
        assert_eq!(self.dropped, other.dropped, "{when}");
        assert_eq!(self.left, other.left, "{when}");
        assert_eq!(self.translated, other.translated, "{when}");
        let inner = |run: &Run| run.mapped.keys().copied().collect::<BTreeSet<_>>();
        assert_eq!(inner(self), inner(other), "{when}");
    }
}

/// Runs a source on each number of lanes, to learn which flow gets which endpoint, and then once more with all of it again
/// behind it, in which those outside answer to these endpoints.
fn compare<S: Source + 'static>(name: &str, link: LinkType, source: impl Fn() -> S) -> Run {
    let mut one: Option<Run> = None;
    for lanes in LANES {
        let Run { mapped, .. } = run(lanes, source(), link);
        let answered = Outside { inner: source(), mapped: mapped.clone() };
        let twice = Then(source(), answered);
        let run = run(lanes, twice, link);
        assert_eq!(mapped, run.mapped, "{name}, {lanes} lanes");
        match &mut one {
            None => one = Some(run),
            Some(one) => {
                one.is_same_as(&run, &format!("{name}, {lanes} lanes"));
                one.handoff = run.handoff;
            }
        }
    }
    one.expect("some lanes")
}

fn mix(seed: u64) -> Mix {
    let config = MixConfig { seed, flows: 400, packets: Some(15_000), ..MixConfig::default() };
    Mix::new(config).expect("a mix")
}

/// Answers come right behind what opened their flow, on another lane.
#[test]
fn answers_do_not_overtake_what_they_answer() {
    let mut one: Option<Run> = None;
    for lanes in LANES {
        let source = || Spliced::new(mix(5));
        let learned = run(lanes, source(), LinkType::Ethernet);
        let answered = Outside { inner: source(), mapped: learned.mapped.clone() };
        let run = run(lanes, answered, LinkType::Ethernet);
        // In this mix no endpoint inside begins on two lanes at once.
        assert_eq!(learned.mapped, run.mapped, "{lanes} lanes");
        match &one {
            None => one = Some(run),
            Some(one) => one.is_same_as(&run, &format!("{lanes} lanes")),
        }
    }
    let Run { translated, dropped, .. } = one.expect("some lanes");
    assert!(translated > 5_000, "{translated} packets translated");
    let no_mapping = dropped.iter().find(|(name, _)| *name == "no_mapping");
    assert!(no_mapping.is_some_and(|(_, count)| *count < 2_000), "answers come in: {dropped:?}");
}

#[test]
fn the_same_packets_leave_from_any_number_of_lanes() {
    let run = compare("mix", LinkType::Ethernet, || Spliced::new(mix(7)));
    assert!(run.translated > 10_000, "{} packets translated", run.translated);
    assert!(run.handoff > 100, "lanes that hand nothing over prove nothing");
}

#[test]
fn captures_leave_the_same_from_any_number_of_lanes() {
    let mut translated = 0;
    let ran = captures::for_each(|capture| {
        translated += compare(&capture.name(), capture.link, || capture.open()).translated;
    });
    assert!(!ran || translated > 100, "{translated} packets translated prove little");
}
