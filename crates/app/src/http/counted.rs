//! An instance that counts how often its lanes are asked, for tests.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rheostat_observe::Summary;
use rheostat_observe::control::{Reply, Request, Status};
use rheostat_observe::live_page::EventLog;
use rheostat_observe::openmetrics::Snapshot;
use rheostat_run::{RunView, Sample};

use crate::control::{Answers, Depth, Peer};

#[derive(Debug, Default)]
pub(super) struct Counted {
    asked: AtomicU64,
    events: EventLog,
}

impl Counted {
    pub(super) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Answers for Counted {
    fn answer(&self, _request: Request, peer: &mut Peer) -> io::Result<()> {
        peer.send(&Reply::Stopping)
    }

    fn snapshot(&self, depth: Depth) -> Snapshot {
        let asked = match depth {
            Depth::Functions => self.asked.fetch_add(1, Ordering::Relaxed),
            Depth::Counters => self.asked(),
        };
        let status = Status {
            summary: Summary::so_far(&Sample { seconds: asked as f64, ..Sample::default() }),
            devices: Vec::new(),
            tcp: [("tcpInSegs".to_owned(), 7)].into(),
            service: Default::default(),
            application: Default::default(),
            connections: None,
            missing_shards: 0,
            tcp_by: None,
            backends: Vec::new(),
            config: None,
        };
        Snapshot::of("1.2.3", status)
    }

    fn config(&self) -> String {
        "[run]\n".to_owned()
    }

    fn events(&self) -> &EventLog {
        &self.events
    }

    fn view(&self) -> Option<&Arc<RunView>> {
        None
    }
}
