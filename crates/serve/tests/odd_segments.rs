//! Segments that no honest peer sends: each is counted by its reason, and the connection goes on.

use rheostat_base::DropReason;
use rheostat_packet::build::{Ethernet, FrameBuilder, Payload, TcpHeader, Transport};
use rheostat_packet::wire::TcpSegment;
use rheostat_packet::{Headers, LinkType};
use rheostat_serve::Totals;
use rheostat_serve::echo::Echo;
use rheostat_tcp::{Header, Options, SequenceNumber, SequenceRange};

use crate::rig::{Client, LOCAL_V4, LOCAL_V6, MAC, PORT, Plan, Rig};

const ISN: u32 = 5_000;

/// A peer that sends what the test says.
struct Peer {
    rig: Rig,
    frames: Client,
    /// The service's next number.
    theirs: u32,
}

impl Peer {
    /// A connection, with SACK and without time stamps. The peer's first byte has the number 1 for it.
    fn connected() -> Peer {
        let mut rig = Rig::new(Echo, Plan::default());
        let frames = rig.connect(1_000);
        let options = Options { sack_permitted: true, mss: Some(1_000), ..Options::default() };
        let syn = Header {
            seq: SequenceNumber(ISN),
            syn: true,
            window: 60_000,
            options,
            ..Header::default()
        };
        rig.inject(frames.frame(&syn, b""), 0);
        rig.step(&mut []);
        let (seq, ..) = read(&rig.stray.remove(0));
        let mut peer = Peer { rig, frames, theirs: seq + 1 };
        peer.send(1, b"");
        assert_eq!(peer.rig.control.totals().accepted, 1);
        peer
    }

    fn header(&self, seq: u32) -> Header {
        Header {
            seq: SequenceNumber(ISN.wrapping_add(seq)),
            ack: Some(SequenceNumber(self.theirs)),
            window: 60_000,
            ..Header::default()
        }
    }

    fn send(&mut self, seq: u32, payload: &[u8]) {
        let header = self.header(seq);
        self.send_with(&header, payload);
    }

    fn send_with(&mut self, header: &Header, payload: &[u8]) {
        let frame = self.frames.frame(header, payload);
        self.send_frame(frame);
    }

    fn send_frame(&mut self, frame: Vec<u8>) {
        self.rig.inject(frame, 0);
        self.rig.step(&mut []);
    }

    /// The service echoes this, which is acknowledged.
    fn expect(&mut self, data: &[u8]) {
        let mut echoed = Vec::new();
        for _ in 0..200 {
            self.rig.step(&mut []);
            for frame in std::mem::take(&mut self.rig.stray) {
                let (seq, payload, is_reset) = read(&frame);
                assert!(!is_reset, "the connection goes on");
                if seq == self.theirs && !payload.is_empty() {
                    echoed.extend_from_slice(&payload);
                    self.theirs = self.theirs.wrapping_add(payload.len() as u32);
                }
            }
        }
        assert_eq!(echoed, data);
    }

    /// That many segments were ignored for the reason that `of` picks, and none for another.
    fn assert_ignored(&self, of: impl Fn(&Totals) -> u64, count: u64) {
        let totals = self.rig.control.totals();
        let all = totals.named().filter(|(name, _)| name.starts_with("ignored_"));
        assert_eq!((of(&totals), all.map(|(_, count)| count).sum::<u64>()), (count, count));
    }

    fn dropped(&self, reason: DropReason) -> u64 {
        self.rig.sample().dropped[reason as usize]
    }
}

/// Number, data, and whether it is a reset.
fn read(frame: &[u8]) -> (u32, Vec<u8>, bool) {
    let headers = Headers::parse_bytes(frame, frame.len(), LinkType::Ethernet).expect("IP");
    let transport = &frame[usize::from(headers.l4)..headers.end as usize];
    let view = TcpSegment::new(transport).expect("a segment");
    (view.seq(), transport[view.header_len()..].to_vec(), view.flags().0 & 4 != 0)
}

#[test]
fn a_peer_that_names_no_segment_size_gets_the_default_of_its_version() {
    // RFC 9293, 3.7.1.
    for (local, own, size) in [(LOCAL_V4, "10.0.0.2", 536), (LOCAL_V6, "fd00::2", 1_220)] {
        let mut rig = Rig::new(Echo, Plan::default());
        let frames = Client::connect(local, own, 1_000, None, rig.now);
        let header = |seq: u32, ack: Option<u32>| Header {
            seq: SequenceNumber(ISN) + seq,
            ack: ack.map(SequenceNumber),
            window: 60_000,
            ..Header::default()
        };
        rig.inject(frames.frame(&Header { syn: true, ..header(0, None) }, b""), 0);
        rig.step(&mut []);
        let theirs = read(&rig.stray.remove(0)).0 + 1;
        rig.inject(frames.frame(&header(1, Some(theirs)), &[7; 1_300]), 0);
        rig.step(&mut []);
        let longest = rig.stray.iter().map(|frame| read(frame).1.len()).max();
        assert_eq!(longest, Some(size), "{local}");
        let reset = Header { rst: true, ..header(1_301, None) };
        rig.inject(frames.frame(&reset, b""), 0);
        rig.step(&mut []);
        rig.finish();
    }
}

#[test]
fn data_that_overlaps_is_counted_and_what_is_in_order_stays() {
    let mut peer = Peer::connected();
    peer.send(11, b"KLMNO");
    peer.send(8, b"hijklmnop");
    peer.assert_ignored(|totals| totals.ignored_overlap, 1);
    peer.send(1, b"abcdefg");
    // Beyond a gap, what came last counts.
    peer.expect(b"abcdefghijklmnop");
    peer.send(1, b"ABCDEFGHIJKLMNOPqr");
    peer.assert_ignored(|totals| totals.ignored_overlap, 2);
    peer.expect(b"qr");
    peer.rig.finish();
}

#[test]
fn what_has_arrived_before_is_counted_and_acknowledged() {
    let mut peer = Peer::connected();
    peer.send(1, b"abc");
    peer.expect(b"abc");
    peer.send(1, b"abc");
    peer.assert_ignored(|totals| totals.ignored_duplicate, 1);
    assert_eq!(peer.rig.stray.len(), 1);
    peer.rig.finish();
}

#[test]
fn what_is_outside_the_window_is_counted_and_so_is_what_is_cut_off() {
    let mut peer = Peer::connected();
    for seq in [1 << 20, 1 << 30, (1 << 31) + 9, u32::MAX - 5_000] {
        peer.send(seq, b"");
    }
    peer.assert_ignored(|totals| totals.ignored_outside_window, 4);
    peer.send(1, b"");
    peer.expect(b"");
    // The window ends within it.
    let edge = 65_536;
    peer.send(edge - 600, &[b'x'; 1_000]);
    let totals = peer.rig.control.totals();
    assert_eq!((totals.ignored_beyond_window, totals.ignored_outside_window), (1, 4));
    peer.send(1, b"abc");
    peer.expect(b"abc");
    peer.rig.finish();
}

#[test]
fn segments_without_data_are_nothing_unusual() {
    let mut peer = Peer::connected();
    for _ in 0..100 {
        peer.send(1, b"");
    }
    peer.assert_ignored(|_| 0, 0);
    assert_eq!(peer.rig.stray.len(), 0, "they are not answered");
    peer.send(1, b"abc");
    peer.expect(b"abc");
    peer.rig.finish();
}

#[test]
fn syn_and_fin_together_and_resets_elsewhere_change_nothing() {
    let mut peer = Peer::connected();
    peer.send_with(&Header { syn: true, fin: true, ..peer.header(1) }, b"");
    peer.assert_ignored(|totals| totals.ignored_syn, 1);
    for seq in [2, 1_000, 1 << 25] {
        peer.send_with(&Header { rst: true, ack: None, ..peer.header(seq) }, b"");
    }
    let totals = peer.rig.control.totals();
    assert_eq!((totals.ignored_syn, totals.ignored_reset), (1, 3));
    peer.send_with(&Header { ack: None, ..peer.header(1) }, b"abc");
    for by in [1, 5_000, 1 << 31] {
        let ack = Some(SequenceNumber(peer.theirs.wrapping_add(by)));
        peer.send_with(&Header { ack, ..peer.header(1) }, b"abc");
    }
    assert_eq!(peer.rig.control.totals().ignored_acknowledgement, 4);
    peer.send(1, b"abc");
    peer.expect(b"abc");
    peer.rig.finish();
}

#[test]
fn more_ranges_beyond_gaps_than_may_be_are_counted() {
    let mut peer = Peer::connected();
    for n in 1..=40 {
        peer.send(1 + 20 * n, b"x");
    }
    // 32 ranges are held.
    peer.assert_ignored(|totals| totals.ignored_no_room, 8);
    peer.send(1, b"abc");
    peer.expect(b"abc");
    peer.rig.finish();
}

/// A frame of the peer with these options, as bytes.
fn with_options(peer: &Peer, payload: &[u8], options: &[u8]) -> Vec<u8> {
    let (seq, ack) = (ISN + 1, peer.theirs);
    let ports = (1_000, PORT);
    let header = TcpHeader { ports, seq, ack, flags: 16, window: 60_000, urgent: 0, options };
    let link = Ethernet { source: [2, 0, 0, 0, 0, 2], destination: MAC, vlan: None };
    let (from, to) = ("10.0.0.2".parse().unwrap(), LOCAL_V4.parse().unwrap());
    FrameBuilder::new(from, to, Transport::Tcp(header), Payload::Bytes(payload))
        .with_ethernet(link)
        .to_vec()
}

#[test]
fn options_that_are_cut_short_are_not_read_and_headers_that_are_are_dropped() {
    let mut peer = Peer::connected();
    // Time stamps, SACK, and an unknown option, each longer than what there is; a length of 0, and of 1.
    for options in [[8, 10, 0, 0], [1, 5, 10, 0], [1, 1, 99, 3], [77, 0, 0, 0], [1, 77, 1, 0]] {
        peer.send_frame(with_options(&peer, b"", &options));
    }
    peer.assert_ignored(|_| 0, 0);
    peer.send_frame(with_options(&peer, b"abc", &[8, 10, 0, 0]));
    peer.expect(b"abc");
    for words in [0, 4, 15] {
        // The header says that it is shorter than any, or longer than the packet.
        let mut frame = with_options(&peer, b"", &[]);
        frame[14 + 20 + 12] = words << 4;
        peer.send_frame(frame);
    }
    let dropped = peer.dropped(DropReason::Malformed) + peer.dropped(DropReason::TcpChecksum);
    assert_eq!(dropped, 3);
    peer.rig.finish();
}

#[test]
fn sixty_four_kib_of_blocks_are_borne() {
    let mut peer = Peer::connected();
    // The service has 40,000 bytes in flight, or as many as it may.
    let data: Vec<u8> = (0..40_000_u32).map(|at| (at / 5) as u8).collect();
    for (n, piece) in data.chunks(1_000).enumerate() {
        peer.send(1 + 1_000 * n as u32, piece);
    }
    peer.rig.stray.clear();
    let mut draw = 1_u32;
    for _ in 0..(64 << 10) / 34 {
        let mut header = peer.header(40_001);
        for _ in 0..4 {
            draw = draw.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let start = SequenceNumber(peer.theirs.wrapping_add(draw >> 16));
            header.options.sack.push(SequenceRange::of_len(start, draw >> 8 & 511));
        }
        peer.send_with(&header, b"");
    }
    // What was said to have arrived is sent again, once the timer has run out.
    let mut echoed = Vec::new();
    for _ in 0..100_000 {
        let before = echoed.len();
        for frame in std::mem::take(&mut peer.rig.stray) {
            let (seq, payload, is_reset) = read(&frame);
            assert!(!is_reset);
            let skip = peer.theirs.wrapping_sub(seq) as usize;
            if skip < payload.len() {
                echoed.extend_from_slice(&payload[skip..]);
                peer.theirs = peer.theirs.wrapping_add((payload.len() - skip) as u32);
            }
        }
        if echoed.len() == data.len() {
            break;
        }
        if echoed.len() > before {
            peer.send(40_001, b"");
        } else {
            peer.rig.step(&mut []);
        }
    }
    assert!(echoed == data, "{} bytes came back", echoed.len());
    peer.rig.finish();
}

#[test]
fn segments_from_our_own_address_are_dropped() {
    let mut peer = Peer::connected();
    for syn in [2, 16] {
        let header = TcpHeader {
            ports: (1_000, PORT),
            seq: 1,
            ack: 0,
            flags: syn,
            window: 9,
            urgent: 0,
            options: &[],
        };
        let own = LOCAL_V4.parse().unwrap();
        let link = Ethernet { source: [2, 0, 0, 0, 0, 2], destination: MAC, vlan: None };
        let frame = FrameBuilder::new(own, own, Transport::Tcp(header), Payload::Bytes(b""))
            .with_ethernet(link)
            .to_vec();
        peer.send_frame(frame);
    }
    assert_eq!(peer.dropped(DropReason::Martian), 2);
    peer.rig.finish();
}
