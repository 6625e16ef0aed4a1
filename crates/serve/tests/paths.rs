//! Paths that carry less than the first link, and errors about connections.

use std::time::Duration;

use rheostat_base::DropReason;
use rheostat_ip::{PathMtuConfig, Policy, Problem};
use rheostat_packet::build::{FrameBuilder, Payload, TcpHeader, Transport};
use rheostat_serve::ServeConfig;
use rheostat_serve::echo::Echo;
use rheostat_tcp::State;

use crate::rig::{Client, LOCAL_V4, LOCAL_V6, PORT, Plan, Rig, report};

const SECOND: Duration = Duration::from_secs(1);
const LEN: usize = 300_000;

/// Has the service echo `LEN` bytes to a client.
fn echo(rig: &mut Rig, mut client: Client) -> Client {
    client.outgoing = (0..LEN).map(|at| (at / 7) as u8).collect();
    let (sent, before) = (client.outgoing.clone(), client.received.len());
    let mut clients = [client];
    rig.run_until(&mut clients, 60 * SECOND, |all| all[0].received.len() == before + LEN);
    let [client] = clients;
    assert!(client.received[before..] == sent, "what came back is what was sent");
    client
}

fn dropped(rig: &Rig, reason: DropReason) -> u64 {
    rig.sample().dropped[reason as usize]
}

#[test]
fn a_narrow_path_is_learned_from_one_report_and_known_to_later_connections_of_all_lanes() {
    for (server, peer, mtu) in
        [(LOCAL_V4, "10.0.0.2", 1_000), (LOCAL_V6, "fd00::2", 1_300), (LOCAL_V4, "10.0.0.2", 552)]
    {
        let mut rig = Rig::new(Echo, Plan::default());
        rig.router.mtu = Some(mtu);
        let now = rig.now;
        echo(&mut rig, Client::connect(server, peer, 1_000, None, now));
        let (refused, believed) = (rig.router.refused, rig.control.totals().too_big);
        // Those of the first window were under way already.
        assert!((1..=10).contains(&refused), "{refused} packets were too long");
        assert_eq!(believed + dropped(&rig, DropReason::IcmpUnrelated), refused as u64);
        assert!(believed >= 1);
        assert_eq!(rig.router.longest, usize::from(mtu), "packets are as long as may be");
        for port in 1_001..1_005 {
            let now = rig.now;
            echo(&mut rig, Client::connect(server, peer, port, None, now));
        }
        assert_eq!((rig.router.refused, rig.router.longest), (refused, mtu.into()));
        rig.finish();
    }
}

#[test]
fn no_report_makes_packets_shorter_than_the_least() {
    for (server, peer, least) in [(LOCAL_V4, "10.0.0.2", 552), (LOCAL_V6, "fd00::2", 1_280)] {
        let mut rig = Rig::new(Echo, Plan::default());
        let now = rig.now;
        let mut clients = [Client::connect(server, peer, 1_000, None, now)];
        rig.pass(&mut clients, SECOND / 10);
        // Acknowledgements pass, and no data.
        rig.router.mtu = Some(80);
        clients[0].outgoing = vec![1; 100_000];
        rig.pass(&mut clients, 5 * SECOND);
        assert!(rig.router.refused > 2 && rig.control.totals().too_big >= 1);
        rig.router.mtu = None;
        rig.router.longest = 0;
        rig.run_until(&mut clients, 60 * SECOND, |all| all[0].received.len() == 100_000);
        assert_eq!(rig.router.longest, least);
        rig.finish();
    }
}

#[test]
fn after_its_lifetime_a_report_counts_no_longer_also_for_live_connections() {
    let path_mtus = PathMtuConfig { lifetime: 3 * SECOND, ..PathMtuConfig::default() };
    let policy = Policy { announce: false, path_mtus, ..Policy::default() };
    let mut rig = Rig::new(Echo, Plan { policy, ..Plan::default() });
    rig.router.mtu = Some(1_000);
    let client = rig.connect(1_000);
    let client = echo(&mut rig, client);
    assert_eq!(rig.router.longest, 1_000);
    rig.router.mtu = None;
    let mut clients = [client];
    rig.pass(&mut clients, 2 * SECOND);
    let [client] = clients;
    let client = echo(&mut rig, client);
    assert_eq!(rig.router.longest, 1_000, "it counts still");
    let mut clients = [client];
    rig.pass(&mut clients, 3 * SECOND);
    let [client] = clients;
    // The client takes segments of 1,440 bytes.
    echo(&mut rig, client);
    assert_eq!(rig.router.longest, 1_480);
    rig.finish();
}

/// A packet that the service might have sent to the client with this port, 1,400 bytes of data from `seq` on.
fn forged(port: u16, seq: u32) -> Vec<u8> {
    let header = TcpHeader {
        ports: (PORT, port),
        seq,
        ack: 1,
        flags: 16,
        window: 9,
        urgent: 0,
        options: &[],
    };
    let (from, to) = (LOCAL_V4.parse().unwrap(), "10.0.0.2".parse().unwrap());
    FrameBuilder::new(from, to, Transport::Tcp(header), Payload::Pattern(1_400)).to_vec()
}

#[test]
fn forged_reports_change_nothing_and_are_counted() {
    let mut rig = Rig::new(Echo, Plan::default());
    let client = rig.connect(1_000);
    let client = echo(&mut rig, client);
    for seq in [0, 1 << 30, 2 << 30, 3 << 30] {
        rig.inject(report(&forged(1_000, seq), Problem::TooBig(600)), 1);
    }
    // Of a connection that there is not.
    rig.inject(report(&forged(1_001, 5), Problem::TooBig(600)), 0);
    // With a wrong checksum.
    let mut broken = report(&forged(1_000, 5), Problem::TooBig(600));
    broken[40] ^= 1;
    rig.inject(broken, 0);
    rig.step(&mut []);
    assert_eq!(dropped(&rig, DropReason::IcmpUnrelated), 5);
    assert_eq!(dropped(&rig, DropReason::Malformed), 1);
    assert_eq!(rig.control.totals().too_big, 0);
    rig.router.longest = 0;
    echo(&mut rig, client);
    assert_eq!(rig.router.longest, 1_480);
    rig.finish();
}

#[test]
fn no_error_ends_a_connection() {
    let mut rig = Rig::new(Echo, Plan { limits: ServeConfig::default(), ..Plan::default() });
    let client = rig.connect(1_000);
    let client = echo(&mut rig, client);
    let problems = [
        Problem::NoRoute,
        Problem::NoHost,
        Problem::NoProtocol,
        Problem::NoPort,
        Problem::TimeExceeded,
    ];
    for problem in problems {
        rig.inject(report(&forged(1_000, 5), problem), 0);
    }
    rig.step(&mut []);
    assert_eq!(rig.control.totals().errors_ignored, problems.len() as u64);
    let client = echo(&mut rig, client);
    assert_eq!(client.tcp.state(), State::Established);
    rig.finish();
}
