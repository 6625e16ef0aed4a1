//! Any line as a request at the control socket: a request that is written as it was read, or an error of bounded length.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rheostat_observe::control::{self, Reply};

fuzz_target!(|bytes: &[u8]| {
    let line = String::from_utf8_lossy(bytes);
    match control::parse(&line) {
        Ok(request) => {
            let written = control::line(&request);
            assert_eq!(control::parse(written.trim_end()).as_ref(), Ok(&request));
        }
        Err(Reply::Error { message }) => assert!(!message.is_empty() && message.len() <= 4_096),
        Err(reply) => panic!("{reply:?}"),
    }
});
