//! Any bytes as commands of RESP. It does not matter how they are cut, and to each command there is one reply.
#![no_main]

mod requests;

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use requests::requests;
use rheostat_base::VirtualClock;
use rheostat_serve::resp::{Resp, RespConfig};
use rheostat_serve::{Ended, rehearse};

/// The end of the value that starts at `at`.
fn value(said: &[u8], at: usize) -> usize {
    let line = said[at..].windows(2).position(|two| two == b"\r\n").expect("a line has an end");
    let (text, end) = (&said[at + 1..at + line], at + line + 2);
    let number = || std::str::from_utf8(text).unwrap().parse::<i64>().expect("a number");
    match said[at] {
        b'+' | b'-' => end,
        b':' => {
            number();
            end
        }
        b'$' => match usize::try_from(number()) {
            Ok(len) => {
                assert_eq!(&said[end + len..end + len + 2], b"\r\n");
                end + len + 2
            }
            Err(_) => end,
        },
        b'*' => (0..number().max(0)).fold(end, |at, _| value(said, at)),
        other => panic!("a reply begins with {other}"),
    }
}

fuzz_target!(|input: (Vec<u16>, &[u8])| {
    let (places, bytes) = input;
    let app = || Resp::new(RespConfig::new(1 << 16), Arc::new(VirtualClock::default()));
    let note = |seen: &mut Vec<String>, request| seen.push(format!("{request:?}"));
    let whole = requests(&app(), bytes, &[], note);
    assert_eq!(requests(&app(), bytes, &places, note), whole);
    let cut = places.first().map_or(0, |place| usize::from(*place) % (bytes.len() + 1));
    let (first, second) = bytes.split_at(cut);
    let rehearsal = rehearse(&app(), &[bytes]);
    assert_eq!(rehearse(&app(), &[first, second]), rehearsal);
    assert_ne!(rehearsal.ended, Some(Ended::Aborted));
    let (mut at, mut replies) = (0, 0);
    while at < rehearsal.said.len() {
        (at, replies) = (value(&rehearsal.said, at), replies + 1);
    }
    assert!(replies <= whole.len());
});
