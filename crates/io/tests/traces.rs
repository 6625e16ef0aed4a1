//! Real captures, where `RHEO_TRACES` names a folder of them: each is read to its end, and an
//! independent reader counts the same packets, in the file and in what we write from it.
//!
//! Timed: processes.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::config;
use rheostat_base::Time;
use rheostat_io::{CaptureWriter, Device, Pacing, PcapConfig, SimConfig, open_capture};
use rheostat_packet::{Burst, Mempool, MempoolConfig, PoolCache};
use tempfile::TempDir;

fn traces() -> Vec<PathBuf> {
    let Some(folder) = std::env::var_os("RHEO_TRACES") else {
        println!("not run: RHEO_TRACES names no folder of captures");
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "pcap" || e == "pcapng"))
        .collect();
    files.sort();
    files
}

/// The packets `capinfos` counts, or `None` where it is not installed.
fn counted_elsewhere(path: &Path) -> Option<u64> {
    let output = Command::new("capinfos").args(["-M", "-c", "-T", "-r"]).arg(path).output().ok()?;
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.trim().rsplit('\t').next().unwrap().parse().expect("capinfos prints a count"))
}

/// Reads a capture through four lanes into another one; returns the packets and what was malformed.
fn copy(input: &Path, output: &Path) -> (u64, u64) {
    let pool = Mempool::new(&MempoolConfig { buffers: 512, ..MempoolConfig::default() }).unwrap();
    let writer = CaptureWriter::create(output).unwrap();
    let nic = SimConfig { pacing: Pacing::Lossless, ..config(4, 64) };
    let pcap = PcapConfig { input: Some(input.to_owned()), output: Some(writer.clone()), nic };
    let mut device = open_capture(pcap, &pool).unwrap();
    let mut cache = PoolCache::new(pool.clone());
    let (mut queues, monitor) = (device.queues(), device.monitor());
    while !monitor.is_exhausted() {
        for queue in &mut queues {
            let mut burst = Burst::new();
            queue.rx.recv(&mut burst, &mut cache, Time::ZERO);
            queue.tx.send(&mut burst, &mut cache, Time::ZERO);
        }
    }
    let counters = monitor.counters();
    assert_eq!(counters.arrived - counters.malformed, counters.sent);
    drop((queues, cache));
    assert_eq!(pool.available(), 512);
    writer.close().unwrap();
    for warning in monitor.warnings() {
        println!("{warning}");
    }
    (counters.sent, counters.malformed)
}

#[test]
fn every_capture_is_read_to_its_end() {
    let dir = TempDir::new().unwrap();
    let (mut files, mut checked) = (0, 0);
    for input in traces() {
        let output = dir.path().join("out.pcapng");
        let (packets, malformed) = copy(&input, &output);
        println!("{}: {packets} packets, {malformed} malformed", input.display());
        files += 1;
        if let Some(count) = counted_elsewhere(&input) {
            assert_eq!(packets, count, "{}", input.display());
            assert_eq!(counted_elsewhere(&output), Some(count), "written from {}", input.display());
            checked += 1;
        }
    }
    println!("{files} captures read, {checked} counted by capinfos");
    if checked < files {
        println!("not run: capinfos is not installed");
    }
}
