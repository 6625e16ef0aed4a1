//! A worker that panics, and a device that loses what it is given: both are named at the end of a run. Devices
//! that do not fit together: named before it starts.
//!
//! Timed: threads, sleep, clock.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use rheostat_base::{Clock, DeviceId, ShardId, Time};
use rheostat_io::{Device, DeviceMonitor, NullSink, QueuePair, SimConfig, SimNic, TxQueue};
use rheostat_packet::{Burst, PoolCache};
use rheostat_run::{RunReport, Runtime, RuntimeConfig, StartError, TimeSource, Violation};
use rheostat_steer::{HashKey, IndirectionTable, Orientation, Steering};
use rheostat_testkit::datagrams::Datagrams;
use rheostat_testkit::runtime::{config, pool, shards};
use rheostat_testkit::service::{bounce, per_packet};

const COUNT: u64 = 100;

/// A device whose transmit queue takes one packet in ten without sending or counting it.
struct Lossy(Box<dyn Device>);

struct LossyTx(Box<dyn TxQueue>, u64);

impl TxQueue for LossyTx {
    fn send(&mut self, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize {
        let offered = burst.len();
        for packet in burst.take() {
            self.1 += 1;
            if self.1.is_multiple_of(10) { pool.free(packet) } else { burst.push(packet) }
        }
        let kept = burst.len();
        let sent = self.0.send(burst, pool, now);
        assert_eq!(sent, kept, "the device below has room");
        offered
    }
}

impl Device for Lossy {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn id(&self) -> DeviceId {
        self.0.id()
    }

    fn queues(&mut self) -> Vec<QueuePair> {
        let lossy = |pair: QueuePair| QueuePair { rx: pair.rx, tx: Box::new(LossyTx(pair.tx, 0)) };
        self.0.queues().into_iter().map(lossy).collect()
    }

    fn table(&self) -> Option<Arc<dyn IndirectionTable>> {
        self.0.table()
    }

    fn monitor(&self) -> Arc<dyn DeviceMonitor> {
        self.0.monitor()
    }
}

fn run(panics_at: u64, is_lossy: bool) -> RunReport {
    let pool = pool(512);
    let config = RuntimeConfig { time: TimeSource::Packet, ..config(1, 1, pool.clone()) };
    let nic = SimConfig::new("nic", 1, config.steering.clone());
    let source = Box::new(Datagrams::new(1, COUNT));
    let nic = SimNic::open(nic, source, |_| Box::new(NullSink), &pool).unwrap();
    let device: Box<dyn Device> =
        if is_lossy { Box::new(Lossy(Box::new(nic))) } else { Box::new(nic) };
    let service = |_| {
        let mut seen = 0;
        per_packet(move |packet, _, _, out| {
            seen += 1;
            assert!(seen != panics_at, "packet {seen} was too much");
            out.send(DeviceId(0), packet);
        })
    };
    let shards = shards(1, 8, ());
    let runtime = Runtime::start(config, vec![device], Clock::new(), service, shards).unwrap();
    while !runtime.is_finished() {
        std::thread::sleep(Duration::from_millis(1));
    }
    runtime.join_within(Duration::from_secs(120)).unwrap()
}

#[test]
fn a_sound_run_has_no_violation() {
    assert_eq!(run(0, false).violations, []);
}

#[test]
fn what_a_device_loses_on_the_way_out_is_named() {
    let lost = Violation::Sent { sent: COUNT, taken: COUNT - COUNT / 10 };
    assert_eq!(run(0, true).violations, [lost]);
}

#[test]
fn a_worker_that_panics_is_named() {
    let violations = run(50, false).violations;
    let message = "packet 50 was too much".to_owned();
    let panicked = Violation::WorkerPanicked { worker: 0, message };
    assert!(violations.contains(&panicked), "{violations:?}");
    // Its shard went down with it, and that is not passed over either.
    assert!(violations.contains(&Violation::Ownership { shard: ShardId(0), owners: 0 }));
}

#[test]
fn a_worker_that_does_not_end_is_named_and_not_waited_for() {
    let pool = pool(512);
    let config = RuntimeConfig { time: TimeSource::Packet, ..config(1, 1, pool.clone()) };
    let nic = SimConfig::new("nic", 1, config.steering.clone());
    let source = Box::new(Datagrams::new(1, COUNT));
    let nic = SimNic::open(nic, source, |_| Box::new(NullSink), &pool).unwrap();
    let ((enters, entered), (release, released)) = (channel(), channel::<()>());
    let mut parts = Some((enters, released));
    let service = |_| {
        let (enters, released) = parts.take().expect("one lane");
        per_packet(move |packet, _, _, out| {
            // Both fail once the test has gone on.
            let _ = enters.send(());
            let _ = released.recv();
            out.send(DeviceId(0), packet);
        })
    };
    let device: Box<dyn Device> = Box::new(nic);
    let runtime =
        Runtime::start(config, vec![device], Clock::new(), service, shards(1, 8, ())).unwrap();
    entered.recv().unwrap();
    let report = runtime.join_within(Duration::from_millis(20)).unwrap();
    assert_eq!(report.violations, [Violation::WorkerRunning { worker: 0 }]);
    assert_eq!(report.device_names, ["nic"]);
    drop(release);
}

/// Starts a run of one shard, of devices with these numbers, with so many shards.
fn start(numbers: &[u8], given: usize) -> Result<Runtime, StartError> {
    let pool = pool(512);
    let sides = vec![Orientation::Inside; 3];
    let steering = Arc::new(Steering::new(&HashKey::MICROSOFT, 1, 1, sides).unwrap());
    let config = RuntimeConfig { steering: steering.clone(), ..config(1, 1, pool.clone()) };
    let open = |(place, number): (usize, &u8)| -> Box<dyn Device> {
        let mut nic = SimConfig::new(format!("nic{place}"), 1, steering.clone());
        nic.device = DeviceId(*number);
        let source = Box::new(Datagrams::new(1, 1));
        Box::new(SimNic::open(nic, source, |_| Box::new(NullSink), &pool).unwrap())
    };
    let devices = numbers.iter().enumerate().map(open).collect();
    Runtime::start(config, devices, Clock::new(), |_| bounce(), shards(given, 8, ()))
}

#[test]
fn devices_with_one_number_or_a_wrong_one_do_not_start() {
    let refused = |numbers: &[u8]| start(numbers, 1).err().expect("it is refused").to_string();
    assert_eq!(refused(&[0, 0]), "devices `nic0` and `nic1` both have number 0: give each its own");
    assert_eq!(
        refused(&[0, 2]),
        "device `nic1` has number 2, but stands at place 1 of the devices"
    );
}

#[test]
fn a_run_has_as_many_shards_as_packets_are_placed_in() {
    for given in [0, 2] {
        let error = start(&[0], given).err().expect("it is refused").to_string();
        assert_eq!(error, format!("the run has {given} shards, but packets are placed in 1"));
    }
}
