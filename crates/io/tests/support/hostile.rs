//! Frames that are right in most respects and wrong in some.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// Protocols whose headers are looked at, and one that is not.
const PROTOCOLS: [u8; 13] = [1, 6, 17, 33, 47, 50, 51, 58, 59, 89, 132, 136, 4];
const EXTENSIONS: [u8; 8] = [0, 43, 44, 51, 60, 135, 139, 140];

/// Addresses that prefix lists of the tests distinguish, and some that are equal.
fn v4_address() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        any::<[u8; 4]>().prop_map(Vec::from),
        any::<u8>().prop_map(|host| vec![10, 0, 0, host % 3]),
        any::<u8>().prop_map(|host| vec![9, 0, 0, host % 3]),
    ]
}

fn v6_address() -> impl Strategy<Value = Vec<u8>> {
    let under = |first: u8, host: u8| {
        let mut address = vec![0; 16];
        (address[0], address[15]) = (first, host % 3);
        address
    };
    prop_oneof![
        any::<[u8; 16]>().prop_map(Vec::from),
        any::<u8>().prop_map(move |host| under(0xfd, host)),
        any::<u8>().prop_map(move |host| under(0x20, host)),
    ]
}

/// A transport header with payload: lengths that hold, in most cases.
fn transport() -> impl Strategy<Value = (u8, Vec<u8>)> {
    (select(&PROTOCOLS[..]), vec(any::<u8>(), 0..80), any::<u8>()).prop_map(
        |(protocol, mut bytes, choice)| {
            // A port that filters look for.
            if bytes.len() >= 4 && choice % 8 == 0 {
                bytes[2..4].fill(1);
            }
            match (protocol, bytes.len()) {
                (6, 20..) => bytes[12] = 0x50,
                (17, len @ 8..) => bytes[4..6].copy_from_slice(&(len as u16).to_be_bytes()),
                (1, 1..) => bytes[0] = [0, 3, 8, 11, 13, 18, 42][usize::from(choice) % 7],
                (58, 1..) => bytes[0] = [1, 128, 129, 135, 139, 140, 160][usize::from(choice) % 7],
                _ => {}
            }
            // An error, as far as the kind goes, that quotes a segment of TCP, as far as there is room.
            match (protocol, choice % 3) {
                (1, 0) => {
                    quote(&mut bytes, 3, &[0x45, 0, 0, 40, 0, 1, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1])
                }
                (58, 0) => {
                    let mut header = [0; 24];
                    (header[0], header[5], header[6], header[7]) = (0x60, 20, 6, 64);
                    (header[8], header[23]) = (0xfd, 1);
                    quote(&mut bytes, 2, &header);
                }
                _ => {}
            }
            (protocol, bytes)
        },
    )
}

/// Makes an ICMP error of this kind of `message`, which quotes the header.
fn quote(message: &mut [u8], kind: u8, header: &[u8]) {
    if let Some(first) = message.first_mut() {
        *first = kind;
    }
    for (byte, quoted) in message.iter_mut().skip(8).zip(header) {
        *byte = *quoted;
    }
}

fn v4() -> impl Strategy<Value = Vec<u8>> {
    let fragment =
        prop_oneof![8 => Just(0_u16), 1 => Just(0x4000), 1 => Just(0x2000), 1 => any::<u16>()];
    let options = (0_usize..3).prop_map(|words| vec![1_u8; words * 4]);
    (v4_address(), v4_address(), transport(), fragment, options, any::<u8>()).prop_map(
        |(from, to, (protocol, payload), fragment, options, zero)| {
            let header = 20 + options.len();
            // Zero as before segmentation offload, now and then.
            let total = if zero == 0 { 0 } else { (header + payload.len()) as u16 };
            let mut bytes = vec![0x40 | (header / 4) as u8, 0];
            bytes.extend(total.to_be_bytes());
            bytes.extend([0, 1]);
            bytes.extend(fragment.to_be_bytes());
            bytes.extend([64, protocol, 0, 0]);
            [from, to, options, payload].into_iter().for_each(|part| bytes.extend(part));
            bytes
        },
    )
}

fn v6() -> impl Strategy<Value = Vec<u8>> {
    let length = prop_oneof![4 => Just(0_u8), 1 => 0_u8..4];
    let extension = (select(&EXTENSIONS[..]), length, any::<u8>(), any::<[u8; 6]>());
    let extensions = prop_oneof![
        3 => Just(Vec::new()),
        2 => vec(extension.clone(), 1..4),
        1 => vec(extension, 8..13),
    ];
    (v6_address(), v6_address(), transport(), extensions, any::<u8>()).prop_map(
        |(from, to, (protocol, payload), extensions, zero)| {
            let mut nexts = extensions.iter().map(|extension| extension.0).chain([protocol]);
            let first = nexts.next().unwrap_or(protocol);
            let mut body = Vec::new();
            for (next, (kind, units, calm, data)) in nexts.zip(&extensions) {
                let start = body.len();
                body.extend([next, if *kind == 51 { units * 2 } else { *units }]);
                // Whole packets more often than fragments.
                body.extend(match calm % 8 {
                    0 => *data,
                    // A first fragment, where it is a fragment header.
                    1 => [0, 1, 0, 0, 0, 9],
                    _ => [0; 6],
                });
                let len = match kind {
                    44 => 8,
                    51 => (usize::from(*units) * 2 + 2) * 4,
                    _ => (usize::from(*units) + 1) * 8,
                };
                body.resize(start + len, 0);
            }
            body.extend(payload);
            let len = if zero == 0 { 0 } else { body.len() as u16 };
            let mut bytes = vec![0x60, 0, 0, 0];
            bytes.extend(len.to_be_bytes());
            bytes.extend([first, 64]);
            [from, to, body].into_iter().for_each(|part| bytes.extend(part));
            bytes
        },
    )
}

/// Ethernet frames of at least 14 bytes.
pub(crate) fn frame() -> impl Strategy<Value = Vec<u8>> {
    let network = prop_oneof![
        8 => v4().prop_map(|bytes| (0x0800_u16, bytes)),
        8 => v6().prop_map(|bytes| (0x86dd, bytes)),
        1 => (any::<u16>(), vec(any::<u8>(), 0..60)),
    ];
    let tags = prop_oneof![6 => Just(0_usize), 2 => 1_usize..3, 1 => 7_usize..10];
    let changes = prop_oneof![3 => Just(Vec::new()), 2 => vec((12_usize..120, any::<u8>()), 1..4)];
    let cut = prop_oneof![4 => Just(0_usize), 1 => 1_usize..40];
    (network, tags, changes, cut, 0_usize..24).prop_map(
        |((ethertype, network), tags, changes, cut, padding)| {
            let mut frame = vec![2; 12];
            for i in 0..tags {
                frame.extend([[0x81, 0x00], [0x88, 0xa8], [0x91, 0x00]][i % 3]);
                frame.extend([0, i as u8]);
            }
            frame.extend(ethertype.to_be_bytes());
            frame.extend(network);
            frame.resize(frame.len() + padding, 0);
            for (at, value) in changes {
                let at = at.min(frame.len() - 1);
                frame[at] = value;
            }
            frame.truncate((frame.len() - cut.min(frame.len())).max(14));
            frame
        },
    )
}

/// The same frames each time.
pub(crate) fn frames(count: usize) -> Vec<Vec<u8>> {
    let mut runner = TestRunner::deterministic();
    let strategy = frame();
    let mut one = || strategy.new_tree(&mut runner).expect("no value is refused").current();
    (0..count).map(|_| one()).collect()
}
