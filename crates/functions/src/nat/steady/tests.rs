use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use rheostat_base::ShardId;
use rheostat_packet::build::{FrameBuilder, Payload, TcpHeader, Transport};
use rheostat_packet::wire::TcpFlags;
use rheostat_packet::{FlowKey, Mempool, MempoolConfig, PoolCache};
use rheostat_run::PacketInfo;
use rheostat_steer::{HashKey, Orientation, Steering};

use super::super::flow::{Binding, Endpoint, Ends};
use super::super::mapping::{External, InnerEndpoint, Mapping, MappingId};
use super::super::ports::PortSet;
use super::super::session::Session;
use super::super::{ACK, FIN, NatConfig, NatShard, RST, SYN};
use super::*;
use rheostat_nf::Verdict;
use rheostat_nf::fixture::{call, usual_info};
use rheostat_nf::{NetworkFunction, ShardInfo, ShardState};

const EXTERNAL: Endpoint = (Ipv4Addr::new(203, 0, 113, 1), 5_000);
const INNER: Endpoint = (Ipv4Addr::new(10, 0, 0, 1), 4_000);
const REMOTE: Endpoint = (Ipv4Addr::new(198, 51, 100, 7), 443);

/// What a flow's packets are.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Of IPv4, and translated.
    Translated,
    /// Of IPv4, and let through as they are.
    Passing,
    /// The same of IPv6.
    PassingV6,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    outbound: bool,
    flags: u8,
    seq: u32,
    ack: u32,
    len: usize,
    after: Duration,
}

fn step() -> impl Strategy<Value = Step> {
    // Mostly what open connections consist of.
    let flags = prop::sample::select(vec![
        ACK,
        ACK,
        ACK,
        ACK,
        ACK,
        ACK,
        ACK,
        ACK,
        ACK,
        ACK,
        ACK,
        ACK,
        SYN,
        SYN | ACK,
        FIN | ACK,
        RST,
    ]);
    (any::<bool>(), flags, 0_u32..6, 0_u32..6, 0_usize..4, 0_u64..9).prop_map(
        |(outbound, flags, seq, ack, len, after)| Step {
            outbound,
            flags,
            seq,
            ack,
            len,
            after: Duration::from_secs(after),
        },
    )
}

/// A packet of the flow, as it arrives, and what is known of it.
fn frame(kind: Kind, is_tcp: bool, step: Step) -> (Vec<u8>, PacketInfo) {
    let inside = match (kind, step.outbound) {
        (Kind::Translated, false) => EXTERNAL,
        _ => INNER,
    };
    let address = |address: Ipv4Addr| match kind {
        Kind::PassingV6 => IpAddr::V6(address.to_ipv6_mapped()),
        _ => IpAddr::V4(address),
    };
    let (from, to) = if step.outbound { (inside, REMOTE) } else { (REMOTE, inside) };
    let ports = (from.1, to.1);
    let Step { seq, ack, flags, len, .. } = step;
    let tcp = TcpHeader { ports, seq, ack, flags, window: 500, urgent: 0, options: &[] };
    let transport = if is_tcp { Transport::Tcp(tcp) } else { Transport::Udp { ports } };
    let frame = FrameBuilder::new(address(from.0), address(to.0), transport, Payload::Pattern(len))
        .to_vec();
    let protocol = if is_tcp { TCP } else { UDP };
    let key = match (address(inside.0), address(REMOTE.0)) {
        (IpAddr::V4(own), IpAddr::V4(remote)) => {
            FlowKey::v4((own, inside.1), (remote, REMOTE.1), protocol, 0)
        }
        (IpAddr::V6(own), IpAddr::V6(remote)) => {
            FlowKey::v6((own, inside.1), (remote, REMOTE.1), protocol, 0)
        }
        _ => unreachable!("both are of one family"),
    };
    let info = usual_info(&frame, key, step.outbound);
    (frame, info)
}

/// What keeps the external endpoint of a translated flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    /// The configuration.
    Fixed,
    /// The flow itself.
    Own,
    /// A mapping.
    Mapping,
    /// A mapping whose port another has got.
    Lost,
    /// A mapping that the flow, which outside has opened, does not keep yet.
    Asked,
}

impl Kept {
    const ALL: [Kept; 5] = [Kept::Fixed, Kept::Own, Kept::Mapping, Kept::Lost, Kept::Asked];

    fn binding(self) -> Binding {
        match self {
            Kept::Fixed => Binding::Fixed,
            Kept::Own => Binding::Own,
            Kept::Mapping | Kept::Lost => Binding::Mapping,
            Kept::Asked => Binding::Asked,
        }
    }

    /// A shard with the mapping, if there is one, as the flow's first packet leaves it.
    fn shard(self, nat: &Nat, protocol: u8) -> (NatShard, MappingId) {
        let mut shard = shard(nat);
        if matches!(self, Kept::Fixed | Kept::Own) {
            return (shard, MappingId(0));
        }
        let inner = InnerEndpoint { address: INNER.0, port: INNER.1, protocol, zone: 0 };
        let external = External { address: 0, port: EXTERNAL.1 };
        let id = shard.mappings.insert(inner, external);
        // Of more than one flow, so that it does not depend on this one alone.
        (0..2).for_each(|_| nat.change(&mut shard, id, Mapping::join));
        nat.grant(&mut shard, id, REMOTE.0);
        match self {
            Kept::Asked => shard.mappings.get_mut(id).unanswered = 1,
            Kept::Lost => {
                shard.sets.get_or_make(0, protocol, || PortSet::new(1 << 16, |_| true));
                let rank = shard.classes.of(protocol).rank(EXTERNAL.1);
                shard.sets.occupy(0, protocol, rank, id);
                nat.dispossess(&mut shard, id, Time::from_secs(9));
            }
            _ => {}
        }
        (shard, id)
    }
}

/// The state of a flow that is let through as it is, before its first packet is noted.
fn passing(protocol: u8, opened_inside: bool) -> FlowState {
    FlowState {
        translated: None,
        closing: Default::default(),
        protocol,
        session: Session::default(),
        stage: Stage::Waiting,
        opened_inside,
    }
}

fn shard(nat: &Nat) -> NatShard {
    let orientations = vec![Orientation::Inside, Orientation::Outside];
    let steering = Steering::new(&HashKey::new([0x5a; 40]), 16, 1, orientations).unwrap();
    let info = ShardInfo {
        id: ShardId(0),
        shards: 1,
        seed: 1,
        flows: 0,
        hasher: rheostat_state::FlowHasher::fixed(),
        steering: Arc::new(steering),
    };
    let place = rheostat_state::StateLayout::new().reserve().unwrap();
    NatShard::of(nat, info, place)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]

    /// Whatever the packets of a flow are: what the fast path decides about one, the general handler decides, too, and it leaves
    /// packet and state alike and asks for the same deadline and nothing else.
    #[test]
    fn the_fast_path_does_what_the_general_handler_does(
        kind in prop::sample::select(vec![Kind::Translated, Kind::Passing, Kind::PassingV6]),
        is_tcp: bool,
        opened_inside: bool,
        is_open in prop::bool::weighted(0.8),
        kept in prop::sample::select(Kept::ALL.to_vec()),
        mut steps in prop::collection::vec(step(), 1..24),
    ) {
        let nat = Nat::new(NatConfig::new(vec![EXTERNAL.0]), None).unwrap();
        let protocol = if is_tcp { TCP } else { UDP };
        let kept = if matches!(kind, Kind::Translated) { kept } else { Kept::Fixed };
        let opened_inside = match kept {
            Kept::Fixed => opened_inside,
            Kept::Own | Kept::Mapping | Kept::Lost => true,
            Kept::Asked => false,
        };
        // Of each way of handling packets its own: what they change of the shard is compared as the packets are.
        let ((mut local, mapping), (mut other_local, _)) =
            (kept.shard(&nat, protocol), kept.shard(&nat, protocol));
        let fast = SettledFlows::of(&nat);
        let config = MempoolConfig { buffers: 8, ..MempoolConfig::default() };
        let mut pool = PoolCache::new(Mempool::new(&config).unwrap());
        let ends = Ends { inner: INNER, external: EXTERNAL, remote: REMOTE };
        let translated = Translated {
            ends,
            binding: kept.binding(),
            is_hairpin: false,
            mapping,
        };
        let state = || FlowState {
            translated: matches!(kind, Kind::Translated).then_some(translated),
            ..passing(protocol, opened_inside)
        };
        if is_open {
            // What an open flow begins with: without it, few packets are for the fast path.
            let open = |outbound, flags| Step {
                outbound, flags, seq: 0, ack: 0, len: 0, after: Duration::ZERO,
            };
            steps.splice(..0, [open(opened_inside, SYN), open(!opened_inside, SYN | ACK)]);
        }
        let (mut general, mut steady) = (state(), state());
        let (mut now, mut decided, seen) = (Time::from_secs(9), 0, steps.len());
        for step in steps {
            now += step.after;
            let (frame, info) = frame(kind, is_tcp, step);
            let [mut one, mut other] = [(); 2].map(|()| pool.alloc_from(&frame).unwrap());
            let mut packet = Packet::new(&mut other, &info);
            let taken = fast.decide(&packet, &steady);
            let is_taken = taken.is_some();
            let deadline = taken.and_then(|step| fast.commit(step, now, &mut packet, &mut steady));
            let mut run = |mbuf: &mut _, state: &mut FlowState, local: &mut NatShard| {
                call(now, local, &mut pool, |cx| {
                    nat.packet(cx, &mut Packet::new(mbuf, &info), state)
                })
            };
            let (verdict, requests) = run(&mut one, &mut general, &mut local);
            if is_taken {
                decided += 1;
                prop_assert_eq!(verdict, Ok(Verdict::Forward));
                prop_assert_eq!(requests.deadline, deadline);
                prop_assert_eq!((requests.evictable, requests.close), (None, false));
            } else {
                prop_assert_eq!(run(&mut other, &mut steady, &mut other_local).0, verdict);
            }
            if matches!(kept, Kept::Mapping | Kept::Lost | Kept::Asked) {
                let [one, other] = [&local, &other_local].map(|local| *local.mappings.get(mapping));
                prop_assert_eq!(format!("{one:?}"), format!("{other:?}"));
            }
            prop_assert_eq!(one.data(), other.data());
            prop_assert_eq!(format!("{general:?}"), format!("{steady:?}"));
            for mbuf in [one, other] {
                pool.free(mbuf);
            }
        }
        if !is_tcp && !matches!(kind, Kind::Translated) {
            prop_assert_eq!(decided, seen, "datagrams that pass have no need of the general handler");
        }
    }
}

#[test]
fn an_open_connection_of_either_family_takes_the_fast_path() {
    let nat = Nat::new(NatConfig::new(vec![EXTERNAL.0]), None).unwrap();
    let fast = SettledFlows::of(&nat);
    let config = MempoolConfig { buffers: 8, ..MempoolConfig::default() };
    let mut pool = PoolCache::new(Mempool::new(&config).unwrap());
    for kind in [Kind::Passing, Kind::PassingV6] {
        let mut session = Session::default();
        for (flags, is_open) in [(SYN, false), (SYN | ACK, true)] {
            let outbound = !is_open;
            session.note(outbound, TcpFlags(flags));
            let step = Step { outbound, flags: ACK, seq: 1, ack: 1, len: 9, after: Duration::ZERO };
            let (frame, info) = frame(kind, true, step);
            let state = FlowState { session, ..passing(TCP, true) };
            let mut mbuf = pool.alloc_from(&frame).unwrap();
            let decided = fast.decide(&Packet::new(&mut mbuf, &info), &state).is_some();
            pool.free(mbuf);
            assert_eq!(decided, is_open, "{kind:?}");
        }
    }
}

/// Whether the fast path takes a datagram of a flow that waits for an answer.
fn takes_waiting(nat: &Nat, kept: Kept, outbound: bool, is_hairpin: bool) -> bool {
    let config = MempoolConfig { buffers: 8, ..MempoolConfig::default() };
    let mut pool = PoolCache::new(Mempool::new(&config).unwrap());
    let (_shard, mapping) = kept.shard(nat, UDP);
    let ends = Ends { inner: INNER, external: EXTERNAL, remote: REMOTE };
    let translated = Translated { ends, binding: kept.binding(), is_hairpin, mapping };
    let state = FlowState { translated: Some(translated), ..passing(UDP, kept != Kept::Asked) };
    let step = Step { outbound, flags: 0, seq: 0, ack: 0, len: 9, after: Duration::ZERO };
    let (frame, info) = frame(Kind::Translated, false, step);
    let mut mbuf = pool.alloc_from(&frame).unwrap();
    let decided = SettledFlows::of(nat).decide(&Packet::new(&mut mbuf, &info), &state).is_some();
    pool.free(mbuf);
    decided
}

#[test]
fn datagrams_without_an_answer_take_the_fast_path_as_long_as_no_port_is_lost() {
    let nat = || Nat::new(NatConfig::new(vec![EXTERNAL.0]), None).unwrap();
    for kept in [Kept::Fixed, Kept::Own, Kept::Mapping] {
        assert!(takes_waiting(&nat(), kept, true, false), "{kept:?}");
        assert!(
            !takes_waiting(&nat(), kept, false, false),
            "an answer makes the flow firm: {kept:?}"
        );
        assert!(!takes_waiting(&nat(), kept, true, true), "a hairpin: {kept:?}");
    }
    for outbound in [true, false] {
        assert!(!takes_waiting(&nat(), Kept::Asked, outbound, false), "opened from outside");
    }
    let nat = nat();
    assert!(!takes_waiting(&nat, Kept::Lost, true, false));
    assert!(
        !takes_waiting(&nat, Kept::Mapping, true, false),
        "one of the mappings has lost its port"
    );
    assert!(takes_waiting(&nat, Kept::Own, true, false), "ports of flows' own are not lost");
}

#[test]
fn the_fast_path_is_open_again_once_the_flows_of_a_lost_port_have_ended() {
    let nat = Nat::new(NatConfig::new(vec![EXTERNAL.0]), None).unwrap();
    let (mut shard, mapping) = Kept::Lost.shard(&nat, UDP);
    let ends = Ends { inner: INNER, external: EXTERNAL, remote: REMOTE };
    let translated = Translated { ends, binding: Binding::Mapping, is_hairpin: false, mapping };
    for flows_left in [1, 0] {
        assert!(!takes_waiting(&nat, Kept::Mapping, true, false));
        let now = Time::from_secs(10);
        nat.release(&mut shard, (UDP, 0), (translated, Stage::Waiting), now, false);
        assert_eq!(takes_waiting(&nat, Kept::Mapping, true, false), flows_left == 0);
    }
}
