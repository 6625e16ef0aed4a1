//! Lanes that claim packets of one ring, which leave in the order of claims.
//!
//! Timed: threads, processes, devices.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rheostat_base::Time;
use rheostat_io::layer::ordered::in_order;
use rheostat_io::layer::reopen::ReopenableDevice;
use rheostat_io::{Device, OpenError, QueuePair, XdpConfig, XdpDevice};
use rheostat_packet::{BURST, Burst, Mbuf, Mempool, PoolCache};

use super::rig::{Rig, UNDER_WAY, await_condition, config, pool, veth};
use rheostat_testkit::namespace::{isolated, shell};
use rheostat_testkit::numbered::{number, numbered};

const NOW: Time = Time::from_nanos(7);

/// A device whose two lanes send back what they claim, and its peer.
struct Loop {
    source: Rig,
    lanes: Vec<QueuePair>,
    device: Box<dyn Device>,
    cache: PoolCache,
    pools: (Mempool, Mempool),
}

impl Loop {
    fn open(descriptors: u32) -> Loop {
        let pools = (pool(8_192), pool(16_384));
        veth("rxdp0", "rxdp1", 1, 1_500);
        let source = Rig::open(config("rxdp0", 1), &pools.0);
        let shared = XdpConfig { claimants: 2, ordered: true, descriptors, ..config("rxdp1", 2) };
        let device = XdpDevice::open(shared, &pools.1).unwrap();
        let mut device = in_order(vec![Box::new(device)], 2).remove(0);
        let cache = PoolCache::new(pools.1.clone());
        Loop { source, lanes: device.queues(), device, cache, pools }
    }

    /// Sends packets of one flow, and waits until they have come.
    fn bring(&mut self, numbers: std::ops::Range<u32>) {
        let mut come = self.lanes[0].rx.backlog();
        for from in numbers.clone().step_by(16) {
            let some = from..numbers.end.min(from + 16);
            come += some.len();
            let frames: Vec<_> = some.map(|n| numbered(0, n, 64)).collect();
            self.source.send_frames(0, &frames);
            await_condition("packets do not arrive", || self.lanes[0].rx.backlog() >= come);
        }
    }

    /// A lane closes its turn, and claims up to `limit` packets.
    fn receive(&mut self, lane: usize, limit: usize) -> Vec<Mbuf> {
        let mut burst = Burst::new();
        (limit..BURST).for_each(|_| burst.push(self.cache.alloc(0).unwrap()));
        self.lanes[lane].rx.recv(&mut burst, &mut self.cache, NOW);
        let packets = burst.drain(BURST - limit..).collect();
        burst.drain(..).for_each(|filler| self.cache.free(filler));
        packets
    }

    fn send(&mut self, lane: usize, packets: Vec<Mbuf>) {
        let mut burst: Burst = packets.into_iter().collect();
        self.lanes[lane].tx.send(&mut burst, &mut self.cache, NOW);
        assert!(burst.is_empty());
    }

    /// Numbers of the packets that come back: `wanted`, and no more.
    fn back(&mut self, wanted: usize) -> Vec<u32> {
        let mut back = Vec::new();
        await_condition("packets do not come back", || {
            // Polls have the kernel send what waits.
            let none = self.receive(0, 0).len() + self.receive(1, 0).len();
            assert_eq!(none, 0);
            let come = self.source.collect_present();
            back.extend(come.iter().map(|(_, packet)| number(packet).unwrap().1));
            self.source.free(come);
            back.len() >= wanted
        });
        assert_eq!(back.len(), wanted);
        back
    }

    /// Packets of both lanes that wait, and that were refused.
    fn unsent(&mut self) -> (u64, u64) {
        let lanes = self.lanes.iter_mut().map(|lane| lane.tx.unsent());
        lanes.fold((0, 0), |sum, lane| (sum.0 + lane.waiting, sum.1 + lane.lost()))
    }

    fn close(self) {
        let Loop { source, lanes, device, cache, pools } = self;
        drop((lanes, device, cache));
        source.close();
        assert_eq!((pools.0.available(), pools.1.available()), (8_192, 16_384));
    }
}

#[test]
fn what_a_lane_sends_waits_for_a_lane_that_claimed_before_it() {
    const NAME: &str = "what_a_lane_sends_waits_for_a_lane_that_claimed_before_it";
    isolated(module_path!(), NAME, || {
        let mut rig = Loop::open(512);
        rig.bring(0..24);
        let first = rig.receive(0, 10);
        let second = rig.receive(1, 14);
        assert_eq!((first.len(), second.len()), (10, 14));
        rig.send(1, second);
        assert!(rig.receive(1, 0).is_empty());
        assert_eq!((rig.unsent(), rig.source.come()), ((14, 0), 0));
        rig.send(0, first);
        assert_eq!(rig.back(24), (0..24).collect::<Vec<_>>());
        assert_eq!(rig.unsent(), (0, 0));
        assert_eq!(rig.device.monitor().counters().sent, 24);
        rig.close();
    });
}

#[test]
fn a_packet_that_the_interface_does_not_take_holds_up_no_other() {
    const NAME: &str = "a_packet_that_the_interface_does_not_take_holds_up_no_other";
    isolated(module_path!(), NAME, || {
        let mut rig = Loop::open(512);
        rig.bring(0..8);
        let mut packets = rig.receive(0, 8);
        // Too long for the interface, and too short for any.
        let mut long = rig.cache.alloc(1_600).unwrap();
        long.set_device(packets[0].device());
        packets.insert(0, long);
        assert!(packets[4].truncate(10));
        rig.send(0, packets);
        assert_eq!(rig.back(7), [0, 1, 2, 4, 5, 6, 7]);
        assert_eq!(rig.unsent(), (0, 2));
        let unsent = rig.lanes[0].tx.unsent();
        assert_eq!((unsent.too_big, unsent.refused, unsent.link_down), (1, 1, 0));
        rig.close();
    });
}

#[test]
fn a_paused_lane_stops_the_others_when_the_smallest_ring_is_used_up() {
    const NAME: &str = "a_paused_lane_stops_the_others_when_the_smallest_ring_is_used_up";
    isolated(module_path!(), NAME, || {
        let mut rig = Loop::open(64);
        rig.bring(0..60);
        let paused = rig.receive(0, 1);
        let mut received = 1;
        for more in [60..64, 64..90] {
            rig.bring(more);
            loop {
                let packets = rig.receive(1, 20);
                if packets.is_empty() {
                    break;
                }
                received += packets.len();
                rig.send(1, packets);
            }
        }
        assert_eq!((received, rig.source.come()), (64, 0), "as many as there are descriptors");
        let sharing = rig.device.monitor().sharing().remove(0);
        assert_eq!((sharing.stalls, sharing.claimants[0].pauses), (1, 1));
        rig.send(0, paused);
        assert_eq!(rig.back(64), (0..64).collect::<Vec<_>>());
        let rest = rig.receive(1, 32);
        rig.send(1, rest);
        assert_eq!(rig.back(26), (64..90).collect::<Vec<_>>());
        rig.close();
    });
}

#[test]
fn packets_that_wait_when_the_interface_goes_are_refused() {
    isolated(module_path!(), "packets_that_wait_when_the_interface_goes_are_refused", || {
        let mut rig = Loop::open(512);
        rig.bring(0..20);
        let first = rig.receive(0, 10);
        let second = rig.receive(1, 10);
        rig.send(1, second);
        assert!(rig.receive(1, 0).is_empty());
        shell("ip link del rxdp0");
        rig.device.monitor().interface().unwrap().let_go();
        rig.send(0, first);
        assert!(rig.receive(0, 0).is_empty());
        for lane in &mut rig.lanes {
            lane.tx.finish(&mut rig.cache);
        }
        assert_eq!(rig.unsent(), (0, 20));
        rig.close();
    });
}

/// Claims go on where those on the rings of the interface that is gone ended, whichever lane takes its new queues first.
#[test]
fn order_goes_on_when_the_interface_returns() {
    isolated(module_path!(), "order_goes_on_when_the_interface_returns", || {
        let buffers = pool(16_384);
        let shared = XdpConfig { claimants: 2, ordered: true, ..config("rxdp1", 2) };
        veth("rxdp0", "rxdp1", 1, 1_500);
        let opened = buffers.clone();
        let device = ReopenableDevice::open(move |placement| {
            let shared = XdpConfig { placement, ..shared.clone() };
            let device = XdpDevice::open(shared, &opened);
            let fails = |source| OpenError::Interface { device: "rxdp1".into(), source };
            Ok(Box::new(device.map_err(fails)?))
        });
        let device = device.unwrap();
        let reopener = device.reopener();
        let mut device = in_order(vec![Box::new(device)], 2).remove(0);
        let mut rig = Loop {
            source: Rig::open(config("rxdp0", 1), &buffers),
            lanes: device.queues(),
            device,
            cache: PoolCache::new(buffers.clone()),
            pools: (buffers.clone(), buffers),
        };
        rig.bring(0..20);
        for lane in [1, 0] {
            let packets = rig.receive(lane, 10);
            rig.send(lane, packets);
        }
        assert_eq!(rig.back(20), (0..20).collect::<Vec<_>>());
        let source = std::mem::replace(&mut rig.source, {
            shell("ip link del rxdp0");
            reopener.let_go();
            veth("rxdp0", "rxdp1", 1, 1_500);
            Rig::open(config("rxdp0", 1), &rig.pools.0)
        });
        source.close();
        std::thread::scope(|scope| {
            let reopened = scope.spawn(|| reopener.reopen().unwrap());
            await_condition("lanes do not take the new queues", || {
                assert!(rig.receive(1, 32).is_empty() && rig.receive(0, 32).is_empty());
                reopened.is_finished()
            });
            assert!(reopened.join().unwrap());
        });
        rig.bring(20..44);
        let first = rig.receive(1, 12);
        let second = rig.receive(0, 12);
        rig.send(0, second);
        assert!(rig.receive(0, 0).is_empty());
        assert_eq!((rig.unsent().0, rig.source.come()), (12, 0));
        rig.send(1, first);
        assert_eq!(rig.back(24), (20..44).collect::<Vec<_>>());
        let sharing = rig.device.monitor().sharing().remove(0);
        assert_eq!((sharing.total().packets, sharing.departures.unwrap().turns), (44, 4));
        let Loop { source, lanes, device, cache, pools } = rig;
        drop((lanes, device, cache, reopener));
        source.close();
        assert_eq!(pools.0.available(), 16_384);
    });
}

/// Two lanes on threads of their own send back what they claim; what arrives at the peer is in order, whatever was lost on the
/// way.
#[test]
fn what_comes_back_is_in_order() {
    isolated(module_path!(), "what_comes_back_is_in_order", || {
        const COUNT: usize = 40_000;
        let mut rig = Loop::open(512);
        let (stop, lost) = (AtomicBool::new(false), AtomicUsize::new(0));
        let Loop { lanes, source, device, pools, .. } = &mut rig;
        let monitor = device.monitor();
        let (mut back, mut sent) = (Vec::with_capacity(COUNT), 0);
        std::thread::scope(|scope| {
            for pair in lanes.iter_mut() {
                let mut cache = PoolCache::new(pools.1.clone());
                let (stop, lost) = (&stop, &lost);
                scope.spawn(move || {
                    let mut refused = 0;
                    while !stop.load(Ordering::Acquire) {
                        let mut burst = Burst::new();
                        if pair.rx.recv(&mut burst, &mut cache, NOW) == 0 {
                            std::thread::yield_now();
                        }
                        pair.tx.send(&mut burst, &mut cache, NOW);
                        assert!(burst.is_empty(), "there is room in a turn");
                        let now = pair.tx.unsent().refused;
                        lost.fetch_add((now - refused) as usize, Ordering::Relaxed);
                        refused = now;
                    }
                });
            }
            await_condition("packets do not come back", || {
                let counters = monitor.counters();
                let dropped = counters.without_room();
                let gone = lost.load(Ordering::Relaxed) + dropped as usize;
                if sent < COUNT && back.len() + gone + UNDER_WAY >= sent + 32 {
                    let frames: Vec<_> =
                        (sent..sent + 32).map(|n| numbered(0, n as u32, 64)).collect();
                    source.send_frames(0, &frames);
                    sent += 32;
                }
                let come = source.collect_present();
                back.extend(come.iter().map(|(_, packet)| number(packet).unwrap().1));
                source.free(come);
                back.len() + gone >= COUNT
            });
            stop.store(true, Ordering::Release);
        });
        assert!(back.is_sorted_by(|a, b| a < b), "something is out of order");
        assert!(back.len() > COUNT / 2, "{} of {COUNT} came back", back.len());
        let sharing = monitor.sharing().remove(0);
        assert!(sharing.claimants.iter().all(|lane| lane.packets > 0), "{sharing:?}");
        assert!(sharing.departures.unwrap().turns > 0);
        rig.close();
    });
}
