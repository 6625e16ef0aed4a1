//! Any text as an expression, and any frame for it to look at: an error that can be shown, or an
//! expression that is read again as it is written and that has an answer.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rheostat_capture::Expression;
use rheostat_packet::{Mempool, MempoolConfig, PoolCache};

thread_local! {
    static POOL: Mempool =
        Mempool::new(&MempoolConfig { buffers: 8, data_room: 2_048, headroom: 0 }).unwrap();
}

fuzz_target!(|input: (&str, &[u8])| {
    let (text, bytes) = input;
    let expression = match text.parse::<Expression>() {
        Ok(expression) => expression,
        Err(error) => {
            assert!(error.at <= text.len());
            assert!(error.to_string().ends_with("^ here"));
            return;
        }
    };
    let written = expression.to_string();
    // What is written may be longer than what was read, and beyond the limit then.
    if written.len() <= 4_096 {
        let again = written.parse::<Expression>();
        assert_eq!(again.map(|again| again.to_string()), Ok(written));
    }
    if (1..=2_048).contains(&bytes.len()) {
        let mut cache = PoolCache::new(POOL.with(Mempool::clone));
        let packet = cache.alloc_from(bytes).unwrap();
        let opposite = Expression::Not(Box::new(expression.clone()));
        assert_ne!(expression.matches(&packet), opposite.matches(&packet));
        cache.free(packet);
    }
});
