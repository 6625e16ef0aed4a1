//! The baseline: clients whose packets are turned round, with nothing between.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rheostat_base::clock::Cycles;
use rheostat_base::{Clock, ClockSource};
use rheostat_io::Device;
use rheostat_packet::{Burst, PoolCache};

use super::reflection::reflect;
use super::row::TcpRow;
use super::testbed::TcpTestbed;
use super::{Load, TcpBench};
use crate::error::BenchError;
use crate::testbed::Cores;

const TIMEOUT: Duration = Duration::from_secs(15);

/// Measures clients of one lane.
pub(super) fn measure(bench: &TcpBench) -> Result<TcpRow, BenchError> {
    let load = Load { kind: super::RequestKind::Requests, ..bench.load };
    let mut testbed = TcpTestbed::new(1, load.connections, |config| super::adapted(&load, config))?;
    let core = Cores::of_lanes(bench.core, 1)?.first();
    let queues = testbed.clients.queues();
    let stop = AtomicBool::new(false);
    let clock = Clock::new();
    thread::scope(|scope| {
        let (pool, stop, clock) = (&testbed.pool, &stop, &clock);
        let worker = scope.spawn(move || -> Result<(), BenchError> {
            rheostat_kernel::core_set::pin_current_thread(core)?;
            let mut cache = PoolCache::new(pool.clone());
            let mut burst = Burst::new();
            for mut pair in queues {
                while !stop.load(Ordering::Relaxed) {
                    let now = clock.now();
                    pair.rx.recv(&mut burst, &mut cache, now);
                    let mut answers = Burst::new();
                    for mut packet in burst.drain(..) {
                        match reflect(packet.data_mut()) {
                            true => answers.push(packet),
                            false => cache.free(packet),
                        }
                    }
                    pair.tx.send(&mut answers, &mut cache, now);
                }
            }
            Ok(())
        });
        let row = windows(bench, &testbed);
        stop.store(true, Ordering::Relaxed);
        worker.join().expect("a worker of the harness has nothing to panic about")?;
        row
    })
}

fn windows(bench: &TcpBench, testbed: &TcpTestbed) -> Result<TcpRow, BenchError> {
    let begun = Instant::now();
    let wanted = 2 * u64::from(bench.load.connections);
    while testbed.clients.totals().replies < wanted {
        if begun.elapsed() > TIMEOUT {
            let (opened, flows) = (testbed.clients.totals().opened, bench.load.connections.into());
            return Err(BenchError::Opening { opened, flows, reasons: String::new() });
        }
        thread::sleep(Duration::from_millis(2));
    }
    let mut windows = Vec::new();
    for _ in 0..bench.windows {
        let (earlier, from) = (testbed.clients.totals(), Instant::now());
        thread::sleep(bench.window);
        let count = testbed.clients.totals().since(&earlier);
        let per = |nanos: f64| nanos / count.replies.max(1) as f64;
        let ticks = testbed.clock.nanos_between(Cycles(0), Cycles(count.ticks));
        windows.push((per(from.elapsed().as_nanos() as f64), per(ticks as f64)));
    }
    windows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (wall, generator) = windows[windows.len() / 2];
    let load = &bench.load;
    Ok(TcpRow {
        kind: super::RequestKind::Harness,
        device: "sim".into(),
        lanes: 1,
        connections: load.connections,
        request_bytes: 128,
        reply_bytes: 128,
        requests_per_second: 1e9 / wall,
        ns_per_request: wall,
        process_ns: 0.0,
        generator_ns: generator,
        harness_ns: wall,
        bytes_per_connection: 0.0,
        allocations: 0.0,
        segments: [0.0; 2],
        process_range: [0.0; 2],
        of_processes: None,
        of_processes_range: None,
    })
}
