//! A function gives up its own state of a flow while the flow lives on for the other functions of its chain.

use std::time::Duration;

use rheostat::{
    Admission, Chain, Chain2, Cx, Ending, FlowKey, FunctionSpec, Harness, NetworkFunction, Outcome,
    Packet, ShardId, Stage, StateLayout, Verdict,
};
use rheostat_base::Time;
use rheostat_packet::LinkType;
use rheostat_packet::build::{FrameBuilder, Payload, Transport};
use rheostat_run::LaneSample;
use rheostat_traffic::{Arrival, Source};

/// Counts the packets of each flow, and gives its state up with a certain one.
struct Counting {
    lifetime: Duration,
    /// Gives up at this packet of the state's life.
    gives_up: Option<u64>,
    /// Keeps a state again for the packet behind.
    comes_again: bool,
}

/// What one function did in a shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Counts {
    first: u64,
    packets: u64,
    /// Packets of each state that ended, in order.
    ended: Vec<u64>,
}

impl Counts {
    fn add(&mut self, other: &Counts) {
        self.first += other.first;
        self.packets += other.packets;
        self.ended.extend(&other.ended);
    }
}

impl NetworkFunction for Counting {
    type Flow = u64;
    type Shard = Counts;

    fn spec(&self) -> FunctionSpec {
        FunctionSpec { ends_with_run: true, ..FunctionSpec::five_tuple() }
    }

    fn first(&self, cx: &mut Cx<'_, Counts>, _: &mut Packet<'_>) -> Outcome<Admission<u64>> {
        cx.shard().first += 1;
        if cx.shard().first > 1 && !self.comes_again {
            return Ok(Admission::Pass(Verdict::Forward));
        }
        cx.expire_in(self.lifetime);
        // Of no meaning: there is no state yet.
        cx.delete_state();
        Ok(Admission::Admit(1, Verdict::Forward))
    }

    fn packet(
        &self,
        cx: &mut Cx<'_, Counts>,
        _: &mut Packet<'_>,
        seen: &mut u64,
    ) -> Outcome<Verdict> {
        *seen += 1;
        cx.shard().packets += 1;
        cx.expire_in(self.lifetime);
        if Some(*seen) == self.gives_up {
            cx.delete_state();
        }
        Ok(Verdict::Forward)
    }

    fn closed(
        &self,
        cx: &mut Cx<'_, Counts>,
        _: &FlowKey,
        seen: &mut u64,
        _: Ending,
    ) -> Outcome<()> {
        cx.shard().ended.push(*seen);
        Ok(())
    }
}

/// Datagrams of one flow, at these seconds.
struct Datagrams(Vec<u64>);

impl Source for Datagrams {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        if self.0.is_empty() {
            return None;
        }
        let time = Time::from_secs(1_000 + self.0.remove(0));
        let udp = Transport::Udp { ports: (1_000, 53) };
        let (from, to) = ([10, 0, 0, 1], [192, 0, 2, 1]);
        *frame = FrameBuilder::new(from.into(), to.into(), udp, Payload::Pattern(8)).to_vec();
        let len = frame.len();
        Some(Arrival { time, len, wire_len: len as u32, link: LinkType::Raw })
    }
}

fn run<C: Chain>(
    (chain, layout): (C, StateLayout),
    seconds: &[u64],
    look: impl FnMut(ShardId, &C::Shard),
) -> LaneSample {
    let source = Datagrams(seconds.to_vec());
    let report = Harness::new(chain, layout).run(source, look).expect("a run");
    assert_eq!(report.violations, []);
    assert_eq!(report.counters.sent, seconds.len() as u64);
    report.counters
}

/// What two functions did, and how many flows there were.
fn two(a: Counting, b: Counting, seconds: &[u64]) -> (Counts, Counts, u64) {
    let mut layout = StateLayout::new();
    let a = Stage::new(a, &mut layout).expect("room");
    let b = Stage::new(b, &mut layout).expect("room");
    let (mut of_a, mut of_b) = (Counts::default(), Counts::default());
    let report = run((Chain2(a, b), layout), seconds, |_, (a, b)| {
        of_a.add(a);
        of_b.add(b);
    });
    (of_a, of_b, report.flows_created)
}

const MINUTE: Duration = Duration::from_secs(60);

fn keeps() -> Counting {
    Counting { lifetime: MINUTE, gives_up: None, comes_again: false }
}

fn gives_up(at: u64) -> Counting {
    Counting { gives_up: Some(at), ..keeps() }
}

#[test]
fn a_state_ends_while_the_flow_lives_for_the_others() {
    let (a, b, flows) = two(gives_up(2), keeps(), &[0, 1, 2, 3]);
    // The third packet is a first one again, of which the function wants no state, and so is the fourth.
    assert_eq!(a, Counts { first: 3, packets: 1, ended: vec![2] });
    assert_eq!(b, Counts { first: 1, packets: 3, ended: vec![4] });
    assert_eq!(flows, 1);
    // Likewise for the last function of the chain.
    let (a, b, flows) = two(keeps(), gives_up(3), &[0, 1, 2, 3]);
    assert_eq!((a.ended, b.ended, flows), (vec![4], vec![3], 1));
}

#[test]
fn a_function_may_have_a_new_state_of_the_same_flow() {
    let again = Counting { comes_again: true, ..gives_up(2) };
    let (a, b, flows) = two(again, keeps(), &[0, 1, 2, 3, 4]);
    assert_eq!(a, Counts { first: 3, packets: 2, ended: vec![2, 2, 1] });
    assert_eq!((b.ended, flows), (vec![5], 1));
}

#[test]
fn the_entry_ends_with_the_last_state() {
    let both = |a, b| {
        let again = |at| Counting { comes_again: true, ..gives_up(at) };
        two(again(a), again(b), &[0, 1, 2])
    };
    // With the same packet: the third opens another flow.
    let (a, b, flows) = both(2, 2);
    assert_eq!((&a, flows), (&b, 2));
    assert_eq!(a, Counts { first: 2, packets: 1, ended: vec![2, 1] });
    // One after the other: the first function is out when the second gives up.
    let (a, b, flows) =
        two(gives_up(2), Counting { comes_again: true, ..gives_up(3) }, &[0, 1, 2, 3]);
    assert_eq!((a.ended, b.ended, flows), (vec![2], vec![3, 1], 2));
}

#[test]
fn the_deadline_is_the_earliest_of_those_that_keep_their_state() {
    let second = Duration::from_secs(1);
    let short = || Counting { lifetime: second, ..keeps() };
    // As long as it has a state, the flow ends with it.
    let again = |function| Counting { comes_again: true, ..function };
    assert_eq!(two(again(short()), again(keeps()), &[0, 0, 30]).2, 2);
    // What it asks for with the packet at which it gives up does not count.
    for (a, b) in [(true, false), (false, true)] {
        let of =
            |is_short| if is_short { Counting { gives_up: Some(2), ..short() } } else { keeps() };
        let (a, b, flows) = two(of(a), of(b), &[0, 0, 30, 60]);
        assert_eq!(flows, 1);
        assert_eq!(a.ended.len() + b.ended.len(), 2);
    }
}

#[test]
fn in_a_chain_of_three_each_state_ends_by_itself() {
    let mut layout = StateLayout::new();
    let mut stage = |function| Stage::new(function, &mut layout).expect("room");
    let chain = Chain2(stage(gives_up(2)), Chain2(stage(gives_up(4)), stage(gives_up(3))));
    let mut ended: [Vec<u64>; 3] = Default::default();
    let report = run((chain, layout), &[0, 1, 2, 3], |_, (a, (b, c))| {
        for (ended, of) in ended.iter_mut().zip([a, b, c]) {
            ended.extend(&of.ended);
        }
    });
    assert_eq!(ended, [vec![2], vec![4], vec![3]]);
    assert_eq!((report.flows_created, report.flows_ended), (1, 1));
}
