//! Any file as a capture: packets no longer than the file, and an end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rheostat_io::CaptureSource;
use rheostat_io::backend::pcap::read_all;
use rheostat_traffic::Source;

fuzz_target!(|bytes: &[u8]| {
    let all = read_all(bytes);
    if let Ok((records, _)) = &all {
        let total: usize = records.iter().map(|record| record.bytes.len()).sum();
        assert!(total <= bytes.len(), "more packet bytes than the file has");
    }
    // As a source of a device: as many packets again, or an error where the reader had one.
    let Ok(mut source) = CaptureSource::new("fuzz", bytes, Some(bytes.len() as u64)) else {
        return;
    };
    let mut frame = Vec::new();
    let mut packets = 0;
    while let Some(arrival) = source.next(&mut frame) {
        assert_eq!(arrival.len, frame.len());
        assert!(arrival.wire_len as usize >= arrival.len);
        packets += 1;
    }
    assert!(source.next(&mut frame).is_none(), "a source that has ended goes on");
    assert!(source.progress().is_none_or(|share| (0.0..=1.0).contains(&share)));
    if let Ok((records, stopped)) = all {
        let malformed = source.status().malformed();
        assert!(packets <= records.len() as u64 || stopped.is_some() || malformed > 0);
    }
});
