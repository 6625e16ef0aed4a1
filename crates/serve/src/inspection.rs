//! Lists the connections of a running service.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rheostat_base::{LaneId, ShardId, Time};
use rheostat_run::{Entry, ShardSet};
use rheostat_tcp::{Info, State};

use crate::connections::Connections;
use crate::ends::Ends;

/// Places that a lane looks at in a row, before packets have their turn: about 50 us.
const ROW: usize = 256;
/// How often records are taken while lanes look for more.
const GLANCE: Duration = Duration::from_millis(1);

/// Which connections are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionFilter {
    /// In one of these states; in all but TIME-WAIT without one.
    pub states: Vec<State>,
    /// With this address of ours.
    pub local: Option<IpAddr>,
    /// With this port of ours.
    pub local_port: Option<u16>,
    /// With this peer.
    pub remote: Option<IpAddr>,
    /// With this port of the peer's.
    pub remote_port: Option<u16>,
    /// On this lane.
    pub lane: Option<LaneId>,
    /// Of this shard.
    pub shard: Option<ShardId>,
}

/// A connection as it was when its lane came by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionRecord {
    /// Our end.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
    /// The lane that had it.
    pub lane: LaneId,
    /// The shard that owns it.
    pub shard: ShardId,
    /// The state.
    pub state: State,
    /// What the protocol knows; nothing of a half-open connection and of one in TIME-WAIT.
    pub info: Option<Info>,
    /// How long nothing has gone either way.
    pub idle: Duration,
}

/// The connections that were found.
#[derive(Clone, Debug, Default)]
pub struct ConnectionList {
    /// As many as were wanted at most, in no order. One that moved meanwhile is there once or not at all.
    pub records: Vec<ConnectionRecord>,
    /// How many there are that the filter lets pass.
    pub matched: usize,
    /// Lanes that did not answer in time.
    pub silent: usize,
}

impl ConnectionFilter {
    fn admits(&self, record: &ConnectionRecord) -> bool {
        let is_state = match self.states.as_slice() {
            [] => record.state != State::TimeWait,
            states => states.contains(&record.state),
        };
        let is = |wanted: Option<IpAddr>, end: SocketAddr| wanted.is_none_or(|ip| ip == end.ip());
        let is_port = |wanted: Option<u16>, end: SocketAddr| wanted.is_none_or(|p| p == end.port());
        is_state
            && is(self.local, record.local)
            && is_port(self.local_port, record.local)
            && is(self.remote, record.remote)
            && is_port(self.remote_port, record.remote)
            && self.lane.is_none_or(|lane| lane == record.lane)
    }
}

/// A request to all lanes.
#[derive(Debug)]
pub(crate) struct Inspection {
    filter: ConnectionFilter,
    /// Records wanted at most.
    most: usize,
    taken: AtomicUsize,
    findings: Mutex<Findings>,
    has_changed: Condvar,
    /// Nobody waits for it any more.
    is_over: AtomicBool,
}

#[derive(Debug, Default)]
struct Findings {
    list: ConnectionList,
    /// Lanes that have looked at all they have.
    done: usize,
}

impl Inspection {
    pub(crate) fn new(filter: ConnectionFilter, most: usize) -> Inspection {
        Inspection {
            filter,
            most,
            taken: AtomicUsize::new(0),
            findings: Mutex::default(),
            has_changed: Condvar::new(),
            is_over: AtomicBool::new(false),
        }
    }

    /// Waits until so many lanes have answered, but no longer than `timeout`.
    pub(crate) fn wait(&self, lanes: usize, timeout: Duration) -> ConnectionList {
        let end = Instant::now() + timeout;
        let mut findings = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
        while findings.done < lanes {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.has_changed.wait_timeout(findings, left);
            findings = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        self.is_over.store(true, Ordering::Relaxed);
        let silent = lanes - findings.done;
        let mut list = std::mem::take(&mut findings.list);
        // A connection that moved behind one lane's look and before another's was seen by both.
        list.records.sort_by_key(|record| (record.remote, record.local));
        let before = list.records.len();
        list.records.dedup_by_key(|record| (record.remote, record.local));
        list.matched -= before - list.records.len();
        ConnectionList { silent, ..list }
    }
}

impl Inspection {
    /// Calls `each` with records as lanes come by them, until so many lanes have answered, but no longer than `timeout`. Returns how
    /// many have not.
    pub(crate) fn drain(
        &self,
        lanes: usize,
        timeout: Duration,
        mut each: impl FnMut(ConnectionRecord),
    ) -> usize {
        let end = Instant::now() + timeout;
        let mut findings = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let (records, done) = (std::mem::take(&mut findings.list.records), findings.done);
            let left = end.saturating_duration_since(Instant::now());
            let is_last = done >= lanes || left.is_zero();
            if is_last {
                self.is_over.store(true, Ordering::Relaxed);
            }
            // Lanes need the lock to go on.
            drop(findings);
            records.into_iter().for_each(&mut each);
            if is_last {
                return lanes.saturating_sub(done);
            }
            let findings_again = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
            let waited = self.has_changed.wait_timeout(findings_again, left.min(GLANCE));
            findings = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// A lane's part in an inspection.
#[derive(Debug)]
pub(crate) struct Visit {
    inspection: Arc<Inspection>,
    /// Where to go on: a shard, and a place in it.
    at: (u16, usize),
}

impl Visit {
    pub(crate) fn new(inspection: Arc<Inspection>) -> Visit {
        Visit { inspection, at: (0, 0) }
    }

    /// Looks at a row of places; returns whether that were all.
    pub(crate) fn go_on<S: Send + 'static>(
        &mut self,
        lane: LaneId,
        shards: &mut ShardSet,
        now: Time,
    ) -> bool {
        let Inspection { filter, most, taken, findings, has_changed, is_over } = &*self.inspection;
        if is_over.load(Ordering::Relaxed) {
            return true;
        }
        let (mut left, mut records, mut matched) = (ROW, Vec::new(), 0);
        let mut note = |record: ConnectionRecord| {
            if filter.admits(&record) {
                matched += 1;
                // Relaxed: a count, which publishes nothing.
                if taken.fetch_add(1, Ordering::Relaxed) < *most {
                    records.push(record);
                }
            }
        };
        let is_wanted = |shard: ShardId| filter.shard.is_none_or(|wanted| wanted == shard);
        let next = |shards: &mut ShardSet, from: u16| {
            shards.looked_after().filter(|id| id.0 >= from && is_wanted(*id)).min()
        };
        let mut is_done = false;
        while left > 0 {
            let Some(id) = next(shards, self.at.0) else {
                is_done = true;
                break;
            };
            if id.0 != self.at.0 {
                self.at = (id.0, 0);
            }
            match shards.enter(id) {
                Entry::Entered => {}
                Entry::Elsewhere => break,
                Entry::Poisoned => {
                    self.at = (id.0 + 1, 0);
                    continue;
                }
            }
            let Some(shard) = shards.get_mut(id) else { break };
            let (_, connections) = shard.split::<Connections<S>>();
            let row = left.min(connections.places() - self.at.1.min(connections.places()));
            connections.look(self.at.1, row, |key, state, info, active| {
                let Ends { local, remote } = Ends::of(key);
                let idle = active.map_or(Duration::ZERO, |active| now.since(active));
                note(ConnectionRecord { local, remote, lane, shard: id, state, info, idle });
            });
            left -= row;
            self.at.1 += row;
            if self.at.1 >= connections.places() {
                self.at = (id.0 + 1, 0);
            }
            if shards.is_joint() {
                shards.leave();
            }
        }
        let mut guard = findings.lock().unwrap_or_else(PoisonError::into_inner);
        guard.list.records.append(&mut records);
        guard.list.matched += matched;
        guard.done += usize::from(is_done);
        drop(guard);
        if is_done {
            has_changed.notify_all();
        }
        is_done
    }
}
