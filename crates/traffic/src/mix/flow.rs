//! One flow of the mix: how long it is, and what it sends next.

use rand::Rng;
use rand::rngs::SmallRng;

use super::MixConfig;
use crate::frame::{FrameEndpoints, FramePacket, FrameTransport, Tcp, server_isn};

/// Bytes of payload that fill a frame of 1,514 bytes, less the headers.
const FULL_FRAME: usize = 1_514;
/// Frames below this count as small.
const SMALL_FRAME: usize = 74;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MixFlowKind {
    /// A TCP connection with its handshakes; resets at the end when told so.
    Tcp { resets: bool },
    /// A lone SYN, from inside or from outside.
    Attempt { scan: bool },
    /// Datagrams in both directions.
    Udp,
    /// Echo requests and replies.
    Ping,
}

/// A flow under way.
#[derive(Debug)]
pub(super) struct MixFlow {
    number: u64,
    sent: u32,
    left: u32,
    /// Bytes sent by client and server, for sequence numbers.
    client_bytes: u32,
    server_bytes: u32,
    /// The longest the flow waits between two packets, in ticks of the wheel.
    longest_pause: u32,
    kind: MixFlowKind,
    ipv6: bool,
}

// Ten million of them are held at once.
const _: () = assert!(size_of::<MixFlow>() == 32);

/// What sizes the packets so far had, to keep the shares right whatever flows need to send.
#[derive(Debug, Default)]
pub(super) struct FlowSizes {
    packets: u64,
    small: u64,
    full: u64,
}

enum Size {
    Small,
    Full,
    Between,
}

impl FlowSizes {
    pub(super) fn count(&mut self, frame: usize) {
        self.packets += 1;
        self.small += u64::from(frame < SMALL_FRAME);
        self.full += u64::from(frame >= FULL_FRAME);
    }

    /// Draws a size; a class that has had less than its share is drawn more often.
    fn draw(&self, rng: &mut SmallRng) -> Size {
        let share = |count: u64| count as f64 / self.packets.max(1) as f64;
        let wish = |target: f64, count: u64| (target + 8.0 * (target - share(count))).max(0.0);
        let small = wish(0.2, self.small);
        let full = wish(0.5, self.full);
        let between = wish(0.3, self.packets - self.small - self.full);
        let pick = rng.random::<f64>() * (small + full + between);
        if pick < small {
            Size::Small
        } else if pick < small + full {
            Size::Full
        } else {
            Size::Between
        }
    }
}

impl MixFlow {
    /// A flow before its first packet, in a wheel of `span` ticks.
    ///
    /// Its rate grows with the square root of its length: long flows are fast ones (Zhang, Breslau,
    /// Paxson, Shenker, "On the characteristics and origins of Internet flow rates", SIGCOMM '02,
    /// found size and rate strongly correlated; the exponent is this project's choice). So at any
    /// moment few flows carry much of the load, and buckets are loaded unevenly.
    pub(super) fn start(number: u64, config: &MixConfig, span: u32, rng: &mut SmallRng) -> MixFlow {
        let length = draw_length(config, rng);
        let longest_pause = (f64::from(span) / f64::from(length).sqrt()) as u32;
        MixFlow {
            number,
            sent: 0,
            left: length,
            client_bytes: 0,
            server_bytes: 0,
            longest_pause: longest_pause.max(1),
            kind: draw_kind(length, rng),
            ipv6: rng.random::<f64>() < config.ipv6_share,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.left == 0
    }

    /// How long the flow waits before its next packet, in ticks.
    pub(super) fn pause(&self, rng: &mut SmallRng) -> u32 {
        rng.random_range(1..=self.longest_pause)
    }

    /// What the flow sends next; it must not be over. With `clients_only`, packets of servers are not sent, whose place those
    /// of [`crate::EchoServer`] take.
    pub(super) fn next_packet(
        &mut self,
        clients_only: bool,
        sizes: &mut FlowSizes,
        rng: &mut SmallRng,
    ) -> FramePacket {
        let port = self.server_port();
        let endpoints = FrameEndpoints::of_flow(self.number, self.ipv6, port);
        let (from_client, transport, payload) = match self.kind {
            MixFlowKind::Attempt { scan } => {
                (!scan, FrameTransport::Tcp(Tcp::syn(isn(self.number))), 0)
            }
            MixFlowKind::Ping => {
                let from_client = self.sent.is_multiple_of(2);
                let sequence = (self.sent / 2) as u16;
                (from_client, FrameTransport::Echo { reply: !from_client, sequence }, 56)
            }
            MixFlowKind::Udp => {
                let from_client = self.sent == 0 || rng.random_range(0..4) == 0;
                (from_client, FrameTransport::Udp, self.payload(8, sizes.draw(rng), rng))
            }
            MixFlowKind::Tcp { resets } => self.next_segment((resets, clients_only), sizes, rng),
        };
        self.sent += 1;
        self.left -= 1;
        let endpoints = if from_client { endpoints } else { endpoints.reversed() };
        FramePacket { endpoints, from_client, transport, payload }
    }

    /// The port of the server, by what it serves: web and mail, names and time, and the rest.
    fn server_port(&self) -> u16 {
        const TCP: [u16; 16] =
            [443, 443, 443, 443, 443, 443, 443, 443, 443, 80, 80, 80, 22, 25, 993, 8_080];
        const UDP: [u16; 8] = [443, 443, 443, 53, 123, 500, 3_478, 5_060];
        // Apart from the bits that the addresses are made of.
        let draw = (self.number.wrapping_mul(0xd6e8_feb8_6659_fd93) >> 59) as usize;
        match self.kind {
            MixFlowKind::Tcp { .. } | MixFlowKind::Attempt { scan: false } => TCP[draw % 16],
            // Scans go through the ports.
            MixFlowKind::Attempt { scan: true } => {
                [23, 445, 3_389, 8_443][draw % 4] + (draw / 4) as u16
            }
            // Queries for names have one packet here, or an answer.
            MixFlowKind::Udp if self.sent + self.left <= 2 => 53,
            MixFlowKind::Udp => UDP[draw % 8],
            MixFlowKind::Ping => 0,
        }
    }

    /// Bytes of payload for a frame of the size drawn, behind a transport header of `header` bytes.
    fn payload(&self, header: usize, size: Size, rng: &mut SmallRng) -> usize {
        let headers = 14 + if self.ipv6 { 40 } else { 20 } + header;
        match size {
            Size::Small => rng.random_range(0..SMALL_FRAME.saturating_sub(headers).max(1)),
            Size::Full => FULL_FRAME - headers,
            Size::Between => rng.random_range(SMALL_FRAME.max(headers)..FULL_FRAME) - headers,
        }
    }

    /// The next segment of a connection: three to open it, three to close it or one to reset it, and
    /// data, mostly from the server, with acknowledgements between.
    fn next_segment(
        &mut self,
        (resets, clients_only): (bool, bool),
        sizes: &mut FlowSizes,
        rng: &mut SmallRng,
    ) -> (bool, FrameTransport, usize) {
        let first = isn(self.number);
        let client = first.wrapping_add(self.client_bytes);
        let server = server_isn(first).wrapping_add(self.server_bytes);
        let closing = if resets { 1 } else { 3 };
        let (from_client, tcp, payload) = match (self.sent, self.left) {
            (0, _) => (true, Tcp::syn(client), 0),
            (1, _) => (false, Tcp::syn_ack(server, client), 0),
            (2, _) => (true, Tcp::ack(client, server), 0),
            (_, left) if left <= closing => match (resets, left) {
                (true, _) => (true, Tcp::rst(client, server), 0),
                (false, 3) => (true, Tcp::fin(client, server), 0),
                (false, 2) => (false, Tcp::fin(server, client), 0),
                _ => (true, Tcp::ack(client, server), 0),
            },
            _ => match sizes.draw(rng) {
                Size::Small => (true, Tcp::ack(client, server), 0),
                size => {
                    let payload = self.payload(20, size, rng);
                    let from_client = rng.random_range(0..5) == 0;
                    let tcp = match from_client {
                        true => Tcp::ack(client, server),
                        false => Tcp::ack(server, client),
                    };
                    (from_client, tcp, payload)
                }
            },
        };
        let counted = payload as u32 + tcp.control_bytes();
        // A server that echoes has sent what its client has; what the mix draws for it is not sent.
        let (of_client, of_server) = match (clients_only, from_client) {
            (true, true) => (counted, counted),
            (true, false) => (0, 0),
            (false, true) => (counted, 0),
            (false, false) => (0, counted),
        };
        self.client_bytes = self.client_bytes.wrapping_add(of_client);
        self.server_bytes = self.server_bytes.wrapping_add(of_server);
        (from_client, FrameTransport::Tcp(tcp), payload)
    }
}

/// The initial sequence number of a client: far apart for neighbouring flows.
fn isn(number: u64) -> u32 {
    ((number * 2).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

fn draw_length(config: &MixConfig, rng: &mut SmallRng) -> u32 {
    match rng.random::<f64>() {
        u if u < 0.5 => 1,
        u if u < 0.8 => rng.random_range(2..10),
        u if u < 0.95 => rng.random_range(10..=30),
        _ => {
            // The inverse of a Pareto distribution between 31 and the longest.
            let (low, high) = (31.0_f64, f64::from(config.longest) + 1.0);
            let (a, b) = (low.powf(-config.zipf), high.powf(-config.zipf));
            let u: f64 = rng.random();
            let length = (a - u * (a - b)).powf(-1.0 / config.zipf);
            (length as u32).clamp(31, config.longest)
        }
    }
}

fn draw_kind(length: u32, rng: &mut SmallRng) -> MixFlowKind {
    let percent: u32 = rng.random_range(0..100);
    match length {
        1 if percent < 60 => MixFlowKind::Udp,
        1 if percent < 75 => MixFlowKind::Ping,
        1 => MixFlowKind::Attempt { scan: percent.is_multiple_of(2) },
        2..8 if percent < 85 => MixFlowKind::Udp,
        2..8 => MixFlowKind::Ping,
        _ if percent < 80 => MixFlowKind::Tcp { resets: percent < 8 },
        _ => MixFlowKind::Udp,
    }
}
