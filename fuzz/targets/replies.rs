//! Any bytes as replies to `rheo load`, in each protocol: a reply is made of bytes that there are, and is the same reply, found at its
//! last byte, however much has come behind it.
#![no_main]

use std::net::SocketAddr;

use libfuzzer_sys::fuzz_target;
use rheostat_load::protocol::Progress;
use rheostat_load::{ClassMix, Protocol};

fuzz_target!(|input: (u8, u64, bool, &[u8])| {
    let (name, number, ended, bytes) = input;
    let name = ["work", "echo", "http", "resp"][usize::from(name % 4)];
    let server = SocketAddr::from(([192, 0, 2, 1], 80));
    let protocol = Protocol::new(name, 128, &ClassMix::default(), server).unwrap();
    match protocol.parse(number, bytes, ended) {
        Progress::Need(needed) => assert!(needed > bytes.len()),
        Progress::Whole(len, reply) if !ended => {
            assert!((1..=bytes.len()).contains(&len));
            assert_eq!(protocol.parse(number, &bytes[..len], false), Progress::Whole(len, reply));
            let before = protocol.parse(number, &bytes[..len - 1], false);
            assert!(matches!(before, Progress::Need(_)), "{before:?}");
        }
        Progress::Whole(len, _) => assert!((1..=bytes.len()).contains(&len)),
        Progress::Garbage(_) => {}
    }
});
