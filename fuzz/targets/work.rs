//! Any bytes as requests of `rheo serve work`, and as replies. It does not matter how requests are cut, and a frame that is written
//! is read as it was.
#![no_main]

mod requests;

use libfuzzer_sys::fuzz_target;
use requests::requests;
use rheostat_serve::work::{Operations, Work, WorkConfig, WorkKind, WorkReply, WorkRequest};

fuzz_target!(|input: (Vec<u16>, &[u8])| {
    let (places, bytes) = input;
    let config = WorkConfig {
        work: WorkKind::Null,
        service_time: "bimodal-1".parse().unwrap(),
        buffer: "1MiB".parse().unwrap(),
    };
    let app = Work::new(&config, Operations::default(), 0, Vec::new());
    let note = |seen: &mut Vec<String>, request| seen.push(format!("{request:?}"));
    let whole = requests(&app, bytes, &[], note);
    assert_eq!(requests(&app, bytes, &places, note), whole);
    let mut written = Vec::new();
    if let Ok(request) = WorkRequest::parse(bytes) {
        request.write(|piece| written.extend_from_slice(piece));
        assert_eq!(WorkRequest::parse(&written), Ok(request));
    }
    if let Ok(reply) = WorkReply::parse(bytes) {
        reply.write(|piece| written.extend_from_slice(piece));
        assert_eq!(WorkReply::parse(&written), Ok(reply));
    }
});
