//! A running service over the kernel's sockets, as clients of the control socket see it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rheostat_observe::Summary;
use rheostat_observe::control::{Reply, Request, Status, hello};
use rheostat_observe::live_page::EventLog;
use rheostat_observe::openmetrics::Snapshot;
use rheostat_run::{RunView, Sample};
use rheostat_serve::host::HostControl;

use crate::active_config::ActiveConfig;
use crate::attachment::Trial;
use crate::control::{self, Answers, Depth, Peer, by_name};

/// The reply to requests about packets, shards and connections, which are the kernel's.
const NOT_OURS: &str = "the kernel does TCP for this service, so it has no packets, shards and connections of rheostat's own: \
                        `ss -tnpi` lists its connections, `tcpdump` shows its packets";

/// A running service over the kernel's sockets.
#[derive(Debug)]
pub(super) struct HostInstance {
    pub(super) control: HostControl,
    /// Set to end the service.
    pub(super) interrupted: Arc<AtomicBool>,
    pub(super) trial: Trial,
    pub(super) started: Instant,
    pub(super) config: ActiveConfig,
    pub(super) events: EventLog,
}

impl Answers for HostInstance {
    fn answer(&self, request: Request, peer: &mut Peer) -> io::Result<()> {
        peer.send(&match request {
            Request::Status => Reply::Status(Box::new(self.status())),
            Request::Hello => hello(),
            Request::Config => Reply::Config { text: self.config.to_string() },
            Request::Keep => control::confirm(&self.trial),
            Request::Stop => {
                self.interrupted.store(true, Ordering::Relaxed);
                Reply::Stopping
            }
            _ => Reply::Error { message: NOT_OURS.to_owned() },
        })
    }

    fn snapshot(&self, _depth: Depth) -> Snapshot {
        Snapshot::of(env!("CARGO_PKG_VERSION"), self.status())
    }

    fn config(&self) -> String {
        self.config.to_string()
    }

    fn events(&self) -> &EventLog {
        &self.events
    }

    fn view(&self) -> Option<&Arc<RunView>> {
        None
    }
}

impl HostInstance {
    fn status(&self) -> Status {
        let seconds = self.started.elapsed().as_secs_f64();
        let current = ("tcpCurrEstab", self.control.connections() as u64);
        Status {
            summary: Summary::so_far(&Sample { seconds, ..Sample::default() }),
            devices: Vec::new(),
            tcp: by_name([current].into_iter()),
            service: by_name(self.control.totals().named()),
            connections: Some(self.control.totals().accepted),
            application: by_name(self.control.metrics().iter()),
            missing_shards: 0,
            tcp_by: Some("kernel".to_owned()),
            backends: Vec::new(),
            config: None,
        }
    }
}
