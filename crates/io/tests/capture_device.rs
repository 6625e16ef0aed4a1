//! Captures as devices: what is read, steered, sent and written is the same, file to file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::support::capture::Bytes;
use crate::support::{config, flow, poll, pool, udp};
use rheostat_base::Time;
use rheostat_io::backend::pcap::{RecordBuf, read_all};
use rheostat_io::{
    CaptureWriter, Device, LayeredDevice, OpenError, Pacing, PcapConfig, ReplayBarrier, SimConfig,
    WriteError, WriteSummary, open_capture,
};
use rheostat_packet::{Burst, LinkType, Mempool, PoolCache};
use tempfile::TempDir;

fn lossless(queues: u16) -> SimConfig {
    SimConfig { pacing: Pacing::Lossless, ..config(queues, 4) }
}

fn open(
    input: Option<PathBuf>,
    output: Option<&CaptureWriter>,
    nic: SimConfig,
    pool: &Mempool,
) -> LayeredDevice {
    open_capture(PcapConfig { input, output: output.cloned(), nic }, pool).unwrap()
}

/// Polls the lanes of a device in turn and sends back whatever they receive, until the capture has
/// ended. Returns what each lane received.
fn forward(device: &mut LayeredDevice, pool: &Mempool) -> Vec<Vec<Vec<u8>>> {
    let mut cache = PoolCache::new(pool.clone());
    let (mut queues, monitor) = (device.queues(), device.monitor());
    let mut lanes = vec![Vec::new(); queues.len()];
    while !monitor.is_exhausted() {
        for (queue, lane) in queues.iter_mut().zip(&mut lanes) {
            let mut burst = Burst::new();
            queue.rx.recv(&mut burst, &mut cache, Time::ZERO);
            lane.extend(burst.iter().map(|packet| packet.to_vec()));
            queue.tx.send(&mut burst, &mut cache, Time::ZERO);
            assert!(burst.is_empty());
        }
    }
    lanes
}

fn write_file(dir: &TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = dir.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

fn read_file(path: &Path) -> Vec<RecordBuf> {
    let (records, error) = read_all(&std::fs::read(path).unwrap()).unwrap();
    assert!(error.is_none(), "{error:?}");
    records
}

fn many_flows() -> Vec<u8> {
    let mut file = Bytes::new(true);
    file.pcap(0xa1b2_3c4d, 1);
    for number in 0..500 {
        let mut frame = udp(number as u16 * 7 % 40, number);
        // Some long enough to be chained, some cut short by the capture.
        frame.resize(frame.len() + (number as usize * 97) % 1_400, number as u8);
        let wire = frame.len() as u32 + number % 3 * 100;
        file.record(1_700_000_000 + number, number * 1_000, &frame, wire);
    }
    file.bytes
}

#[test]
fn a_capture_through_any_number_of_lanes_is_the_same_per_flow_and_per_queue() {
    let dir = TempDir::new().unwrap();
    let input = write_file(&dir, "in.pcap", &many_flows());
    let original = read_file(&input);
    for queues in [1, 2, 8] {
        for name in ["out.pcap", "out.pcapng"] {
            let output = dir.path().join(name);
            let pool = pool(256);
            let writer = CaptureWriter::create(&output).unwrap();
            let mut device = open(Some(input.clone()), Some(&writer), lossless(queues), &pool);
            let lanes = forward(&mut device, &pool);
            let counters = device.monitor().counters();
            assert_eq!((counters.arrived, counters.sent), (500, 500));
            assert_eq!(counters.queue_full, vec![0; queues.into()]);
            assert_eq!(device.monitor().source().unwrap().progress(), Some(1.0));
            drop(device);
            assert_eq!(pool.available(), 256);
            let bytes = original.iter().map(|record| record.bytes.len() as u64).sum();
            assert_eq!(writer.close().unwrap(), WriteSummary { packets: 500, bytes });

            let written = read_file(&output);
            if queues == 1 {
                assert_eq!(written, original);
            }
            assert_eq!(by_flow(&written), by_flow(&original));
            let place: HashMap<&[u8], usize> =
                written.iter().enumerate().map(|(at, record)| (&record.bytes[..], at)).collect();
            for lane in &lanes {
                assert!(queues > 1 || lane.len() == 500);
                let places: Vec<usize> = lane.iter().map(|bytes| place[&bytes[..]]).collect();
                assert!(places.is_sorted(), "a queue's packets keep their order in the file");
            }
        }
    }
}

fn by_flow(records: &[RecordBuf]) -> HashMap<u16, Vec<&RecordBuf>> {
    let mut flows: HashMap<u16, Vec<&RecordBuf>> = HashMap::new();
    for record in records {
        flows.entry(flow(&record.bytes)).or_default().push(record);
    }
    flows
}

/// A pcapng capture with two interfaces of different link types.
fn two_links() -> Vec<u8> {
    let mut file = Bytes::new(false);
    file.section().interface(1, None, None).interface(101, None, None);
    file.enhanced(0, 1, &udp(1, 1), 46).enhanced(1, 2, &udp(1, 2)[14..], 32).enhanced(
        0,
        3,
        &udp(1, 3),
        46,
    );
    file.bytes
}

#[test]
fn several_link_types_need_pcapng() {
    let dir = TempDir::new().unwrap();
    let input = write_file(&dir, "in.pcapng", &two_links());
    let pool = pool(64);

    let output = dir.path().join("out.pcapng");
    let writer = CaptureWriter::create(&output).unwrap();
    forward(&mut open(Some(input.clone()), Some(&writer), lossless(1), &pool), &pool);
    assert_eq!(writer.close().unwrap().packets, 3);
    assert_eq!(read_file(&output), read_file(&input));

    let output = dir.path().join("out.pcap");
    let writer = CaptureWriter::create(&output).unwrap();
    forward(&mut open(Some(input), Some(&writer), lossless(1), &pool), &pool);
    let error = writer.close().unwrap_err();
    assert!(matches!(error, WriteError::OtherLink { lost: 1, .. }));
    assert!(error.to_string().contains("out.pcap: write a .pcapng file instead"), "{error}");
    assert_eq!(read_file(&output).len(), 2, "the others are in the file");
}

#[test]
fn a_capture_without_packets_is_a_capture() {
    let dir = TempDir::new().unwrap();
    let mut empty = Bytes::new(false);
    empty.pcap(0xa1b2_c3d4, 1);
    let input = write_file(&dir, "in.pcap", &empty.bytes);
    for name in ["out.cap", "out.PCAPNG"] {
        let output = dir.path().join(name);
        let pool = pool(64);
        let writer = CaptureWriter::create(&output).unwrap();
        let mut device = open(Some(input.clone()), Some(&writer), lossless(2), &pool);
        forward(&mut device, &pool);
        assert_eq!(writer.close().unwrap(), WriteSummary::default());
        assert_eq!(read_file(&output), []);
    }
}

#[test]
fn either_side_may_be_missing() {
    let dir = TempDir::new().unwrap();
    let pool = pool(64);
    let input = write_file(&dir, "in.pcapng", &two_links());
    let mut reading = open(Some(input), None, lossless(1), &pool);
    assert_eq!(forward(&mut reading, &pool)[0].len(), 3);
    assert_eq!(reading.monitor().counters().sent, 3);

    let output = dir.path().join("out.pcap");
    let writer = CaptureWriter::create(&output).unwrap();
    let mut writing = open(None, Some(&writer), lossless(1), &pool);
    assert_eq!(writing.monitor().source().unwrap().progress(), None);
    let mut cache = PoolCache::new(pool.clone());
    let mut queue = writing.queues().remove(0);
    assert!(poll(&mut *queue.rx, 32, &mut cache, Time::ZERO).is_empty());
    assert!(writing.monitor().is_exhausted());
    let mut packet = cache.alloc_from(b"sent").unwrap();
    packet.set_timestamp(Time::from_nanos(1_000_000_007));
    packet.set_link(LinkType::LinuxCooked2);
    let mut burst = Burst::from_iter([packet]);
    assert_eq!(queue.tx.send(&mut burst, &mut cache, Time::ZERO), 1);
    // Dropping the last handle ends the file, too.
    drop((queue, writing, writer));
    let expected = RecordBuf {
        time: Time::from_nanos(1_000_000_007),
        link: LinkType::LinuxCooked2,
        wire_len: 4,
        bytes: b"sent".to_vec(),
    };
    assert_eq!(read_file(&output), [expected]);
}

#[test]
fn a_cut_capture_counts_one_arrival_that_was_dropped() {
    let dir = TempDir::new().unwrap();
    let whole = many_flows();
    let input = write_file(&dir, "cut.pcap", &whole[..whole.len() - 1]);
    let pool = pool(256);
    let mut device = open(Some(input), None, lossless(2), &pool);
    let received: usize = forward(&mut device, &pool).iter().map(Vec::len).sum();
    let monitor = device.monitor();
    let counters = monitor.counters();
    assert_eq!((received, counters.arrived, counters.malformed), (499, 500, 1));
    let [warning] = &monitor.warnings()[..] else { panic!("one warning") };
    assert!(warning.contains("cut.pcap: the capture is cut off"), "{warning}");
}

#[test]
fn a_replay_keeps_the_distances_of_the_capture() {
    let dir = TempDir::new().unwrap();
    let mut file = Bytes::new(false);
    file.pcap(0xa1b2_c3d4, 1);
    for seconds in [0, 2, 6] {
        file.record(1_700_000_000 + seconds, 0, &udp(1, seconds), 46);
    }
    let input = write_file(&dir, "in.pcap", &file.bytes);
    let pool = pool(64);
    let nic = SimConfig { pacing: Pacing::Replay { speed: 2.0 }, ..config(1, 4) };
    let mut device = open(Some(input), None, nic, &pool);
    let mut cache = PoolCache::new(pool);
    let mut rx = device.queues().remove(0).rx;
    let start = Time::from_millis(77);
    let mut arrived_at = |elapsed: u64| -> Vec<Time> {
        let now = start + Duration::from_millis(elapsed);
        let packets = poll(&mut *rx, 32, &mut cache, now);
        packets.iter().map(|packet| packet.timestamp()).collect()
    };
    assert_eq!(arrived_at(0), [Time::from_secs(1_700_000_000)]);
    assert_eq!(arrived_at(999), []);
    assert_eq!(arrived_at(1_000), [Time::from_secs(1_700_000_002)]);
    assert_eq!(arrived_at(5_000), [Time::from_secs(1_700_000_006)]);
}

#[test]
fn errors_name_the_file_and_what_is_wrong() {
    let dir = TempDir::new().unwrap();
    let refused = |input: PathBuf| {
        let config = PcapConfig { input: Some(input), output: None, nic: lossless(1) };
        open_capture(config, &pool(16)).err().unwrap()
    };
    let missing = refused(dir.path().join("missing.pcap"));
    assert!(matches!(missing, OpenError::File { .. }));
    assert!(missing.to_string().contains("missing.pcap: No such file"), "{missing}");
    let empty = refused(write_file(&dir, "empty.pcap", b""));
    assert!(empty.to_string().ends_with("empty.pcap: the file is empty"), "{empty}");
    let text = refused(write_file(&dir, "text.pcap", b"hello"));
    assert!(matches!(text, OpenError::Format { .. }));
    assert!(text.to_string().contains("it begins with 68 65 6c 6c"), "{text}");
    let unwritable = CaptureWriter::create(&dir.path().join("none/out.pcap")).err().unwrap();
    assert!(matches!(unwritable, WriteError::Create { .. }));
    let nameless = CaptureWriter::create(&dir.path().join("out.txt")).err().unwrap();
    assert!(nameless.to_string().ends_with("out.txt: name it .pcap or .pcapng"), "{nameless}");
    assert!(!dir.path().join("out.txt").exists());
}

#[test]
fn captures_of_two_devices_are_read_in_the_order_of_their_stamps() {
    let dir = TempDir::new().unwrap();
    let pool = pool(256);
    let received = Arc::new(AtomicU64::new(0));
    let barrier = Arc::new(ReplayBarrier::new({
        let received = received.clone();
        move || Some(received.load(Ordering::Relaxed))
    }));
    // Questions and answers, and at the end what only one side has.
    let mut devices: Vec<LayeredDevice> = (0..2)
        .map(|side| {
            let mut file = Bytes::new(true);
            file.pcap(0xa1b2_3c4d, 1);
            for number in (0..100).filter(|number| number % 2 == side || *number > 90 && side == 1)
            {
                let frame = udp(number as u16, number);
                file.record(1_700_000_000, number * 1_000, &frame, frame.len() as u32);
            }
            let input = write_file(&dir, &format!("{side}.pcap"), &file.bytes);
            open(Some(input), None, lossless(1), &pool)
        })
        .collect();
    for device in &mut devices {
        device.as_replay().unwrap().replay_by(barrier.clone());
    }

    let mut cache = PoolCache::new(pool);
    let mut queues: Vec<_> = devices.iter_mut().flat_map(|device| device.queues()).collect();
    let mut times = Vec::new();
    while !devices.iter().all(|device| device.monitor().is_exhausted()) {
        // The side that answers is asked first.
        for queue in queues.iter_mut().rev() {
            let mut burst = Burst::new();
            queue.rx.recv(&mut burst, &mut cache, Time::ZERO);
            times.extend(burst.iter().map(|packet| packet.timestamp()));
            received.fetch_add(burst.len() as u64, Ordering::Relaxed);
            queue.tx.send(&mut burst, &mut cache, Time::ZERO);
        }
    }
    assert_eq!(times.len(), 104);
    assert!(times.is_sorted(), "{times:?}");
}
