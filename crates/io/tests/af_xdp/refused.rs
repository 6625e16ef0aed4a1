//! Packets that the kernel refuses to send: counted as such, and their buffers come home.
//!
//! Timed: clock, devices.

use rheostat_base::{DropReason, Time};
use rheostat_io::Unsent;
use rheostat_packet::Burst;

use super::rig::{Rig, config, pool, veth};
use rheostat_testkit::namespace::{isolated, shell};
use rheostat_testkit::numbered::{HEADERS, number, numbered};

/// Offers frames with payloads of these lengths, numbered in order, on lane 0, and returns how many were
/// taken and why each of the others was not.
fn offer(rig: &mut Rig, lengths: &[usize]) -> (usize, Vec<DropReason>) {
    let frames = (0..).zip(lengths).map(|(flow, length)| numbered(flow, 0, *length));
    let packets = frames.map(|frame| rig.cache.alloc_from(&frame).unwrap());
    let burst = packets.collect();
    send(rig, burst)
}

fn send(rig: &mut Rig, mut burst: Burst) -> (usize, Vec<DropReason>) {
    let taken = rig.queues[0].tx.send(&mut burst, &mut rig.cache, Time::ZERO);
    rig.end_polls(0);
    let queue = &rig.queues[0].tx;
    let reasons = burst.iter().enumerate().map(|(place, packet)| queue.why_left(place, packet));
    let reasons = reasons.collect();
    burst.into_iter().for_each(|packet| rig.cache.free(packet));
    (taken, reasons)
}

/// The flows that arrive.
fn flows(sink: &mut Rig, wanted: usize) -> Vec<u32> {
    let arrived = sink.collect(wanted);
    let flows = arrived.iter().map(|(_, packet)| number(packet).unwrap().0).collect();
    sink.free(arrived);
    flows
}

#[test]
fn what_the_other_end_of_a_virtual_wire_does_not_take_is_refused() {
    isolated(
        module_path!(),
        "what_the_other_end_of_a_virtual_wire_does_not_take_is_refused",
        || {
            let pool = pool(8_192);
            veth("rxdp0", "rxdp1", 1, 1_500);
            let mut source = Rig::open(config("rxdp0", 1), &pool);
            let mut sink = Rig::open(config("rxdp1", 1), &pool);
            shell("ip link set rxdp1 mtu 600");
            // The device cannot know that: its own interface carries 1,500 bytes.
            assert_eq!(offer(&mut source, &[64, 1_000, 64, 1_200, 1_300, 64]), (6, vec![]));
            let bytes = [1_000, 1_200, 1_300].iter().map(|length| (HEADERS + length) as u64).sum();
            let refused = Unsent { refused: 3, refused_bytes: bytes, ..Unsent::default() };
            assert_eq!(source.queues[0].tx.unsent(), refused);
            assert_eq!(flows(&mut sink, 3), [0, 2, 5]);
            let counters = source.monitor().counters();
            assert_eq!((counters.sent, counters.sent_bytes), (3, 3 * (HEADERS as u64 + 64)));
            // As many as there is room for in a burst, and nothing else.
            assert_eq!(offer(&mut source, &[1_000; 32]), (32, vec![]));
            assert_eq!(source.queues[0].tx.unsent().refused, 35);
            sink.expect_from(&mut source);
            source.close();
            sink.close();
            assert_eq!(pool.available(), 8_192, "buffers of refused packets come home");
        },
    );
}

#[test]
fn what_is_longer_than_the_mtu_stays_with_the_sender() {
    isolated(module_path!(), "what_is_longer_than_the_mtu_stays_with_the_sender", || {
        let pool = pool(8_192);
        veth("rxdp0", "rxdp1", 1, 1_500);
        let mut source = Rig::open(config("rxdp0", 1), &pool);
        let mut sink = Rig::open(config("rxdp1", 1), &pool);
        // The longest packet of an MTU of 600, and one byte more.
        let (longest, longer) = (600 - 28, 601 - 28);
        assert_eq!(offer(&mut source, &[longest, longer]), (2, vec![]));
        source.monitor().interface().unwrap().set_mtu(600);
        let left = vec![DropReason::TooBig; 2];
        assert_eq!(offer(&mut source, &[longer, 64, longest, 1_472]), (2, left));
        assert_eq!(flows(&mut sink, 4), [0, 1, 1, 2]);
        // A tag does not count.
        let mut tagged: Burst = Burst::new();
        for payload in [longest, longer] {
            let mut frame = numbered(7, 0, payload);
            frame.splice(12..12, [0x81, 0, 0, 42]);
            tagged.push(source.cache.alloc_from(&frame).unwrap());
        }
        assert_eq!(send(&mut source, tagged), (1, vec![DropReason::TooBig]));
        source.monitor().interface().unwrap().set_mtu(1_500);
        assert_eq!(offer(&mut source, &[longer, 1_472]), (2, vec![]));
        assert_eq!(source.queues[0].tx.unsent(), Unsent::default());
        source.close();
        sink.close();
        assert_eq!(pool.available(), 8_192);
    });
}

#[test]
fn what_waits_for_an_interface_that_is_down_is_not_sent_yet_and_at_the_end_refused() {
    const NAME: &str =
        "what_waits_for_an_interface_that_is_down_is_not_sent_yet_and_at_the_end_refused";
    isolated(module_path!(), NAME, || {
        let pool = pool(8_192);
        veth("rxdp0", "rxdp1", 1, 1_500);
        let mut source = Rig::open(config("rxdp0", 1), &pool);
        let mut sink = Rig::open(config("rxdp1", 1), &pool);
        shell("ip link set rxdp0 down");
        assert_eq!(offer(&mut source, &[64; 5]), (5, vec![]));
        assert_eq!(source.queues[0].tx.unsent(), Unsent { waiting: 5, ..Unsent::default() });
        shell("ip link set rxdp0 up");
        assert_eq!(flows_polled_by_both(&mut source, &mut sink, 5), 5);
        assert_eq!(source.queues[0].tx.unsent(), Unsent::default());
        shell("ip link set rxdp0 down");
        assert_eq!(offer(&mut source, &[64; 3]).0, 3);
        let Rig { queues, cache, .. } = &mut source;
        queues[0].tx.finish(cache);
        let bytes = 3 * (HEADERS as u64 + 64);
        let refused = Unsent { refused: 3, refused_bytes: bytes, ..Unsent::default() };
        assert_eq!(queues[0].tx.unsent(), refused);
        assert_eq!(source.monitor().counters().sent, 5);
        source.close();
        sink.close();
        assert_eq!(pool.available(), 8_192);
    });
}

/// Polls both ends until so many packets have arrived, and returns how many did.
fn flows_polled_by_both(source: &mut Rig, sink: &mut Rig, wanted: usize) -> usize {
    let mut arrived = 0;
    let end = std::time::Instant::now() + std::time::Duration::from_secs(120);
    while arrived < wanted && std::time::Instant::now() < end {
        let now = source.now();
        source.poll(0, now, |cache, packet| cache.free(packet));
        sink.poll(0, now, |cache, packet| {
            arrived += 1;
            cache.free(packet);
        });
    }
    arrived
}
