//! Lanes report as much of their load as the run is configured to, and no more.
//!
//! Timed: threads, sleep, clock.

use std::time::Duration;

use rheostat_base::Clock;
use rheostat_io::{Device, NullSink, SimConfig, SimNic};
use rheostat_run::{LoadReporting, Runtime, RuntimeConfig, TimeSource};
use rheostat_testkit::datagrams::Datagrams;
use rheostat_testkit::runtime::{config, pool, shards};
use rheostat_testkit::service::bounce;

const COUNT: u64 = 100;
const SHARDS: usize = 4;

/// What the lanes of a run told: whether they were timed, whether they had work, and the packets of each
/// shard.
fn told(reporting: LoadReporting) -> (bool, bool, Vec<u64>) {
    let pool = pool(512);
    let config =
        RuntimeConfig { time: TimeSource::Packet, reporting, ..config(1, SHARDS, pool.clone()) };
    let nic = SimConfig::new("nic", 1, config.steering.clone());
    let source = Box::new(Datagrams::new(COUNT as u16, COUNT));
    let nic = SimNic::open(nic, source, |_| Box::new(NullSink), &pool).unwrap();
    let device: Box<dyn Device> = Box::new(nic);
    let shards = shards(SHARDS, 8, ());
    let runtime = Runtime::start(config, vec![device], Clock::new(), |_| bounce(), shards).unwrap();
    while !runtime.is_finished() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let view = runtime.view();
    let report = runtime.join().unwrap();
    assert_eq!(report.violations, []);
    let lane = &report.last.lanes[0];
    assert_eq!((lane.received, lane.sent), (COUNT, COUNT), "whatever is told, all is done");
    let packets = view.loads()[0].iter().map(|load| load.packets.get()).collect();
    (lane.total_ns > 0, lane.busy_ns > 0, packets)
}

#[test]
fn a_run_reports_what_it_is_asked_to() {
    assert_eq!(told(LoadReporting::Nothing), (false, false, vec![]));
    assert_eq!(told(LoadReporting::Lanes), (true, true, vec![]));
    let (timed, worked, packets) = told(LoadReporting::Shards);
    assert!(timed && worked);
    assert_eq!((packets.len(), packets.iter().sum()), (SHARDS, COUNT));
}
