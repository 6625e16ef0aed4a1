use super::*;
use std::net::Ipv4Addr;

use rheostat_base::{DeviceId, DropReason, LaneId, ShardId, Time};
use rheostat_capture::trace::Step;
use rheostat_packet::FlowKey;

fn event(packet: u8, us: u64, lane: u16, step: Step) -> Event {
    Event { packet, at: Time::from_nanos(5_000_000 + us * 1_000), lane: LaneId(lane), step }
}

fn received() -> Step {
    let hash = Some((0x1a2b, "addresses and ports"));
    Step::Received { device: DeviceId(0), length: 74, nanos: 9, hash, bucket: Some(43) }
}

fn log(count: u8) -> TraceLog {
    TraceLog::new(vec!["lan".into(), "wan".into()], count)
}

#[test]
fn notes_of_several_lanes_become_one_way_in_the_order_of_time() {
    let mut log = log(1);
    let inner =
        FlowKey::v4((Ipv4Addr::new(10, 0, 0, 5), 40), (Ipv4Addr::new(192, 0, 2, 1), 80), 6, 0);
    let outer =
        FlowKey::v4((Ipv4Addr::new(203, 0, 113, 1), 50), (Ipv4Addr::new(192, 0, 2, 1), 80), 6, 0);
    let placed = Step::Placed {
        kind: "flow",
        key: Some(inner),
        from_inside: true,
        shard: ShardId(43),
        owner: LaneId(1),
    };
    let nat =
        Step::Function { name: "Nat", verdict: "forward".into(), rewrote: Some((inner, outer)) };
    // The owner's ring is read before that of the lane that received the packet has its notes.
    log.add(event(9, 12, 1, Step::Taken));
    log.add(event(9, 13, 1, nat));
    log.add(event(9, 15, 1, Step::Sent(DeviceId(1))));
    let paths = log.finished_after(|log| {
        log.add(event(9, 0, 0, received()));
        log.add(event(9, 1, 0, placed));
        log.add(event(9, 1, 0, Step::HandedTo(LaneId(1))));
    });
    let text = paths[0].to_string();
    let expected = "\
packet 1
        0.0 us  lane 0   received on lan: 74 bytes, hash 00001a2b over addresses and ports, bucket 43
        1.0 us  lane 0   flow tcp 10.0.0.5:40 - 192.0.2.1:80, from inside; shard 43 of lane 1
        1.0 us  lane 0   handed to lane 1
       12.0 us  lane 1   taken from the ring between lanes
       13.0 us  lane 1   Nat: forward; tcp 10.0.0.5:40 - 192.0.2.1:80 is now tcp 203.0.113.1:50 - 192.0.2.1:80
       15.0 us  lane 1   sent on wan";
    assert_eq!(text, expected);
    assert!(log.is_complete() && log.unfinished().is_empty());
    let json = serde_json::to_value(&paths[0]).unwrap();
    assert_eq!(json["points"][4]["stage"], "function");
    assert_eq!(json["points"][4]["after"]["inner"], "203.0.113.1:50");
    assert_eq!(serde_json::from_value::<PacketPath>(json).unwrap(), paths[0]);
}

#[test]
fn what_never_arrived_here_is_not_told() {
    let mut log = log(2);
    log.add(event(3, 1, 0, Step::Dropped(DropReason::Denied)));
    assert!(log.finished_after(|_| {}).is_empty(), "a packet of an earlier trace");
    log.add(event(4, 1, 0, received()));
    assert!(log.finished_after(|_| {}).is_empty(), "it is still under way");
    let rest = log.unfinished();
    assert!(!rest[0].finished && rest[0].to_string().ends_with("still under way"));
    assert!(!log.is_complete() && log.reported() == 1);
}
