//! Reading captures: both formats in all their variants, and files that are cut, corrupt or no
//! captures at all.

use std::io::{self, Read};

use crate::support::capture::Bytes;
use proptest::prelude::*;
use rheostat_base::Time;
use rheostat_io::Source;
use rheostat_io::backend::pcap::{RecordBuf, read_all};
use rheostat_io::{CaptureReader, CaptureSource, FormatError, ReadError};
use rheostat_packet::LinkType;

fn record(nanos: u64, link: LinkType, wire_len: u32, bytes: &[u8]) -> RecordBuf {
    RecordBuf { time: Time::from_nanos(nanos), link, wire_len, bytes: bytes.to_vec() }
}

fn complete(bytes: &[u8]) -> Vec<RecordBuf> {
    let (records, error) = read_all(bytes).unwrap();
    assert!(error.is_none(), "{error:?}");
    records
}

#[test]
fn pcap_in_both_byte_orders_and_resolutions() {
    for big_endian in [false, true] {
        for (magic, unit) in [(0xa1b2_c3d4, 1_000), (0xa1b2_3c4d, 1)] {
            let mut file = Bytes::new(big_endian);
            file.pcap(magic, 1).record(7, 9, b"whole", 5).record(8, 0, b"cut", 1_500);
            let expected = [
                record(7_000_000_000 + 9 * unit, LinkType::Ethernet, 5, b"whole"),
                record(8_000_000_000, LinkType::Ethernet, 1_500, b"cut"),
            ];
            assert_eq!(complete(&file.bytes), expected, "big endian {big_endian}, magic {magic:x}");
        }
    }
}

#[test]
fn pcap_with_the_longer_records_of_patched_tools() {
    let mut file = Bytes::new(false);
    file.pcap(0xa1b2_cd34, 1);
    file.u32(1).u32(0).u32(3).u32(3).u32(2).u16(0x0800).raw(&[0, 0]).raw(b"abc");
    assert_eq!(complete(&file.bytes), [record(1_000_000_000, LinkType::Ethernet, 3, b"abc")]);
}

#[test]
fn every_supported_link_type() {
    let links = [
        (0, LinkType::Null),
        (108, LinkType::Null),
        (1, LinkType::Ethernet),
        (12, LinkType::Raw),
        (14, LinkType::Raw),
        (101, LinkType::Raw),
        (228, LinkType::Raw),
        (229, LinkType::Raw),
        (113, LinkType::LinuxCooked),
        (276, LinkType::LinuxCooked2),
        // With a frame check sequence of four bytes, as the flags in the upper half say.
        (0x4400_0001, LinkType::Ethernet),
    ];
    for (number, link) in links {
        let mut file = Bytes::new(false);
        file.pcap(0xa1b2_c3d4, number).record(0, 0, b"x", 1);
        assert_eq!(complete(&file.bytes), [record(0, link, 1, b"x")]);
    }
}

#[test]
fn pcapng_with_several_interfaces_sections_and_block_types() {
    for big_endian in [false, true] {
        let mut file = Bytes::new(big_endian);
        file.section()
            .interface(1, None, None)
            .interface(101, Some(9), Some(5))
            .interface(113, Some(0x80 | 1), Some(-2_i64 as u64))
            .block(5, |statistics| {
                statistics.u32(0).u32(0).u32(0);
            })
            .enhanced(0, 1_500_000, b"micros", 6)
            .enhanced(1, 1, b"nanos and an offset", 100)
            .enhanced(2, 7, b"half seconds", 12)
            .block(3, |simple| {
                simple.u32(5).raw(b"plain");
            })
            .block(2, |obsolete| {
                obsolete.u16(1).u16(0).u32(0).u32(3).u32(3).u32(9).raw(b"old");
            })
            .block(0x0bad, |unknown| {
                unknown.raw(b"skip this");
            });
        // A second section in the other byte order forgets the interfaces of the first.
        let mut second = Bytes::new(!big_endian);
        second.section().interface(0, None, None).enhanced(0, 2, b"loop", 4);
        file.raw(&second.bytes);
        let expected = [
            record(1_500_000_000, LinkType::Ethernet, 6, b"micros"),
            record(5_000_000_001, LinkType::Raw, 100, b"nanos and an offset"),
            record(1_500_000_000, LinkType::LinuxCooked, 12, b"half seconds"),
            record(1_500_000_000, LinkType::Ethernet, 5, b"plain"),
            record(5_000_000_003, LinkType::Raw, 9, b"old"),
            record(2_000, LinkType::Null, 4, b"loop"),
        ];
        assert_eq!(complete(&file.bytes), expected, "big endian {big_endian}");
    }
}

#[test]
fn a_simple_packet_is_as_long_as_the_snapshot_allows() {
    let mut file = Bytes::new(false);
    file.section().block(1, |interface| {
        interface.u16(1).u16(0).u32(4);
    });
    file.block(3, |simple| {
        simple.u32(900).raw(b"head");
    });
    assert_eq!(complete(&file.bytes), [record(0, LinkType::Ethernet, 900, b"head")]);
}

#[test]
fn what_is_not_a_capture_is_refused_in_words() {
    let refused = |bytes: &[u8]| CaptureReader::new(bytes).err().unwrap().to_string();
    assert_eq!(refused(b""), "the file is empty");
    assert_eq!(refused(b"\xd4\xc3"), "the file ends after 2 bytes, inside its header");
    assert_eq!(
        refused(&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0]),
        "the file ends after 8 bytes, inside its header"
    );
    assert_eq!(
        refused(b"[section]"),
        "this is not a pcap or pcapng capture: it begins with 5b 73 65 63"
    );
    assert_eq!(
        refused(b"\x1f\x8b\x08\x00"),
        "this is not a pcap or pcapng capture: it begins with 1f 8b 08 00, a gzip file; decompress \
         it first"
    );
    let mut usb = Bytes::new(false);
    usb.pcap(0xa1b2_c3d4, 249);
    assert!(
        refused(&usb.bytes).starts_with("link type 249 is not supported (supported: Ethernet 1")
    );
}

fn drain<R: Read + Send>(source: &mut CaptureSource<R>) -> usize {
    let mut frame = Vec::new();
    std::iter::from_fn(|| source.next(&mut frame)).count()
}

#[test]
fn packets_of_an_unknown_link_type_are_left_out_and_counted() {
    let mut file = Bytes::new(false);
    file.section().interface(1, None, None).interface(249, None, None);
    file.enhanced(0, 0, b"a", 1).enhanced(1, 0, b"usb", 3).enhanced(0, 0, b"b", 1);
    let mut source = CaptureSource::new("x.pcapng", file.bytes.as_slice(), None).unwrap();
    assert_eq!(drain(&mut source), 2);
    let status = source.status();
    assert_eq!(status.malformed(), 1);
    let warning = "x.pcapng: a packet of the unsupported link type 249 was left out, at byte 112";
    assert_eq!(status.warnings(), [warning]);
    // A capture that begins with such a packet is refused.
    let mut file = Bytes::new(false);
    file.section().interface(249, None, None).enhanced(0, 0, b"usb", 3);
    let error = CaptureSource::new("x.pcapng", file.bytes.as_slice(), None).err();
    assert!(matches!(error, Some(FormatError::UnsupportedLink { number: 249 })));
}

fn small_pcap() -> Vec<u8> {
    let mut file = Bytes::new(false);
    file.pcap(0xa1b2_c3d4, 1).record(0, 0, b"first", 5).record(0, 1, b"second!", 7);
    file.bytes
}

fn small_pcapng() -> Vec<u8> {
    let mut file = Bytes::new(true);
    file.section().interface(1, Some(9), Some(1)).enhanced(0, 0, b"first", 5);
    file.block(3, |simple| {
        simple.u32(7).raw(b"second!");
    });
    file.bytes
}

#[test]
fn a_capture_cut_anywhere_yields_its_complete_packets_and_one_malformed() {
    for whole in [small_pcap(), small_pcapng()] {
        let mut boundaries = 0;
        for length in 0..whole.len() {
            let cut = &whole[..length];
            let Ok(mut source) = CaptureSource::new("cut", cut, Some(length as u64)) else {
                assert!(length < 24, "only the header of the file is refused");
                continue;
            };
            let packets = drain(&mut source);
            let status = source.status();
            match read_all(cut).unwrap() {
                (records, None) => {
                    boundaries += 1;
                    assert_eq!((packets, status.malformed()), (records.len(), 0));
                    assert_eq!(status.progress(), Some(1.0));
                }
                (records, Some(error)) => {
                    assert!(matches!(error, ReadError::Truncated { .. }), "{error}");
                    assert_eq!((packets, status.malformed()), (records.len(), 1));
                    assert_eq!(status.warnings(), [format!("cut: {error}")]);
                }
            }
        }
        assert!(boundaries >= 2, "a cut between two records is none");
    }
}

#[test]
fn lengths_that_lie_end_the_capture_without_filling_the_memory() {
    let mut long = Bytes::new(false);
    long.pcap(0xa1b2_c3d4, 1)
        .record(0, 0, b"fine", 4)
        .u32(0)
        .u32(0)
        .u32(u32::MAX)
        .u32(64)
        .raw(&[0; 64]);
    let mut block = Bytes::new(false);
    block.section().interface(1, None, None).enhanced(0, 0, b"fine", 4);
    block.u32(6).u32(0xffff_fff0).raw(&[0; 64]);
    let mut inner = Bytes::new(false);
    inner.section().interface(1, None, None).enhanced(0, 0, b"fine", 4);
    inner.block(6, |block| {
        block.u32(0).u32(0).u32(0).u32(0x7fff_ffff).u32(0).raw(&[0; 64]);
    });
    let mut tail = Bytes::new(false);
    tail.section().interface(1, None, None).enhanced(0, 0, b"fine", 4);
    tail.u32(6).u32(36).raw(&[0; 24]).u32(40);
    let mut stranger = Bytes::new(false);
    stranger.section().interface(1, None, None).enhanced(0, 0, b"fine", 4).enhanced(3, 0, b"?", 1);
    for (file, what) in [
        (long, "longer than any link carries"),
        (block, "more bytes than any block has"),
        (inner, "a packet block cannot be read"),
        (tail, "the two lengths of a block differ"),
        (stranger, "an interface that was not described"),
    ] {
        let (records, error) = read_all(&file.bytes).unwrap();
        assert_eq!(records.len(), 1);
        let error = error.unwrap();
        assert!(matches!(error, ReadError::Corrupt { .. }));
        assert!(error.to_string().contains(what), "{error}");
    }
}

/// Gives its bytes one at a time and then fails.
struct Failing<'a>(&'a [u8]);

impl Read for Failing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.0.is_empty() {
            return Err(io::Error::other("the disk is gone"));
        }
        let count = 1.min(buffer.len());
        self.0.read(&mut buffer[..count])
    }
}

#[test]
fn a_failing_disk_is_a_counted_record_and_a_warning() {
    let whole = small_pcap();
    let cut = whole.len() - 10;
    let mut source = CaptureSource::new("disk", Failing(&whole[..cut]), None).unwrap();
    assert_eq!(drain(&mut source), 1);
    let warnings = source.status().warnings();
    let expected = format!(
        "disk: the capture could not be read any further than byte {cut}: the disk is gone"
    );
    assert_eq!(warnings, [expected]);
    assert_eq!(source.status().malformed(), 1);
}

proptest! {
    /// Whatever is done to a capture, reading ends, without a panic, with no more bytes of packets
    /// than the file has.
    #[test]
    fn damage_never_panics(
        ng in any::<bool>(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = if ng { small_pcapng() } else { small_pcap() };
        for (at, value) in damage {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        bytes.truncate(cut.index(bytes.len()) + 1);
        if let Ok((records, _)) = read_all(&bytes) {
            let total: usize = records.iter().map(|record| record.bytes.len()).sum();
            prop_assert!(total <= bytes.len());
        }
    }

    #[test]
    fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200), magic in 0_usize..3) {
        let magics: [&[u8]; 3] =
            [&[], &[0xd4, 0xc3, 0xb2, 0xa1], &[10, 13, 13, 10, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a]];
        let file = [magics[magic], &bytes].concat();
        if let Ok((records, _)) = read_all(&file) {
            prop_assert!(records.len() <= file.len());
        }
    }
}
