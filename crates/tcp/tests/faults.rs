//! Whatever the wire does: delivered is what was sent, in order, once, or both ends say why not.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use rheostat_base::Time;
use rheostat_tcp::congestion::Algorithm;
use rheostat_tcp::{CloseReason, Config, Initial, KeepAlive, MemoryBudget, SequenceNumber};
use rheostat_traffic::wire::LinkConfig;

use crate::wire::host::{Finish, OurHost, Program};
use crate::wire::session::Session;

pub(crate) fn ends() -> (SocketAddr, SocketAddr) {
    ("192.0.2.1:40000".parse().unwrap(), "192.0.2.2:80".parse().unwrap())
}

/// Where the numbers of the two ends start.
pub(crate) const INITIALS: [Initial; 2] = [
    Initial { sequence: SequenceNumber(7_000), stamp_offset: 1 << 20 },
    Initial { sequence: SequenceNumber(1 << 31), stamp_offset: 0 },
];

/// Bytes none of which can be mistaken for another nearby.
pub(crate) fn stream(len: usize, salt: u8) -> Vec<u8> {
    (0..len as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8 ^ salt).collect()
}

fn link() -> impl Strategy<Value = LinkConfig> {
    let faults = || prop_oneof![3 => Just(0_u32), 2 => 1_u32..60, 1 => 60_u32..250];
    let shape = (
        prop_oneof![Just(20_000_u64), Just(1_250_000), Just(125_000_000)],
        0_u64..200_000,
        prop_oneof![Just(5_000_usize), Just(30_000), Just(1_000_000)],
    );
    (shape, faults(), faults(), faults(), 0_u64..100, faults()).prop_map(
        |((rate, delay, queue), loss, duplication, reordering, late, corruption)| LinkConfig {
            rate,
            delay: Duration::from_micros(delay),
            queue,
            loss,
            duplication,
            reordering,
            late: Duration::from_millis(late),
            corruption,
        },
    )
}

/// Numbers that wrap during the session, or others.
fn initial() -> impl Strategy<Value = Initial> {
    let sequence = prop_oneof![any::<u32>(), u32::MAX - 60_000..=u32::MAX];
    let offset = prop_oneof![any::<u32>(), u32::MAX - 60_000..=u32::MAX];
    (sequence, offset).prop_map(|(sequence, stamp_offset)| Initial {
        sequence: SequenceNumber(sequence),
        stamp_offset,
    })
}

fn config() -> impl Strategy<Value = Config> {
    (
        (prop_oneof![Just(88_u16), Just(536), Just(1_460), Just(8_960)], any::<bool>()),
        (
            prop_oneof![300_usize..3_000, 3_000_usize..200_000],
            prop_oneof![300_usize..3_000, 3_000_usize..200_000],
        ),
        any::<(bool, bool, bool)>(),
        (any::<bool>(), 0_u64..200),
        (1_000_usize..100_000, 1_000_usize..100_000),
    )
        .prop_map(
            |((mss, nagle), (send_buffer, receive_buffer), features, (cubic, delay), sizes)| {
                Config {
                    mss,
                    nagle,
                    send_buffer,
                    initial_send_buffer: sizes.0,
                    receive_buffer,
                    initial_receive_buffer: sizes.1,
                    timestamps: features.0,
                    sack: features.1,
                    window_scaling: features.2,
                    congestion: if cubic { Algorithm::Cubic } else { Algorithm::NewReno },
                    ack_delay: Duration::from_millis(delay),
                    // A peer that has given up, and whose reset was lost, is noticed by this alone.
                    keep_alive: Some(KeepAlive {
                        idle: Duration::from_secs(400),
                        interval: Duration::from_secs(20),
                        probes: 9,
                    }),
                    ..Config::default()
                }
            },
        )
}

fn program(salt: u8) -> impl Strategy<Value = Program> {
    let len = prop_oneof![Just(0_usize), 1_usize..3_000, 3_000_usize..60_000];
    (
        len,
        any::<bool>(),
        prop_oneof![3 => Just(None), 1 => (50_usize..5_000, 1_u64..300).prop_map(Some)],
    )
        .prop_map(move |(len, at_once, slow)| {
            let finish = if at_once { Finish::Written } else { Finish::PeerFinished };
            let mut program = Program::sending(stream(len, salt), finish);
            if let Some((size, pause)) = slow {
                program.read_size = size;
                program.pause = Duration::from_millis(pause);
            }
            program
        })
}

/// What ends a connection without the other end's doing.
fn is_cause(reason: CloseReason) -> bool {
    let timeouts = [CloseReason::UserTimeout, CloseReason::ConnectTimeout];
    reason == CloseReason::Finished || timeouts.contains(&reason)
}

fn cases() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig {
        cases: cases.unwrap_or(400),
        failure_persistence: None,
        max_shrink_iters: 600,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases())]

    /// Loss of up to a quarter in each direction may exhaust the user timeout, and little but that may end a connection before
    /// everything has arrived: the other end's reset, or its silence.
    #[test]
    fn what_is_delivered_is_what_was_sent(
        (there, back) in (link(), link()),
        (client, server) in (config(), config()),
        (mut asks, answers) in (program(0x55), program(0xaa)),
        (first, second) in (initial(), initial()),
        simultaneous in prop::bool::weighted(0.2),
        memory in prop::option::weighted(0.4, (5_000_usize..60_000, 20_000_usize..120_000)),
        seed: u64,
    ) {
        if asks.finish == Finish::PeerFinished && answers.finish == Finish::PeerFinished {
            asks.finish = Finish::Written;
        }
        let (sent, replied) = (asks.outgoing.clone(), answers.outgoing.clone());
        let (a, b) = ends();
        let mut client = OurHost::connecting((a, b), client, asks, first);
        let mut server = if simultaneous {
            OurHost::connecting((b, a), server, answers, second)
        } else {
            OurHost::listening((b, a), server, answers, second)
        };
        let budget = memory.map(|(pressure, more)| Arc::new(MemoryBudget::new(pressure, pressure + more)));
        if let Some(budget) = &budget {
            client = client.charging(budget.clone());
            server = server.charging(budget.clone());
        }
        let mut session = Session::new([&mut client, &mut server], [there, back], seed);
        let is_done = session.run(Duration::from_secs(20_000));
        let (now, transcript) = (session.now(), session.watch.transcript);
        prop_assert!(sent.starts_with(&server.program.received), "the client's bytes, in order, once");
        prop_assert!(replied.starts_with(&client.program.received), "the server's bytes, in order, once");
        if client.reason == Some(CloseReason::ConnectTimeout) {
            return Ok(());
        }
        prop_assert!(is_done, "not done at {now}: {:?} {:?}\n{transcript}", client.connection.map(|c| c.info()), server.connection.map(|c| c.info()));
        let reasons = [client.reason, server.reason].map(|reason| reason.expect("a reason"));
        for (reason, other) in [(reasons[0], reasons[1]), (reasons[1], reasons[0])] {
            // An end that has finished and forgotten the connection resets the other, whose last segment was lost for long.
            let is_consequence = matches!(reason, CloseReason::Reset | CloseReason::KeepAliveTimeout)
                && is_cause(other);
            prop_assert!(is_cause(reason) || is_consequence, "{reasons:?}");
        }
        if reasons.contains(&CloseReason::Finished) {
            prop_assert_eq!(server.program.received.len(), sent.len());
            prop_assert_eq!(client.program.received.len(), replied.len());
        }
        (client.connection, server.connection) = (None, None);
        prop_assert_eq!(budget.map_or(0, |budget| budget.used()), 0);
        let is_mild = |link: &LinkConfig| link.loss + link.corruption + link.duplication < 120;
        if is_mild(&there) && is_mild(&back) {
            prop_assert_eq!(client.reason, Some(CloseReason::Finished));
            prop_assert_eq!(server.reason, Some(CloseReason::Finished));
        }
    }
}

/// A client that sends so much over links like this one, and then finishes.
fn bulk(len: usize, link: LinkConfig, config: &Config) -> (OurHost, Duration) {
    let (a, b) = ends();
    let sender = Program::sending(stream(len, 1), Finish::Written);
    let receiver = Program::sending(Vec::new(), Finish::PeerFinished);
    let mut client = OurHost::connecting((a, b), config.clone(), sender, INITIALS[0]);
    let mut server = OurHost::listening((b, a), config.clone(), receiver, INITIALS[1]);
    let mut session = Session::new([&mut client, &mut server], [link, link], 7);
    assert!(session.run(Duration::from_secs(1_000)), "not done");
    let elapsed = session.now().since(Time::ZERO);
    assert_eq!(server.program.received.len(), len);
    (client, elapsed)
}

fn retransmitted(host: &OurHost) -> u64 {
    host.connection.as_ref().expect("a connection").info().retransmitted
}

#[test]
fn a_link_without_faults_is_filled_and_nothing_is_sent_twice() {
    for congestion in [Algorithm::NewReno, Algorithm::Cubic] {
        let config = Config { congestion, ..Config::default() };
        let (client, elapsed) = bulk(5_000_000, LinkConfig::CLEAN, &config);
        assert_eq!(retransmitted(&client), 0);
        // 5 MB and their headers at 12.5 MB/s take 0.42 s.
        assert!(elapsed < Duration::from_millis(550), "{elapsed:?}");
    }
}

#[test]
fn a_long_fat_path_is_filled() {
    // 200 Mbit/s and a round trip of 50 ms: 1.25 MB are under way, twenty times what buffers begin with.
    let queue = 1_250_000;
    let delay = Duration::from_millis(25);
    let link = LinkConfig { rate: 25_000_000, delay, queue, ..LinkConfig::CLEAN };
    for congestion in [Algorithm::NewReno, Algorithm::Cubic] {
        let config = Config { congestion, ..Config::default() };
        let (_, elapsed) = bulk(50_000_000, link, &config);
        // 50 MB and their headers at 25 MB/s take 2.1 s.
        assert!(elapsed < Duration::from_secs(3), "{congestion:?} {elapsed:?}");
    }
}

#[test]
fn with_sack_losses_are_repaired_without_waiting_for_timeouts() {
    let link = LinkConfig { loss: 5, ..LinkConfig::CLEAN };
    let config = Config { congestion: Algorithm::Cubic, ..Config::default() };
    let (client, with) = bulk(5_000_000, link, &config);
    let (_, without) = bulk(5_000_000, link, &Config { sack: false, ..config });
    // 3,450 segments: 17 are lost in each direction, and few are sent again without need.
    assert!(retransmitted(&client) < 40, "{}", retransmitted(&client));
    assert!(with < Duration::from_secs(5), "{with:?}");
    assert!(with < without, "{with:?} {without:?}");
}

#[test]
fn reordering_within_two_segments_causes_no_retransmission() {
    let link = LinkConfig { reordering: 20, late: Duration::from_micros(150), ..LinkConfig::CLEAN };
    let (client, _) = bulk(1_000_000, link, &Config::default());
    assert_eq!(retransmitted(&client), 0);
}
