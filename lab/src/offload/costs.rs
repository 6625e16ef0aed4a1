//! What a lane pays for handing packets over, and what flows that stay pay for those that are away.

use std::thread;
use std::time::{Duration, Instant};

use rheostat_measure::quantiles::median;
use rheostat_packet::BURST;

use super::Costs;
use super::testbed::{OFFLOADING, OffloadTestbed};
use crate::error::BenchError;

/// Flows that leave, and flows that stay.
const LEAVING: u32 = 256;
const STAYING: u32 = 4_096;
/// Windows of each kind, in turn.
const ROUNDS: usize = 8;
const WARM_UP: Duration = Duration::from_millis(20);

/// Measures in windows of this length.
pub(super) fn measure(window: Duration) -> Result<Costs, BenchError> {
    let mut testbed = OffloadTestbed::start(LEAVING + STAYING, None, true)?;
    let leaving = 0..LEAVING;
    let staying = LEAVING..LEAVING + STAYING;
    let (mut home, mut leaving_home, mut marked) = (Vec::new(), Vec::new(), Vec::new());
    let (mut away, mut home_mpps, mut away_mpps, mut busy) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        testbed.feed.set(staying.clone(), None);
        let (ns, mpps) = packet_ns(&testbed, window);
        home.push(ns);
        home_mpps.push(mpps);
        testbed.feed.set(leaving.clone(), None);
        leaving_home.push(packet_ns(&testbed, window).0);
        testbed.offload(Some(OFFLOADING), 100);
        testbed.wait_away(LEAVING.into())?;
        // Those that are away stay so, and no more leave.
        testbed.offload(Some(OFFLOADING), 0);
        let before = testbed.runtime.sample();
        let (ns, mpps) = packet_ns(&testbed, window);
        let after = testbed.runtime.sample();
        away.push(ns);
        away_mpps.push(mpps);
        let lane = OFFLOADING.index();
        let nanos = after.lanes[lane].busy_ns - before.lanes[lane].busy_ns;
        let packets = after.lanes[lane].handoff_in - before.lanes[lane].handoff_in;
        busy.push(nanos as f64 / packets.max(1) as f64);
        testbed.feed.set(staying.clone(), None);
        marked.push(packet_ns(&testbed, window).0);
        testbed.offload(None, 0);
        testbed.wait_away(0)?;
    }
    let ratios = marked.iter().zip(&home).map(|(marked, home)| marked / home);
    testbed.stop()?;
    Ok(Costs {
        home_ns: median(leaving_home),
        sender_ns: median(away),
        receiver_ns: median(busy),
        marked_percent: 100.0 * (median(ratios) - 1.0),
        home_mpps: median(home_mpps),
        mpps: median(away_mpps),
    })
}

/// Nanoseconds that the working lane takes per packet of a full burst, and packets per microsecond that leave.
fn packet_ns(testbed: &OffloadTestbed, window: Duration) -> (f64, f64) {
    thread::sleep(WARM_UP);
    let (start, gone) = (Instant::now(), testbed.feed.gone());
    let polls = testbed.meters[0].measure(BURST, window);
    let passed = (testbed.feed.gone() - gone) as f64;
    let mpps = passed / start.elapsed().as_secs_f64() / 1e6;
    (median(polls) / BURST as f64, mpps)
}
