//! A service that counts: each line names a counter, and the reply is how often it was named.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

use rheostat::Metrics;
use rheostat::declared::kind;
use rheostat::tcp::{Application, Encoded, Handled, LaneId, Parsed, ReplyBuffer};

rheostat::settings! {
    /// Settings of `counter`.
    pub struct CounterSettings {
        /// Counters at most.
        counters: usize = kind::count(1..=1_000_000), value("N"), default(1_000);
    }
}

/// Counters that all connections share.
pub struct Counter {
    counters: Mutex<HashMap<Vec<u8>, u64>>,
    most: usize,
}

impl Counter {
    /// No counter yet.
    pub fn new(settings: CounterSettings) -> Counter {
        Counter { counters: Mutex::default(), most: settings.counters }
    }
}

impl Application for Counter {
    type Conn = ();
    type Worker = ();
    type Request = Vec<u8>;
    type Reply = Vec<u8>;

    fn worker(&self, _: LaneId) {}

    fn accept(&self, _: SocketAddr) {}

    fn parse(&self, (): &mut (), bytes: &[u8]) -> Parsed<Vec<u8>, Vec<u8>> {
        match bytes.iter().position(|byte| *byte == b'\n') {
            Some(end) => Parsed::Request { request: bytes[..end].to_vec(), len: end + 1, class: 0 },
            None if bytes.len() > 1_000 => Parsed::Refuse(b"too long\n".to_vec()),
            None => Parsed::Need(bytes.len() + 1),
        }
    }

    fn handle(&self, (): &mut (), name: Vec<u8>) -> Handled<Vec<u8>, Vec<u8>> {
        let mut counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        if counters.len() == self.most && !counters.contains_key(&name) {
            return Handled::Done(b"no counter is left\n".to_vec());
        }
        let count = counters.entry(name).or_default();
        *count += 1;
        Handled::Done(format!("{count}\n").into_bytes())
    }

    fn encode(&self, (): &mut (), reply: &mut Vec<u8>, out: &mut ReplyBuffer<'_>) -> Encoded {
        out.put(reply);
        Encoded::Done
    }

    fn metrics(&self, metrics: &mut Metrics) {
        let counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        metrics.add("counters", counters.len() as u64);
        metrics.add("counted", counters.values().sum());
    }
}
