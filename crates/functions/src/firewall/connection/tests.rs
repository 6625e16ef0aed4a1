//! Connections as a middlebox sees them: segments of both ends, and what must follow.

use super::*;
use proptest::prelude::*;

const STRICT: TcpOptions = TcpOptions { liberal: false, pickup: false };
const C: u32 = 1_000;
const S: u32 = 4_000_000_000;

fn seg(flags: u8, seq: u32, ack: u32, len: u32) -> Segment {
    Segment { seq, ack, flags, window: 65_535, len, scale: None }
}

fn syn() -> Segment {
    Segment { scale: Some(7), ..seg(SYN, C, 0, 0) }
}

fn syn_ack() -> Segment {
    Segment { scale: Some(7), ..seg(SYN | ACK, S, C + 1, 0) }
}

fn established() -> Track {
    let mut track = Track::open(&syn(), STRICT, true).unwrap();
    assert_eq!(track.segment(false, &syn_ack(), STRICT), TcpVerdict::Pass);
    assert!(track.is_half_open());
    assert_eq!(track.segment(true, &seg(ACK, C + 1, S + 1, 0), STRICT), TcpVerdict::Pass);
    assert_eq!(track.phase(), Phase::Established);
    track
}

/// Runs segments through a connection: (from the initiator, segment, verdict, phase behind it).
fn play(track: &mut Track, script: &[(bool, Segment, TcpVerdict, Phase)]) {
    for (step, (from_initiator, segment, verdict, phase)) in script.iter().enumerate() {
        let got = track.segment(*from_initiator, segment, STRICT);
        assert_eq!((got, track.phase()), (*verdict, *phase), "step {step}: {segment:?}");
    }
}

use Phase::*;
use TcpVerdict::*;

#[test]
fn data_flows_and_both_ends_close() {
    let (c, s) = (C + 1, S + 1);
    play(
        &mut established(),
        &[
            (true, seg(ACK, c, s, 500), Pass, Established),
            (false, seg(ACK, s, c + 500, 1_460), Pass, Established),
            (false, seg(ACK, s.wrapping_add(1_460), c + 500, 1_460), Pass, Established),
            // A retransmission.
            (false, seg(ACK, s, c + 500, 1_460), Pass, Established),
            (true, seg(FIN | ACK, c + 500, s.wrapping_add(2_920), 0), Pass, Closing),
            (false, seg(ACK, s.wrapping_add(2_920), c + 501, 10), Pass, Closing),
            (false, seg(FIN | ACK, s.wrapping_add(2_930), c + 501, 0), Pass, LastAck),
            (true, seg(ACK, c + 501, s.wrapping_add(2_931), 0), Pass, TimeWait),
            // A new connection between the same endpoints.
            (true, seg(SYN, c + 90_000, 0, 0), Restart, TimeWait),
        ],
    );
}

#[test]
fn segments_outside_the_windows_are_dropped() {
    let (c, s) = (C + 1, S + 1);
    let offered = 65_535_u32 << 7;
    let wide = |flags, seq, ack, len| Segment { window: 65_535, ..seg(flags, seq, ack, len) };
    play(
        &mut established(),
        &[
            (false, wide(ACK, s, c, 0), Pass, Established),
            // Beyond what the responder has offered.
            (true, seg(ACK, c.wrapping_add(offered), s, 100), Drop, Established),
            // Acknowledges what was never sent.
            (true, seg(ACK, c, s.wrapping_add(1), 0), Drop, Established),
            // Acknowledges what is long gone.
            (true, seg(ACK, c, s.wrapping_sub(10_000_000), 0), Drop, Established),
            // Older than anything the receiver could want again.
            (false, seg(ACK, s.wrapping_sub(offered + 10), c, 0), Drop, Established),
            // A keep-alive: one byte before the next.
            (true, seg(ACK, c - 1, s, 1), Pass, Established),
        ],
    );
}

#[test]
fn the_liberal_option_lets_data_out_of_window_pass_but_no_reset() {
    let liberal = TcpOptions { liberal: true, pickup: false };
    let mut track = established();
    let stray = seg(ACK, C.wrapping_add(50_000_000), S + 1, 10);
    assert_eq!(track.segment(true, &stray, liberal), Pass);
    let mut track = established();
    let reset = seg(RST, C.wrapping_add(50_000_000), 0, 0);
    assert_eq!(track.segment(true, &reset, liberal), Drop);
    assert_eq!(track.phase(), Established);
}

#[test]
fn a_reset_must_carry_the_exact_number() {
    let (c, s) = (C + 1, S + 1);
    let mut track = established();
    play(
        &mut track,
        &[
            (true, seg(ACK, c, s, 1_000), Pass, Established),
            // Blind: beyond what was sent.
            (true, seg(RST, c + 5_000, 0, 0), Drop, Established),
            // Within what is under way: for the endpoint to challenge.
            (true, seg(RST, c + 500, 0, 0), Pass, Established),
            (true, seg(RST, c + 1_000, 0, 0), Pass, Closed),
            // A challenge, and the answer to it; but nothing blind.
            (false, seg(ACK, s, c + 1_000, 0), Pass, Closed),
            (true, seg(RST, c + 1_000, 0, 0), Pass, Closed),
            (true, seg(RST, c + 9_000, 0, 0), Drop, Closed),
            (false, seg(ACK, s.wrapping_add(70_000_000), c, 0), Drop, Closed),
            (true, seg(SYN, c + 70_000, 0, 0), Restart, Closed),
        ],
    );
}

#[test]
fn a_refused_connection_closes_only_by_an_exact_reset() {
    let mut track = Track::open(&syn(), STRICT, true).unwrap();
    play(
        &mut track,
        &[
            (false, seg(RST | ACK, 0, C + 2, 0), Drop, SynSent),
            (false, seg(RST, 0, 0, 0), Drop, SynSent),
            (false, seg(RST | ACK, 0, C + 1, 0), Pass, Closed),
        ],
    );
}

#[test]
fn handshakes_that_answer_themselves_never_become_established() {
    let mut track = Track::open(&syn(), STRICT, true).unwrap();
    for _ in 0..3 {
        play(
            &mut track,
            &[(false, syn_ack(), Pass, SynReceived), (true, syn(), Pass, SynReceived)],
        );
    }
    play(
        &mut track,
        &[
            // The responder cannot complete the handshake for the initiator.
            (false, seg(ACK, S + 1, C + 1, 0), Pass, SynReceived),
            // Nor does a wrong acknowledgement.
            (true, seg(ACK, C + 1, S + 2, 0), Drop, SynReceived),
            (true, seg(ACK, C + 1, S + 1, 0), Pass, Established),
        ],
    );
}

#[test]
fn a_syn_ack_must_acknowledge_the_syn() {
    let mut track = Track::open(&syn(), STRICT, true).unwrap();
    let wrong = Segment { ack: C, ..syn_ack() };
    play(&mut track, &[(false, wrong, Drop, SynSent), (false, syn_ack(), Pass, SynReceived)]);
}

#[test]
fn both_ends_may_open_at_once() {
    let mut track = Track::open(&syn(), STRICT, true).unwrap();
    play(
        &mut track,
        &[
            (false, seg(SYN, S, 0, 0), Pass, SynCrossed),
            (true, seg(SYN | ACK, C, S + 1, 0), Pass, SynCrossed),
            (false, seg(SYN | ACK, S, C + 1, 0), Pass, SynCrossed),
            (true, seg(SYN | ACK, C, S + 1, 0), Pass, SynCrossed),
            (true, seg(ACK, C + 1, S + 1, 100), Pass, Established),
            (false, seg(ACK, S + 1, C + 1, 100), Pass, Established),
        ],
    );
}

#[test]
fn forged_segments_leave_no_trace_in_liberal_mode() {
    let liberal = TcpOptions { liberal: true, pickup: false };
    let mut track = established();
    let forged = seg(ACK, C.wrapping_add(50_000_000), S + 1, 10);
    assert_eq!(track.segment(true, &forged, liberal), Pass);
    let reset = seg(RST, forged.end(), 0, 0);
    assert_eq!(track.segment(true, &reset, liberal), Drop);
    assert_eq!(track.phase(), Established);
}

#[test]
fn nothing_new_follows_a_fin() {
    let (c, s) = (C + 1, S + 1);
    play(
        &mut established(),
        &[
            (true, seg(FIN | ACK, c, s, 10), Pass, Closing),
            (true, seg(ACK, c + 11, s, 10), Drop, Closing),
            (true, seg(FIN | ACK, c, s, 10), Pass, Closing),
            (false, seg(ACK, s, c + 11, 0), Pass, Closing),
            (false, seg(FIN | ACK, s, c + 11, 0), Pass, LastAck),
            (true, seg(ACK, c + 11, s + 1, 0), Pass, TimeWait),
        ],
    );
}

#[test]
fn the_window_of_a_syn_is_not_scaled() {
    let mut track = Track::open(&syn(), STRICT, true).unwrap();
    play(
        &mut track,
        &[
            (false, syn_ack(), Pass, SynReceived),
            (true, seg(ACK, C + 1, S + 1, 65_535), Pass, Established),
            // The responder has offered 65,535 bytes and no more.
            (true, seg(ACK, C + 65_536, S + 1, 1), Drop, Established),
            (false, seg(ACK, S + 1, C + 65_536, 0), Pass, Established),
            (true, seg(ACK, C + 65_536, S + 1, 65_000), Pass, Established),
        ],
    );
}

#[test]
fn data_in_the_syn_may_be_left_unacknowledged() {
    let mut track = Track::open(&Segment { len: 100, ..syn() }, STRICT, true).unwrap();
    play(
        &mut track,
        &[
            (false, Segment { ack: C + 102, ..syn_ack() }, Drop, SynSent),
            (false, syn_ack(), Pass, SynReceived),
            (true, seg(ACK, C + 1, S + 1, 100), Pass, Established),
        ],
    );
}

#[test]
fn a_responder_without_state_may_choose_another_number() {
    let mut track = Track::open(&syn(), STRICT, true).unwrap();
    play(
        &mut track,
        &[
            (false, syn_ack(), Pass, SynReceived),
            (false, Segment { seq: 77, ..syn_ack() }, Pass, SynReceived),
            (true, seg(ACK, C + 1, S + 1, 0), Drop, SynReceived),
            (true, seg(ACK, C + 1, 78, 0), Pass, Established),
        ],
    );
}

#[test]
fn a_lost_peer_can_find_out_and_reset() {
    let (c, s) = (C + 1, S + 1);
    play(
        &mut established(),
        &[
            (true, seg(SYN, C + 100, 0, 0), Drop, Established),
            (true, seg(SYN, C.wrapping_sub(200_000_000), 0, 0), Pass, Established),
            (false, seg(ACK, s, c, 0), Pass, Established),
            (true, seg(RST, c, 0, 0), Pass, Closed),
        ],
    );
}

#[test]
fn flags_that_no_one_sends_are_dropped() {
    for flags in [0, FIN, SYN | FIN, SYN | RST, FIN | RST | ACK, SYN | FIN | ACK, 0xff] {
        assert!(Track::open(&seg(flags, 1, 1, 0), STRICT, true).is_none(), "{flags:#x}");
        assert_eq!(established().segment(true, &seg(flags, C + 1, S + 1, 0), STRICT), Drop);
    }
}

#[test]
fn a_connection_can_be_entered_in_the_middle_when_asked_for() {
    let middle = seg(ACK, 500, 900, 100);
    assert!(Track::open(&middle, STRICT, true).is_none());
    let mut track =
        Track::open(&middle, TcpOptions { liberal: false, pickup: true }, true).unwrap();
    play(
        &mut track,
        &[
            (false, seg(ACK, 900, 600, 1_460), Pass, Established),
            (true, seg(FIN | ACK, 600, 2_360, 0), Pass, Closing),
            (false, seg(FIN | ACK, 2_360, 601, 0), Pass, LastAck),
            (true, seg(ACK, 601, 2_361, 0), Pass, TimeWait),
        ],
    );
}

#[test]
fn a_closed_window_lets_a_probe_through() {
    let (c, s) = (C + 1, S + 1);
    let full = Segment { window: 0, ..seg(ACK, s, c + 65_535, 0) };
    let mut track = Track::open(&Segment { scale: None, ..syn() }, STRICT, true).unwrap();
    play(
        &mut track,
        &[
            (false, Segment { scale: None, ..syn_ack() }, Pass, SynReceived),
            (true, seg(ACK, c, s, 65_535), Pass, Established),
            (false, full, Pass, Established),
            (true, seg(ACK, c + 65_535, s, 1), Pass, Established),
            (true, seg(ACK, c + 65_537, s, 1), Drop, Established),
        ],
    );
}

/// One honest end: sends within the peer's window, acknowledges what it has.
#[derive(Clone, Copy)]
struct End {
    next: u32,
    received: u32,
}

/// Mostly those of data.
fn flags() -> impl Strategy<Value = u8> {
    prop_oneof![12 => Just(ACK), 1 => Just(FIN | ACK), 1 => Just(SYN), 1 => Just(SYN | ACK), 1 => Just(RST), 1 => any::<u8>()]
}

/// How far a number lies behind the newest: mostly not at all, sometimes before it.
fn number() -> impl Strategy<Value = u32> {
    prop_oneof![6 => Just(0), 2 => 0_u32..3_000, 1 => 0_u32..200_000, 1 => any::<u32>()]
}

proptest! {
    /// Whatever two honest ends send, in order, passes: any amounts of data in either direction,
    /// retransmissions of what is not acknowledged, across the wrap of sequence numbers.
    #[test]
    fn honest_segments_pass(
        isn in any::<(u32, u32)>(),
        steps in prop::collection::vec((any::<bool>(), 0_u32..3_000, any::<bool>()), 1..200),
    ) {
        let mut track = Track::open(&Segment { scale: Some(3), ..seg(SYN, isn.0, 0, 0) }, STRICT, true).unwrap();
        let (c, s) = (isn.0.wrapping_add(1), isn.1.wrapping_add(1));
        let answer = Segment { scale: Some(3), ..seg(SYN | ACK, isn.1, c, 0) };
        prop_assert_eq!(track.segment(false, &answer, STRICT), Pass);
        prop_assert_eq!(track.segment(true, &seg(ACK, c, s, 0), STRICT), Pass);
        let mut ends = [End { next: c, received: s }, End { next: s, received: c }];
        for (from_initiator, len, again) in steps {
            let (me, peer) = if from_initiator { (0, 1) } else { (1, 0) };
            // All of the peer's data has arrived, as it passed the middlebox in order.
            let mine = ends[me];
            prop_assert_eq!(track.segment(from_initiator, &seg(ACK, mine.next, mine.received, len), STRICT), Pass);
            if again {
                prop_assert_eq!(track.segment(from_initiator, &seg(ACK, mine.next, mine.received, len), STRICT), Pass);
            }
            ends[me].next = mine.next.wrapping_add(len);
            ends[peer].received = ends[me].next;
        }
        prop_assert_eq!(track.phase(), Established);
    }

    /// Whatever two ends and others send, honest or not: what continues a connection passes, and the fast path leaves it as
    /// the general way does.
    #[test]
    fn the_fast_path_does_what_the_general_way_does(
        options in (any::<bool>(), any::<bool>()),
        scales in (prop::option::of(0_u8..15), prop::option::of(0_u8..15)),
        windows in (any::<u16>(), any::<u16>()),
        steps in prop::collection::vec((any::<bool>(), flags(), number(), number(), any::<u16>(), 0_u32..1_461), 1..60),
    ) {
        let options = TcpOptions { liberal: options.0, pickup: options.1 };
        let first = if options.pickup { seg(ACK, C, S, 100) } else { Segment { window: windows.0, scale: scales.0, ..syn() } };
        let mut track = Track::open(&first, options, true).unwrap();
        track.segment(false, &Segment { window: windows.1, scale: scales.1, ..syn_ack() }, options);
        let mut sent = [C + 1, S + 1];
        for (from_initiator, flags, back, lag, window, len) in steps {
            let (me, peer) = if from_initiator { (0, 1) } else { (1, 0) };
            let segment = Segment { window, ..seg(flags, sent[me].wrapping_sub(back), sent[peer].wrapping_sub(lag), len) };
            let mut fast = track;
            let continues = fast.is_continued_by(from_initiator, &segment);
            let verdict = track.segment(from_initiator, &segment, options);
            if continues {
                fast.follow(from_initiator, &segment);
                prop_assert_eq!(verdict, Pass);
                prop_assert_eq!(format!("{fast:?}"), format!("{track:?}"));
            }
            if verdict == Pass && flags & (SYN | RST) == 0 && back == 0 {
                sent[me] = sent[me].wrapping_add(len + u32::from(flags & FIN));
            }
        }
    }

    /// A segment with blind numbers passes only within the windows, about window ÷ 2^32 of the time
    /// for each of the two numbers, and a blind reset never closes.
    #[test]
    fn blind_segments_do_not_pass(seq: u32, ack: u32) {
        let mut track = established();
        let near = |a: u32, b: u32| (a.wrapping_sub(b) as i32).unsigned_abs() < 9_000_000;
        prop_assume!(!near(seq, C) || !near(ack, S));
        prop_assert_eq!(track.segment(true, &seg(ACK, seq, ack, 10), STRICT), Drop);
        prop_assume!(seq != C + 1);
        track.segment(true, &seg(RST, seq, 0, 0), STRICT);
        prop_assert_eq!(track.phase(), Established);
    }
}

#[test]
fn windows_are_not_scaled_when_only_the_responder_offers_it() {
    let mut track = Track::open(&Segment { scale: None, ..syn() }, STRICT, true).unwrap();
    let small = |segment: Segment| Segment { window: 1_000, ..segment };
    play(
        &mut track,
        &[
            (false, small(syn_ack()), Pass, SynReceived),
            (true, seg(ACK, C + 1, S + 1, 0), Pass, Established),
            (false, small(seg(ACK, S + 1, C + 1, 0)), Pass, Established),
            (true, seg(ACK, C + 1, S + 1, 2_000), Drop, Established),
            (true, seg(ACK, C + 1, S + 1, 1_000), Pass, Established),
        ],
    );
}

#[test]
fn an_offer_that_was_never_made_widens_no_window_of_a_connection_that_was_reset() {
    let mut track = Track::open(&Segment { scale: None, ..syn() }, STRICT, true).unwrap();
    let behind = 0_u32.wrapping_sub(70_000);
    play(
        &mut track,
        &[
            (true, seg(RST, C + 1, 0, 0), Pass, Closed),
            (false, seg(ACK, behind, C + 1, 0), Drop, Closed),
        ],
    );
}
