//! Any bytes as replies to `rheo load`, in each protocol: a reply is made of bytes that there are, and is the same reply, found at its
//! last byte, however much has come behind it, and in two pieces.
#![no_main]

use std::net::SocketAddr;

use libfuzzer_sys::fuzz_target;
use rheostat_load::protocol::{Progress, Reading};
use rheostat_load::{ClassMix, Protocol};

fuzz_target!(|input: (u8, u64, bool, &[u8])| {
    let (name, number, ended, bytes) = input;
    let name = ["work", "echo", "http", "resp"][usize::from(name % 4)];
    let server = SocketAddr::from(([192, 0, 2, 1], 80));
    let protocol = Protocol::new(name, 128, &ClassMix::default(), server).unwrap();
    let parse = |bytes, ended| protocol.parse(number, bytes, ended, &mut Reading::default());
    match parse(bytes, ended) {
        Progress::Need(needed) => assert!(needed > bytes.len()),
        Progress::Whole(len, reply) if !ended => {
            assert!((1..=bytes.len()).contains(&len));
            assert_eq!(parse(&bytes[..len], false), Progress::Whole(len, reply));
            for cut in [len - 1, number as usize % len] {
                let mut reading = Reading::default();
                let before = protocol.parse(number, &bytes[..cut], false, &mut reading);
                assert!(matches!(before, Progress::Need(_)), "{before:?}");
                let after = protocol.parse(number, bytes, false, &mut reading);
                assert_eq!(after, Progress::Whole(len, reply));
            }
        }
        Progress::Whole(len, _) => assert!((1..=bytes.len()).contains(&len)),
        Progress::Garbage(_) => {}
    }
});
