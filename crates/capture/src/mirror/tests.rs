use super::*;
use crate::Point;
use crate::trace::Step;
use rheostat_base::{DeviceId, DropReason, Time, VirtualClock};
use rheostat_packet::{Mbuf, Mempool, MempoolConfig, PoolCache};
use rheostat_steer::{HashKey, Orientation, Steering};

/// Buffers in the pool of a test.
const BUFFERS: u32 = 1_024;

struct Rig {
    mirrors: Arc<Mirrors>,
    clock: VirtualClock,
    steering: Steering,
    pool: PoolCache,
}

fn rig(lanes: usize) -> Rig {
    let clock = VirtualClock::new();
    let pool = Mempool::new(&MempoolConfig { buffers: BUFFERS, ..MempoolConfig::default() });
    Rig {
        mirrors: Mirrors::new(lanes, StdArc::new(clock.clone()), Epoch::Clock(1_000)),
        clock,
        steering: Steering::new(&HashKey::MICROSOFT, 128, 128, vec![Orientation::Inside]).unwrap(),
        pool: PoolCache::new(pool.unwrap()),
    }
}

impl Rig {
    /// A frame that is no IP, of this length.
    fn packet(&mut self, len: usize) -> Mbuf {
        let mut packet = self.pool.alloc(len).unwrap();
        packet.data_mut().fill(len as u8);
        packet.set_timestamp(Time::from_nanos(len as u64));
        packet
    }

    fn receive(&mut self, mirror: &mut LaneMirror, len: usize) -> Mbuf {
        mirror.refresh();
        let mut burst = [self.packet(len)];
        if mirror.is_armed() {
            mirror.received(DeviceId(0), &mut burst, &self.steering);
        }
        let [packet] = burst;
        packet
    }
}

fn copies(capture: &mut Capture) -> Vec<Copied> {
    let mut copies = Vec::new();
    capture.take(usize::MAX, |copy| copies.push(copy));
    copies
}

#[test]
fn a_tap_shows_packets_while_someone_looks_and_only_then() {
    let mut rig = rig(1);
    let mut mirror = Mirrors::of_lane(&rig.mirrors, LaneId(0));
    rig.receive(&mut mirror, 60);
    assert!(!mirror.is_armed());
    let mut capture =
        Mirrors::capture(&rig.mirrors, Wanted { snaplen: 10, ..Wanted::default() }).unwrap();
    rig.receive(&mut mirror, 61);
    assert!(mirror.is_armed());
    let seen = copies(&mut capture);
    assert_eq!(seen.len(), 1);
    let copy = &seen[0];
    assert_eq!((copy.point, copy.device, copy.lane), (Point::Before, DeviceId(0), LaneId(0)));
    assert_eq!((copy.wire_len, &copy.bytes[..]), (61, &[61_u8; 10][..]));
    assert_eq!(copy.nanos, 1_061, "its stamp, from 1970 on");
    drop(capture);
    rig.receive(&mut mirror, 62);
    assert!(!mirror.is_armed());
}

#[test]
fn of_the_packets_offered_those_that_the_device_took_are_shown_as_sent() {
    let mut rig = rig(1);
    let mut mirror = Mirrors::of_lane(&rig.mirrors, LaneId(0));
    let wanted = Wanted { dropped: true, ..Wanted::default() };
    let mut capture = Mirrors::capture(&rig.mirrors, wanted).unwrap();
    mirror.refresh();
    rig.clock.advance_to(Time::from_nanos(500));
    let burst = [rig.packet(60), rig.packet(61), rig.packet(62)];
    mirror.offer(DeviceId(1), &burst);
    mirror.took(DeviceId(1), 2);
    mirror.dropped(DeviceId(1), &burst[2], DropReason::TransmitFull);
    let seen = copies(&mut capture);
    let points: Vec<_> = seen.iter().map(|copy| (copy.point, copy.wire_len)).collect();
    let refused = Point::Dropped(DropReason::TransmitFull);
    assert_eq!(points, [(Point::After, 60), (Point::After, 61), (refused, 62)]);
    assert!(seen.iter().all(|copy| copy.device == DeviceId(1) && copy.nanos == 1_500));
    assert!(seen.iter().all(|copy| !copy.point.is_inbound()));
}

#[test]
fn copies_wait_for_comments_until_the_end_of_their_poll() {
    let mut rig = rig(1);
    let mut mirror = Mirrors::of_lane(&rig.mirrors, LaneId(0));
    mirror.expect_comments();
    let mut capture = Mirrors::capture(&rig.mirrors, Wanted::default()).unwrap();
    let received = [60, 61, 62].map(|len| rig.receive(&mut mirror, len));
    assert!(mirror.is_capturing() && copies(&mut capture).is_empty());
    mirror.comment_on_received(&received[1], "accepted");
    let said = |copies: &[Copied]| -> Vec<(u32, Option<String>)> {
        copies.iter().map(|copy| (copy.wire_len, copy.comment.clone())).collect()
    };
    assert_eq!(said(&copies(&mut capture)), [(61, Some("accepted".into()))]);
    mirror.end_poll();
    assert_eq!(said(&copies(&mut capture)), [(60, None), (62, None)]);

    let burst = [rig.packet(70), rig.packet(71)];
    mirror.comment_on_sent(&burst[1], "an older one".into());
    mirror.comment_on_sent(&burst[1], "data".into());
    mirror.offer(DeviceId(1), &burst);
    mirror.took(DeviceId(1), 2);
    assert_eq!(said(&copies(&mut capture)), [(70, None), (71, Some("data".into()))]);
}

#[test]
fn copies_that_wait_come_though_another_capture_ends() {
    let mut rig = rig(1);
    let mut mirror = Mirrors::of_lane(&rig.mirrors, LaneId(0));
    mirror.expect_comments();
    let first = Mirrors::capture(&rig.mirrors, Wanted::default()).unwrap();
    let mut second = Mirrors::capture(&rig.mirrors, Wanted::default()).unwrap();
    rig.receive(&mut mirror, 60);
    drop(first);
    mirror.refresh();
    assert_eq!(copies(&mut second).len(), 1);
}

#[test]
fn only_what_is_wanted_is_copied() {
    let mut rig = rig(1);
    let mut mirror = Mirrors::of_lane(&rig.mirrors, LaneId(0));
    let none = Wanted { before: false, after: false, ..Wanted::default() };
    let mut denied = Mirrors::capture(
        &rig.mirrors,
        Wanted { dropped: true, reason: Some(DropReason::Denied), ..none.clone() },
    )
    .unwrap();
    let mut other =
        Mirrors::capture(&rig.mirrors, Wanted { device: Some(DeviceId(3)), ..Wanted::default() })
            .unwrap();
    let mut out =
        Mirrors::capture(&rig.mirrors, Wanted { inbound: Some(false), ..Wanted::default() })
            .unwrap();
    let filter = Some("arp".parse().unwrap());
    let mut arp = Mirrors::capture(&rig.mirrors, Wanted { filter, ..Wanted::default() }).unwrap();
    assert_eq!(Mirrors::capture(&rig.mirrors, none).unwrap_err(), TapBusy::Captures);
    let packet = rig.receive(&mut mirror, 60);
    mirror.dropped(DeviceId(0), &packet, DropReason::NotIp);
    mirror.dropped(DeviceId(0), &packet, DropReason::Denied);
    let points: Vec<_> = copies(&mut denied).iter().map(|copy| copy.point).collect();
    assert_eq!(points, [Point::Dropped(DropReason::Denied)]);
    for capture in [&mut other, &mut out, &mut arp] {
        assert_eq!(copies(capture), []);
    }
    drop(other);
    assert!(
        Mirrors::capture(&rig.mirrors, Wanted::default()).is_ok(),
        "the place of one that ended is free"
    );
}

#[test]
fn what_a_slow_reader_leaves_no_room_for_is_counted() {
    let mut rig = rig(1);
    let mut mirror = Mirrors::of_lane(&rig.mirrors, LaneId(0));
    let mut capture = Mirrors::capture(&rig.mirrors, Wanted::default()).unwrap();
    for _ in 0..COPIES + 7 {
        let packet = rig.receive(&mut mirror, 60);
        rig.pool.free(packet);
    }
    assert_eq!((copies(&mut capture).len(), capture.lost()), (COPIES, 7));
    rig.receive(&mut mirror, 60);
    assert_eq!((copies(&mut capture).len(), capture.lost()), (1, 7));
}

#[test]
fn a_packet_is_followed_from_lane_to_lane() {
    let mut rig = rig(2);
    let (mut one, mut other) =
        (Mirrors::of_lane(&rig.mirrors, LaneId(0)), Mirrors::of_lane(&rig.mirrors, LaneId(1)));
    other.refresh();
    let mut trace = Mirrors::trace(&rig.mirrors, None, 2).unwrap();
    assert_eq!(Mirrors::trace(&rig.mirrors, None, 2).unwrap_err(), TapBusy::Trace);
    let packet = rig.receive(&mut one, 60);
    assert_eq!(packet.mark(), 1);
    // The other lane has not polled since the trace began.
    other.note(&packet, Step::Taken);
    other.offer(DeviceId(1), std::slice::from_ref(&packet));
    other.took(DeviceId(1), 1);
    let unmarked = rig.packet(60);
    other.note(&unmarked, Step::Taken);
    let mut events = Vec::new();
    trace.take(|event| events.push((event.packet, event.lane.0, event.step)));
    assert!(matches!(events[0], (1, 0, Step::Received { length: 60, hash: None, .. })));
    assert_eq!(events[1..], [(1, 1, Step::Taken), (1, 1, Step::Sent(DeviceId(1)))]);
    // No more than asked for, and no mark twice while packets of the last trace may be under way.
    let marks: Vec<_> = (0..3).map(|_| rig.receive(&mut one, 60).mark()).collect();
    assert_eq!(marks, [2, 0, 0]);
    drop(trace);
    let trace = Mirrors::trace(&rig.mirrors, Some("not tcp".parse().unwrap()), 255).unwrap();
    let marks: Vec<_> = (0..256).map(|_| rig.receive(&mut one, 60).mark()).collect();
    assert_eq!((marks[0], marks[252], marks[253], marks[255]), (3, 255, 1, 0));
    drop(trace);
    one.note(&packet, Step::Consumed);
    assert!(!one.is_armed());
}
