use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use rheostat_base::ShardId;
use rheostat_packet::build::{FrameBuilder, Payload, TcpHeader, Transport};
use rheostat_packet::{FlowKey, Mempool, MempoolConfig, PoolCache};
use rheostat_run::PacketInfo;
use rheostat_steer::{HashKey, Orientation, Steering};

use super::super::connection::TcpOptions;
use super::super::limits::Limits;
use super::super::{Firewall, FirewallConfig};
use super::*;
use rheostat_nf::fixture::{Requested, call, usual_info};
use rheostat_nf::{Admission, Verdict};
use rheostat_nf::{NetworkFunction, ShardInfo, ShardState};

const CLIENT: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 0, 0, 1), 4_000);
const SERVER: (Ipv4Addr, u16) = (Ipv4Addr::new(198, 51, 100, 7), 443);
/// A window scale option.
const SCALE: [u8; 4] = [3, 3, 7, 1];

/// A segment, or a datagram.
#[derive(Clone, Copy, Debug)]
struct Step {
    outbound: bool,
    flags: u8,
    seq: u32,
    ack: u32,
    len: usize,
    scaled: bool,
    after: Duration,
}

impl Step {
    fn of(outbound: bool, flags: u8, seq: u32, ack: u32) -> Step {
        Step { outbound, flags, seq, ack, len: 0, scaled: true, after: Duration::ZERO }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let flags = [ACK, ACK, ACK, ACK, SYN, SYN | ACK, FIN | ACK, FIN | ACK, RST, RST | ACK, 0];
    let flags = prop::sample::select(flags.to_vec());
    (any::<bool>(), flags, 0_u32..5, 0_u32..5, 0_usize..3, any::<bool>(), 0_u64..9).prop_map(
        |(outbound, flags, seq, ack, len, scaled, after)| Step {
            outbound,
            flags,
            seq,
            ack,
            len,
            scaled,
            after: Duration::from_secs(after),
        },
    )
}

fn frame(is_tcp: bool, step: Step) -> (Vec<u8>, PacketInfo) {
    let (from, to) = if step.outbound { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
    let ports = (from.1, to.1);
    let options: &[u8] = if step.scaled && step.flags & SYN != 0 { &SCALE } else { &[] };
    let Step { seq, ack, flags, len, .. } = step;
    let tcp = TcpHeader { ports, seq, ack, flags, window: 500, urgent: 0, options };
    let transport = if is_tcp { Transport::Tcp(tcp) } else { Transport::Udp { ports } };
    let frame =
        FrameBuilder::new(from.0.into(), to.0.into(), transport, Payload::Pattern(len)).to_vec();
    let key = FlowKey::v4(CLIENT, SERVER, if is_tcp { 6 } else { 17 }, 0);
    let info = usual_info(&frame, key, step.outbound);
    (frame, info)
}

/// A firewall with one shard, and packets for it.
struct Bench {
    firewall: Firewall,
    limits: Limits,
    pool: PoolCache,
    now: Time,
}

impl Bench {
    fn new(tcp: TcpOptions) -> Bench {
        let firewall = Firewall::new(FirewallConfig { tcp, ..FirewallConfig::default() });
        let steering = Steering::new(&HashKey::new([7; 40]), 16, 1, vec![Orientation::Inside]);
        let steering = Arc::new(steering.unwrap());
        let info = ShardInfo {
            id: ShardId(0),
            shards: 1,
            seed: 1,
            flows: 0,
            hasher: rheostat_state::FlowHasher::fixed(),
            steering,
        };
        let place = rheostat_state::StateLayout::new().reserve().unwrap();
        let config = MempoolConfig { buffers: 8, ..MempoolConfig::default() };
        Bench {
            limits: Limits::of(&firewall, info, place),
            firewall,
            pool: PoolCache::new(Mempool::new(&config).unwrap()),
            now: Time::from_secs(9),
        }
    }

    /// What a handler does with a packet, and what it asks for.
    fn run<T>(
        &mut self,
        (frame, info): &(Vec<u8>, PacketInfo),
        handler: impl FnOnce(&Firewall, &mut rheostat_nf::Cx<'_, Limits>, &mut Packet<'_>) -> T,
    ) -> (T, Requested) {
        let Bench { firewall, limits, pool, now } = self;
        let mut mbuf = pool.alloc_from(frame).unwrap();
        let done =
            call(*now, limits, pool, |cx| handler(firewall, cx, &mut Packet::new(&mut mbuf, info)));
        self.pool.free(mbuf);
        done
    }

    /// The state of the flow that this packet opens.
    fn first(&mut self, packet: &(Vec<u8>, PacketInfo)) -> Option<Track> {
        let (admission, _) = self.run(packet, |firewall, cx, packet| firewall.first(cx, packet));
        match admission {
            Ok(Admission::Admit(state, _)) => Some(state),
            _ => None,
        }
    }

    /// What the fast path does: the deadline, if it does anything.
    fn fast(
        &mut self,
        (frame, info): &(Vec<u8>, PacketInfo),
        state: &mut Track,
    ) -> Option<Option<Time>> {
        let mut mbuf = self.pool.alloc_from(frame).unwrap();
        let packet = &mut Packet::new(&mut mbuf, info);
        let fast = OpenFlows::of(&self.firewall);
        let step = fast.decide(packet, state);
        let done = step.map(|step| fast.commit(step, self.now, packet, state));
        self.pool.free(mbuf);
        done
    }
}

/// A connection that is opened by these three segments.
const OPENING: [(bool, u8, u32, u32); 3] =
    [(true, SYN, 0, 0), (false, SYN | ACK, 0, 1), (true, ACK, 1, 1)];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 512 }))]

    /// Whatever the packets of a flow are: what the fast path does about one, the general handler does, too, and asks for the same
    /// deadline and nothing else.
    #[test]
    fn the_fast_path_does_what_the_general_handler_does(
        is_tcp in prop::bool::weighted(0.9),
        (liberal, pickup) in any::<(bool, bool)>(),
        opened in 0_usize..=3,
        steps in prop::collection::vec(step(), 1..24),
    ) {
        let mut bench = Bench::new(TcpOptions { liberal, pickup });
        let opening = OPENING.map(|(outbound, flags, seq, ack)| Step::of(outbound, flags, seq, ack));
        let mut general: Option<Track> = None;
        for step in opening.into_iter().take(opened).chain(steps) {
            bench.now += step.after;
            let packet = frame(is_tcp, step);
            let Some(state) = &mut general else {
                general = bench.first(&packet);
                continue;
            };
            let mut steady = *state;
            let done = bench.fast(&packet, &mut steady);
            let (verdict, requests) =
                bench.run(&packet, |firewall, cx, packet| firewall.packet(cx, packet, state));
            match done {
                Some(deadline) => {
                    prop_assert_eq!(verdict, Ok(Verdict::Forward));
                    prop_assert_eq!(requests.deadline, deadline);
                    prop_assert_eq!((requests.evictable, requests.close), (None, false));
                    prop_assert_eq!(format!("{state:?}"), format!("{steady:?}"));
                }
                None if verdict == Ok(Verdict::Restart) => general = bench.first(&packet),
                None => {}
            }
        }
    }
}

#[test]
fn an_open_connection_takes_the_fast_path_until_an_end_closes_it() {
    let mut bench = Bench::new(TcpOptions::default());
    let segments = [
        (false, SYN | ACK, 0, 1, false),
        // It completes the handshake, which the shard counts.
        (true, ACK, 1, 1, false),
        (true, ACK, 1, 1, true),
        (false, ACK, 1, 1, true),
        (true, FIN | ACK, 1, 1, false),
        (false, ACK, 1, 2, false),
    ];
    let mut state = bench.first(&frame(true, Step::of(true, SYN, 0, 0))).unwrap();
    for (outbound, flags, seq, ack, is_usual) in segments {
        let packet = frame(true, Step::of(outbound, flags, seq, ack));
        let mut fast = state;
        let taken = bench.fast(&packet, &mut fast);
        assert_eq!(taken.is_some(), is_usual, "{flags:#x}");
        let (verdict, _) =
            bench.run(&packet, |firewall, cx, packet| firewall.packet(cx, packet, &mut state));
        assert_eq!(verdict, Ok(Verdict::Forward), "{flags:#x}");
    }
}
