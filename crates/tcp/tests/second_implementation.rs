//! Sessions with smoltcp, which has been written by others.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rheostat_base::Time;
use rheostat_tcp::congestion::Algorithm;
use rheostat_tcp::{CloseReason, Config, Connection};
use rheostat_traffic::wire::{Endpoint, LinkConfig};
use smoltcp::iface::{Config as InterfaceConfig, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp;
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpCidr};

use crate::faults::{INITIALS, ends, stream};
use crate::wire::host::{Finish, Host, OurHost, Program};
use crate::wire::session::Session;

#[derive(Default)]
struct Queues {
    received: VecDeque<Vec<u8>>,
    sent: VecDeque<Vec<u8>>,
}

struct Received(Vec<u8>);

impl RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

struct Sending<'a>(&'a mut VecDeque<Vec<u8>>);

impl TxToken for Sending<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut frame = vec![0; len];
        let result = f(&mut frame);
        self.0.push_back(frame);
        result
    }
}

impl Device for Queues {
    type RxToken<'a> = Received;
    type TxToken<'a> = Sending<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Received, Sending<'_>)> {
        Some((Received(self.received.pop_front()?), Sending(&mut self.sent)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Sending<'_>> {
        Some(Sending(&mut self.sent))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = 1_500;
        capabilities
    }
}

struct SmoltcpHost {
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
    queues: Queues,
    program: Program,
    has_closed: bool,
    /// Whether it was established.
    was_active: bool,
}

fn instant(now: Time) -> Instant {
    Instant::from_micros((now.as_nanos() / 1_000) as i64)
}

fn v4(address: SocketAddr) -> (Ipv4Addr, u16) {
    match address {
        SocketAddr::V4(address) => (*address.ip(), address.port()),
        SocketAddr::V6(address) => panic!("{address} is not IPv4"),
    }
}

impl SmoltcpHost {
    fn new(
        (local, remote): (SocketAddr, SocketAddr),
        is_client: bool,
        program: Program,
    ) -> SmoltcpHost {
        let mut queues = Queues::default();
        let mut config = InterfaceConfig::new(HardwareAddress::Ip);
        config.random_seed = 7;
        let mut interface = Interface::new(config, &mut queues, Instant::ZERO);
        interface.update_ip_addrs(|addresses| {
            addresses.push(IpCidr::new(v4(local).0.into(), 24)).expect("room for an address");
        });
        let buffer = || tcp::SocketBuffer::new(vec![0; 65_000]);
        let mut socket = tcp::Socket::new(buffer(), buffer());
        if is_client {
            socket
                .connect(interface.context(), v4(remote), local.port())
                .expect("a socket that connects");
        } else {
            socket.listen(local.port()).expect("a socket that listens");
        }
        let mut sockets = SocketSet::new(Vec::new());
        let socket = sockets.add(socket);
        SmoltcpHost {
            interface,
            sockets,
            socket,
            queues,
            program,
            has_closed: false,
            was_active: false,
        }
    }
}

impl SmoltcpHost {
    fn state(&self) -> tcp::State {
        self.sockets.get::<tcp::Socket<'_>>(self.socket).state()
    }
}

impl Endpoint for SmoltcpHost {
    fn handle_frame(&mut self, frame: &[u8], _: Time) {
        self.queues.received.push_back(frame.to_vec());
    }

    fn advance(&mut self, now: Time) {
        self.interface.poll(instant(now), &mut self.queues, &mut self.sockets);
        let socket = self.sockets.get_mut::<tcp::Socket<'_>>(self.socket);
        let program = &mut self.program;
        let mut out = [0; 4_096];
        while socket.can_recv() {
            let len = socket.recv_slice(&mut out).expect("bytes");
            program.received.extend_from_slice(&out[..len]);
        }
        self.was_active |= socket.may_send();
        program.peer_finished = self.was_active && !socket.may_recv();
        if socket.can_send() && program.written < program.outgoing.len() {
            program.written +=
                socket.send_slice(&program.outgoing[program.written..]).expect("room");
        }
        if self.was_active && program.wants_to_finish() && !self.has_closed {
            socket.close();
            self.has_closed = true;
        }
        self.interface.poll(instant(now), &mut self.queues, &mut self.sockets);
    }

    fn poll_frame(&mut self, _: Time) -> Option<Vec<u8>> {
        self.queues.sent.pop_front()
    }

    fn next_deadline(&mut self, now: Time) -> Option<Time> {
        let at = self.interface.poll_at(instant(now), &self.sockets)?;
        let at = Time::from_nanos(at.total_micros() as u64 * 1_000);
        Some(if at > now { at } else { now + Duration::from_millis(1) })
    }

    fn is_done(&self) -> bool {
        let state = self.sockets.get::<tcp::Socket<'_>>(self.socket).state();
        self.was_active && matches!(state, tcp::State::TimeWait | tcp::State::Closed)
    }
}

/// What each end sends, and when it finishes.
struct Exchange {
    asks: (usize, Finish),
    answers: (usize, Finish),
}

/// Runs an exchange, with us as the client or as the server, and checks that everything arrives and both ends finish.
///
/// # Panics
/// When it does not, with the last segments of the session.
fn exchange(
    we_connect: bool,
    exchange: &Exchange,
    links: [LinkConfig; 2],
    config: &Config,
    seed: u64,
) {
    let (a, b) = ends();
    let asks = Program::sending(stream(exchange.asks.0, 0x55), exchange.asks.1);
    let answers = Program::sending(stream(exchange.answers.0, 0xaa), exchange.answers.1);
    let config = config.clone();
    let (mut ours, mut theirs) = if we_connect {
        (
            OurHost::connecting((a, b), config, asks, INITIALS[0]),
            SmoltcpHost::new((b, a), false, answers),
        )
    } else {
        (
            OurHost::listening((b, a), config, answers, INITIALS[0]),
            SmoltcpHost::new((a, b), true, asks),
        )
    };
    let hosts: [&mut dyn Host; 2] =
        if we_connect { [&mut ours, &mut theirs] } else { [&mut theirs, &mut ours] };
    let mut session = Session::new(hosts, links, seed);
    let is_done = session.run(Duration::from_secs(2_000));
    let (now, transcript) = (session.now(), session.watch.transcript);
    let told = || {
        let info = ours.connection.as_ref().map(Connection::info);
        format!(
            "seed {seed} at {now}, smoltcp {:?}, {info:?}, {links:?}\n{transcript}",
            theirs.state()
        )
    };
    assert!(is_done, "not done: {}", told());
    assert_eq!(ours.reason, Some(CloseReason::Finished), "{}", told());
    assert!(ours.program.received == theirs.program.outgoing, "theirs has arrived: {}", told());
    assert!(theirs.program.received == ours.program.outgoing, "ours has arrived: {}", told());
}

const WE_FINISH_FIRST: Exchange =
    Exchange { asks: (500, Finish::Written), answers: (3_000, Finish::PeerFinished) };
const THE_SERVER_FINISHES_FIRST: Exchange =
    Exchange { asks: (500, Finish::PeerFinished), answers: (3_000, Finish::Written) };
const BOTH_AT_ONCE: Exchange =
    Exchange { asks: (0, Finish::Written), answers: (0, Finish::Written) };
const BULK: Exchange =
    Exchange { asks: (400_000, Finish::Written), answers: (400_000, Finish::Written) };

const PLAIN: [LinkConfig; 2] = [LinkConfig::CLEAN; 2];

#[test]
fn either_connects_and_either_closes_first() {
    for we_connect in [true, false] {
        for kind in [WE_FINISH_FIRST, THE_SERVER_FINISHES_FIRST, BOTH_AT_ONCE] {
            exchange(we_connect, &kind, PLAIN, &Config::default(), 1);
        }
    }
}

#[test]
fn bulk_flows_both_ways() {
    for we_connect in [true, false] {
        exchange(we_connect, &BULK, PLAIN, &Config::default(), 1);
    }
}

fn drawn_link(random: &mut SmallRng) -> LinkConfig {
    LinkConfig {
        rate: [125_000, 1_250_000, 12_500_000][random.random_range(0..3)],
        delay: Duration::from_micros(random.random_range(0..60_000)),
        queue: [10_000, 30_000, 200_000][random.random_range(0..3)],
        loss: random.random_range(0..40),
        duplication: random.random_range(0..20),
        reordering: random.random_range(0..50),
        late: Duration::from_micros(random.random_range(0..20_000)),
        corruption: random.random_range(0..10),
    }
}

fn drawn_config(random: &mut SmallRng) -> Config {
    Config {
        mss: [536, 1_460][random.random_range(0..2)],
        send_buffer: random.random_range(2_000..300_000),
        receive_buffer: random.random_range(2_000..300_000),
        timestamps: random.random(),
        sack: random.random(),
        window_scaling: random.random(),
        nagle: random.random(),
        congestion: if random.random() { Algorithm::Cubic } else { Algorithm::NewReno },
        ..Config::default()
    }
}

#[test]
fn bulk_flows_both_ways_over_links_and_with_settings_that_are_drawn() {
    for seed in sessions() {
        let random = &mut SmallRng::seed_from_u64(seed);
        let links = [drawn_link(random), drawn_link(random)];
        let (len, we_connect) = (random.random_range(0..200_000), random.random());
        let finish = |last: bool| if last { Finish::PeerFinished } else { Finish::Written };
        let order = random.random_range(0..3);
        let kind = Exchange {
            asks: (len, finish(order == 1)),
            answers: (random.random_range(0..200_000), finish(order == 2)),
        };
        exchange(we_connect, &kind, links, &drawn_config(random), seed);
    }
}

/// Seeds of random sessions: `RHEO_SESSIONS=FIRST..END` runs others than usual.
fn sessions() -> std::ops::Range<u64> {
    let Ok(range) = std::env::var("RHEO_SESSIONS") else { return 0..100 };
    let (first, end) = range.split_once("..").expect("FIRST..END");
    first.parse().expect("a number")..end.parse().expect("a number")
}
