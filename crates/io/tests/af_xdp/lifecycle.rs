//! Opening, closing, and what goes wrong meanwhile.
//!
//! Timed: processes, devices.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use rheostat_io::backend::bpf::AttachMode;
use rheostat_io::{CopyMode, InterfaceError, XdpConfig, XdpDevice};
use rheostat_packet::{Mempool, MempoolConfig};

use super::rig::{Rig, UNDER_WAY, await_condition, config, pool, veth};
use rheostat_testkit::namespace::{isolated, shell, victim};
use rheostat_testkit::numbered::numbered;

#[test]
fn a_killed_process_leaves_nothing_in_the_way() {
    const NAME: &str = "a_killed_process_leaves_nothing_in_the_way";
    isolated(module_path!(), NAME, || {
        let pool = pool(8_192);
        if std::env::var_os("RHEO_TEST_VICTIM").is_some() {
            let mut rig = Rig::open(config("rxdp1", 2), &pool);
            println!("\nready");
            loop {
                let arrived = rig.collect_present();
                rig.free(arrived);
            }
        }
        veth("rxdp0", "rxdp1", 1, 1_500);
        let mut source = Rig::open(config("rxdp0", 1), &pool);
        for round in 0..3 {
            let mut child = victim(module_path!(), NAME).stdout(Stdio::piped()).spawn().unwrap();
            let output = BufReader::new(child.stdout.take().unwrap());
            assert!(output.lines().any(|line| line.unwrap() == "ready"), "it did not get so far");
            assert_eq!(source.offer(0, 32, round), 32);
            child.kill().unwrap();
            child.wait().unwrap();
            let mut sink = Rig::open(config("rxdp1", 2), &pool);
            sink.expect_from(&mut source);
            sink.close();
        }
        source.close();
        assert_eq!(pool.available(), 8_192);
    });
}

#[test]
fn a_device_is_closed_and_opened_again_at_once() {
    isolated(module_path!(), "a_device_is_closed_and_opened_again_at_once", || {
        let pool = pool(8_192);
        veth("rxdp0", "rxdp1", 2, 1_500);
        let mut source = Rig::open(config("rxdp0", 1), &pool);
        for lanes in [1, 4, 2] {
            let mut sink = Rig::open(config("rxdp1", lanes), &pool);
            assert!(shell("ip link show rxdp1").contains("prog/xdp"), "there is no program");
            sink.expect_from(&mut source);
            sink.close();
            assert!(
                !shell("ip link show rxdp1").contains("prog/xdp"),
                "the program is still there"
            );
        }
        source.close();
        assert_eq!(pool.available(), 8_192);
    });
}

#[test]
fn an_interface_that_vanishes_is_an_error_state() {
    isolated(module_path!(), "an_interface_that_vanishes_is_an_error_state", || {
        let pool = pool(8_192);
        veth("rxdp0", "rxdp1", 1, 1_500);
        let mut source = Rig::open(config("rxdp0", 1), &pool);
        let mut sink = Rig::open(config("rxdp1", 2), &pool);
        sink.expect_from(&mut source);
        assert_eq!(sink.monitor().warnings(), Vec::<String>::new());
        shell("ip link del rxdp0");
        // Some may go into the ring before it is known; nothing after that.
        await_condition("packets are still taken", || source.offer(0, 32, 0) == 0);
        let later = (0..3).map(|_| source.offer(0, 32, 0));
        assert_eq!(later.sum::<usize>(), 0);
        assert_eq!(sink.queues[0].rx.backlog(), 0);
        for monitor in [source.monitor(), sink.monitor()] {
            let warnings = monitor.warnings();
            assert!(warnings[0].contains("is gone"), "{warnings:?}");
            monitor.stop();
            assert!(monitor.is_exhausted());
        }
        source.close();
        sink.close();
        assert_eq!(pool.available(), 8_192);
    });
}

#[test]
fn an_interface_may_go_down_and_come_up_again() {
    isolated(module_path!(), "an_interface_may_go_down_and_come_up_again", || {
        let pool = pool(8_192);
        veth("rxdp0", "rxdp1", 1, 1_500);
        let mut source = Rig::open(config("rxdp0", 1), &pool);
        let mut sink = Rig::open(config("rxdp1", 2), &pool);
        sink.expect_from(&mut source);
        shell("ip link set rxdp0 down");
        let warnings = source.monitor().warnings();
        assert!(warnings[0].contains("is down"), "{warnings:?}");
        // More than the ring holds: the rest stays with the sender.
        let waiting: usize = (0..40).map(|_| source.offer(0, 32, 1)).sum();
        assert!((32..=512).contains(&waiting), "{waiting} went into a ring of 512");
        assert!(
            source.queues[0].rx.wait_fd().is_none(),
            "nothing would wake a lane that sleeps on it"
        );
        shell("ip link set rxdp0 up");
        // Nothing is sent any more: polling alone gets out what waits in the ring.
        let (mut arrived, mut refused, mut polls, mut rounds) = (0, 0, 0, 0);
        await_condition("what waited in the ring does not arrive", || {
            let now = source.now();
            // A poll has the kernel send 64 at most. As fast as the other end takes them, so that it refuses none; and now
            // and then all the same, as not every poll has it send.
            rounds += 1;
            if polls * 64 <= arrived + UNDER_WAY || rounds % 100 == 0 {
                source.poll(0, now, |cache, packet| cache.free(packet));
                polls += 1;
            }
            for lane in 0..2 {
                sink.poll(lane, now, |cache, packet| {
                    arrived += 1;
                    cache.free(packet);
                });
            }
            refused = source.queues[0].tx.unsent().refused as usize;
            arrived + refused >= waiting
        });
        assert_eq!(arrived + refused, waiting);
        assert!(arrived > 0, "all of {waiting} were refused");
        assert!(source.queues[0].rx.wait_fd().is_some());
        sink.expect_from(&mut source);
        assert_eq!(source.monitor().warnings(), Vec::<String>::new());
        source.close();
        sink.close();
        assert_eq!(pool.available(), 8_192);
    });
}

#[test]
fn after_a_stop_packets_are_the_kernels() {
    isolated(module_path!(), "after_a_stop_packets_are_the_kernels", || {
        let pool = pool(8_192);
        veth("rxdp0", "rxdp1", 1, 1_500);
        let mut source = Rig::open(config("rxdp0", 1), &pool);
        let mut sink = Rig::open(config("rxdp1", 2), &pool);
        let frames: Vec<_> = (0..32).map(|flow| numbered(flow, 0, 64)).collect();
        source.send_frames(0, &frames);
        let monitor = sink.monitor();
        assert!(!monitor.is_exhausted());
        await_condition("packets do not arrive", || sink.come() >= 32);
        monitor.stop();
        assert!(!monitor.is_exhausted(), "what has come is still to be received");
        source.send_frames(0, &frames);
        let arrived = sink.collect(32);
        await_condition("the device does not end", || monitor.is_exhausted());
        assert_eq!((arrived.len(), sink.collect_present().len()), (32, 0));
        sink.free(arrived);
        source.close();
        sink.close();
        assert_eq!(pool.available(), 8_192);
    });
}

#[test]
fn a_generic_program_does_the_same() {
    isolated(module_path!(), "a_generic_program_does_the_same", || {
        let pool = pool(8_192);
        veth("rxdp0", "rxdp1", 1, 1_500);
        let generic = |interface| XdpConfig { mode: AttachMode::Generic, ..config(interface, 2) };
        let mut source = Rig::open(generic("rxdp0"), &pool);
        let mut sink = Rig::open(generic("rxdp1"), &pool);
        let notes = sink.monitor().notes();
        assert!(notes[0].contains("generic mode, with a copy"), "{notes:?}");
        for _ in 0..20 {
            sink.expect_from(&mut source);
        }
        source.close();
        sink.close();
        assert_eq!(pool.available(), 8_192);
    });
}

fn refusal(config: XdpConfig, pool: &Mempool) -> InterfaceError {
    XdpDevice::open(config, pool).err().expect("this cannot be opened")
}

#[test]
fn what_cannot_be_opened_says_why() {
    isolated(module_path!(), "what_cannot_be_opened_says_why", || {
        let pool = pool(8_192);
        veth("rxdp0", "rxdp1", 1, 1_500);
        let missing = refusal(config("rxdp9", 1), &pool);
        assert!(matches!(missing, InterfaceError::NoInterface { .. }), "{missing}");
        let zero = refusal(XdpConfig { copy: CopyMode::Zero, ..config("rxdp0", 1) }, &pool);
        assert!(matches!(zero, InterfaceError::NoZeroCopy { .. }), "{zero}");
        let odd = refusal(XdpConfig { descriptors: 100, ..config("rxdp0", 1) }, &pool);
        assert!(matches!(odd, InterfaceError::Descriptors(100)), "{odd}");
        let none = refusal(config("rxdp0", 0), &pool);
        assert!(matches!(none, InterfaceError::NoQueue), "{none}");
        let layout = Mempool::new(&MempoolConfig::default()).unwrap();
        let layout = refusal(config("rxdp0", 1), &layout);
        assert!(
            matches!(layout, InterfaceError::Layout { stride: 2_240, headroom: 128 }),
            "{layout}"
        );
        let small = refusal(config("rxdp0", 1), &self::pool(64));
        assert!(matches!(small, InterfaceError::PoolTooSmall { needed: 256, .. }), "{small}");
        let first = Rig::open(config("rxdp0", 1), &pool);
        let second = refusal(config("rxdp0", 1), &pool);
        assert!(matches!(second, InterfaceError::Busy { queue: 0, .. }), "{second}");
        first.close();
        assert_eq!(pool.available(), 8_192);
    });
}
