//! How long packets take from lane to lane, and what of their whole way that is.

use std::thread;
use std::time::Duration;

use rheostat_base::{Histogram, LaneId};
use rheostat_run::StageSwitch;

use super::testbed::{OFFLOADING, OffloadTestbed};
use super::{Hops, Quantiles};
use crate::disturbance::Disturbance;
use crate::error::BenchError;

/// Flows, all of which leave.
const FLOWS: u32 = 64;
/// Ten microseconds from packet to packet: 100,000 a second.
const GAP: Duration = Duration::from_micros(10);
const WARM_UP: Duration = Duration::from_millis(200);

/// Measures for `window` with all flows away, and as long with all at home.
pub(super) fn measure(window: Duration) -> Result<Hops, BenchError> {
    let switch = StageSwitch::default();
    let mut testbed = OffloadTestbed::start(FLOWS, Some(switch.clone()), false)?;
    testbed.feed.set(0..FLOWS, Some(GAP));
    thread::sleep(WARM_UP);
    testbed.feed.time_trips(true);
    thread::sleep(window);
    testbed.feed.time_trips(false);
    testbed.offload(Some(OFFLOADING), 100);
    testbed.wait_away(FLOWS.into())?;
    thread::sleep(WARM_UP);
    let before = Disturbance::read();
    testbed.feed.time_trips(true);
    switch.turn_on();
    thread::sleep(window);
    testbed.feed.time_trips(false);
    let disturbance = Disturbance::read().since(before);
    let (feed, report) = (testbed.feed.clone(), testbed.stop()?);
    let trip = |lane: LaneId| Quantiles::of(feed.trips(lane.index()));
    Ok(Hops {
        hop: Quantiles::of(&report.hops),
        trip: trip(OFFLOADING),
        home: trip(LaneId(0)),
        hops: report.hops.count(),
        run_delay_ms: disturbance.run_delay.as_secs_f64() * 1e3,
        steal_ms: disturbance.steal.as_secs_f64() * 1e3,
    })
}

impl Quantiles {
    fn of(times: &Histogram) -> Quantiles {
        let at = |share| times.quantile(share).unwrap_or(0);
        Quantiles { p50: at(0.5), p99: at(0.99), p995: at(0.995) }
    }
}
