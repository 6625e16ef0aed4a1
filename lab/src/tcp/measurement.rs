//! Measures a service while its clients send as much as lanes take.

use std::thread;
use std::time::{Duration, Instant};

use rheostat_base::DropReason;
use rheostat_base::clock::Cycles;
use rheostat_run::LaneSample;
use rheostat_serve::{ServeConfig, Totals};
use rheostat_traffic::clients::{ClientTotals, Reply};

use super::applications::{Give, REQUEST, Repeat};
use super::resident::resident;
use super::row::{RequestKind, TcpRow};
use super::testbed::{Running, TcpTestbed};
use super::{TcpBench, harness};
use crate::error::BenchError;
use crate::testbed::lanes::finish;

/// Bytes of a long reply.
const LONG: u32 = 1 << 20;
/// How long no connection may be opened, or no request answered.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Requests of each connection before anything is measured, on average: hardly any has made none.
const WARM: u64 = 8;
/// The least time until something is measured.
const SETTLE: Duration = Duration::from_millis(300);

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// What happens.
    pub kind: RequestKind,
    /// Connections.
    pub connections: u32,
    /// Lanes.
    pub lanes: usize,
    /// Requests under way in a lane.
    pub under_way: u32,
    /// How long clients put off acknowledging.
    pub ack_delay: Duration,
}

impl Load {
    /// Requests on so many connections.
    pub fn new(kind: RequestKind, connections: u32, lanes: usize) -> Load {
        Load { kind, connections, lanes, under_way: 64, ack_delay: Duration::from_millis(40) }
    }
}

/// What had been counted at some moment.
#[derive(Clone, Copy)]
struct TcpSample {
    at: Instant,
    clients: ClientTotals,
    service: Totals,
    ticks: u64,
    allocations: u64,
}

/// A window, per request.
#[derive(Clone, Copy)]
struct TcpWindow {
    wall: f64,
    process: f64,
    generator: f64,
    allocations: f64,
    segments: [f64; 2],
}

/// Measures a row.
pub(super) fn measure(bench: &TcpBench) -> Result<TcpRow, BenchError> {
    let load = bench.load;
    let harness_ns = match load.kind {
        RequestKind::Bulk => 0.0,
        _ => harness::measure(&as_harness(bench))?.ns_per_request,
    };
    let testbed =
        TcpTestbed::new(load.lanes, load.connections, |config| super::adapted(&load, config))?;
    let before = resident();
    let limits = ServeConfig {
        connections: 2 * load.connections as usize + 1_024,
        ..ServeConfig::default()
    };
    let running = match load.kind {
        RequestKind::Bulk => testbed.start(Give::new(LONG), load.lanes, bench.core, limits)?,
        _ => testbed.start(Repeat, load.lanes, bench.core, limits)?,
    };
    let taken = warm_up(&testbed, &load).map(|()| {
        let grown = resident().saturating_sub(before);
        (windows(bench, &testbed, &running), grown)
    });
    let totals = testbed.clients.totals();
    let report = finish(running.runtime)?;
    let sum = LaneSample::sum(&report.last.lanes);
    let (windows, grown) = taken?;
    let dropped = sum.dropped_total();
    if dropped * 1_000 > sum.received {
        let reason = |reason: &DropReason| sum.dropped[*reason as usize] > 0;
        let reasons: Vec<_> =
            DropReason::all().filter(|r| reason(r)).map(|reason| reason.name()).collect();
        let (received, reasons) = (sum.received, reasons.join(", "));
        return Err(BenchError::Dropped { chain: load.kind.name(), dropped, received, reasons });
    }
    if totals.damaged > 0 || totals.reset > 0 {
        let (damaged, reset) = (totals.damaged, totals.reset);
        return Err(BenchError::Damaged { damaged, reset });
    }
    Ok(row(&load, windows, harness_ns, grown))
}

fn as_harness(bench: &TcpBench) -> TcpBench {
    TcpBench {
        load: super::Load { kind: RequestKind::Harness, lanes: 1, ..bench.load },
        windows: bench.windows.div_ceil(2),
        ..*bench
    }
}

/// Waits until connections are open and have made requests.
fn warm_up(testbed: &TcpTestbed, load: &Load) -> Result<(), BenchError> {
    let wanted = match load.kind {
        RequestKind::Bulk => u64::from(load.connections),
        _ => WARM * u64::from(load.connections),
    };
    let begun = Instant::now();
    let (mut last, mut since) = (0, Instant::now());
    loop {
        let totals = testbed.clients.totals();
        if totals.replies >= wanted && begun.elapsed() >= SETTLE {
            return Ok(());
        }
        let sum = totals.opened + totals.replies;
        if sum != last {
            (last, since) = (sum, Instant::now());
        } else if since.elapsed() > TIMEOUT {
            let (opened, flows) = (totals.opened, load.connections.into());
            return Err(BenchError::Opening { opened, flows, reasons: format!("{totals:?}") });
        }
        thread::sleep(Duration::from_millis(2));
    }
}

fn windows(bench: &TcpBench, testbed: &TcpTestbed, running: &Running) -> Vec<TcpWindow> {
    let sample = || TcpSample {
        at: Instant::now(),
        clients: testbed.clients.totals(),
        service: running.control.totals(),
        ticks: running.ticks.iter().map(|lane| lane.0.get()).sum(),
        allocations: (bench.allocations)(),
    };
    let nanos = |ticks: u64| testbed.clock.nanos_between(Cycles(0), Cycles(ticks)) as f64;
    let mut windows = Vec::with_capacity(bench.windows);
    for _ in 0..bench.windows {
        let earlier = sample();
        thread::sleep(bench.window);
        let later = sample();
        let clients = later.clients.since(&earlier.clients);
        let count = match bench.load.kind {
            RequestKind::Bulk => clients.data_segments,
            _ => clients.replies,
        };
        let per = |value: f64| value / count.max(1) as f64;
        let wall = later.at.duration_since(earlier.at).as_nanos() as f64;
        let segments = [
            later.service.segments_in - earlier.service.segments_in,
            later.service.segments_out - earlier.service.segments_out,
        ];
        windows.push(TcpWindow {
            wall: per(wall * bench.load.lanes as f64),
            process: per(nanos(later.ticks - earlier.ticks)),
            generator: per(nanos(clients.ticks)),
            allocations: per((later.allocations - earlier.allocations) as f64),
            segments: segments.map(|count| per(count as f64)),
        });
    }
    windows
}

/// The row of these windows: that with the median cost counts.
fn row(load: &Load, mut windows: Vec<TcpWindow>, harness_ns: f64, grown: usize) -> TcpRow {
    windows.sort_by(|a, b| a.process.total_cmp(&b.process));
    let median = windows[windows.len() / 2];
    let range = [windows[0].process, windows[windows.len() - 1].process];
    let reply = if load.kind == RequestKind::Bulk { LONG } else { REQUEST as u32 };
    TcpRow {
        kind: load.kind,
        device: "sim".into(),
        lanes: load.lanes,
        connections: load.connections,
        request_bytes: REQUEST as u32,
        reply_bytes: reply,
        requests_per_second: load.lanes as f64 * 1e9 / (median.wall - median.generator),
        ns_per_request: median.wall,
        process_ns: median.process,
        generator_ns: median.generator,
        harness_ns,
        bytes_per_connection: grown as f64 / f64::from(load.connections),
        allocations: median.allocations,
        segments: median.segments,
        process_range: range,
        of_processes: None,
        of_processes_range: None,
    }
}

/// What comes back for a request.
pub(super) fn reply(kind: RequestKind) -> Reply {
    match kind {
        RequestKind::Bulk => Reply::Bytes(LONG),
        RequestKind::Harness | RequestKind::Requests | RequestKind::Connections => Reply::Same,
    }
}
