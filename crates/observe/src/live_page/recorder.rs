//! Records a run second by second: its last snapshot, the history of its figures, and its events.

use std::collections::VecDeque;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::changes;
use super::{EventKind, EventLog, FlowSamples, Update};
use crate::openmetrics::Snapshot;

/// Intervals of the history.
pub const KEPT: usize = 300;

/// The recorder of a run. Its owner calls [`Recorder::note`] once a second; the memory is bounded by [`KEPT`] bytes and 24 more for
/// each lane.
#[derive(Debug, Default)]
pub struct Recorder {
    last: Option<Snapshot>,
    update: Update,
    history: History,
    /// The sampled flows; the owner adds samples while somebody looks.
    pub flows: FlowSamples,
    /// The number of the first event that no update has had.
    seen: u64,
}

/// Figures of the last intervals, the oldest first.
#[derive(Clone, Debug, Default, Serialize)]
struct History {
    /// By lane, its loads in per cent.
    loads: Vec<VecDeque<u8>>,
    received: VecDeque<f32>,
    sent: VecDeque<f32>,
    dropped: VecDeque<f32>,
    imbalance: VecDeque<Option<f32>>,
}

/// Everything that a new reader needs.
#[derive(Serialize)]
struct State<'r> {
    version: &'r str,
    seconds_kept: usize,
    history: &'r History,
    update: Update,
}

impl Recorder {
    /// Notes the run as it is at `at`: compares it with the snapshot before, and appends events to `log`.
    pub fn note(&mut self, at: SystemTime, now: Snapshot, log: &EventLog) {
        let unix_ms = at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
        match &self.last {
            None => {
                log.add(at, EventKind::Start, format!("rheo {} runs", now.version));
                self.update = Update::between(&now, &now, unix_ms);
            }
            Some(last) => {
                for (kind, text) in changes::between(last, &now) {
                    log.add(at, kind, text);
                }
                self.update = Update::between(last, &now, unix_ms);
                self.history.push(&self.update);
            }
        }
        let lane_of = |shard: rheostat_base::ShardId| Some(now.owners.get(shard.index())?.0);
        self.update.top_flows = self.flows.top(self.update.received, lane_of);
        self.update.sampled = self.flows.packets();
        self.update.events = log.since(self.seen);
        self.seen = self.update.events.last().map_or(self.seen, |event| event.id + 1);
        self.last = Some(now);
    }

    /// Packets that arrived in the last interval, per second.
    pub fn rate(&self) -> f64 {
        self.update.received
    }

    /// The last interval as JSON, in one line.
    pub fn update(&self) -> String {
        serde_json::to_string(&self.update).expect("numbers and names are always JSON")
    }

    /// The history, the last interval and all kept events as JSON, in one line.
    pub fn state(&self, log: &EventLog) -> String {
        // Later ones come with the next update.
        let mut events = log.since(0);
        events.retain(|event| event.id < self.seen);
        let state = State {
            version: self.last.as_ref().map_or("", |last| last.version),
            seconds_kept: KEPT,
            history: &self.history,
            update: Update { events, ..self.update.clone() },
        };
        serde_json::to_string(&state).expect("numbers and names are always JSON")
    }
}

impl History {
    fn push(&mut self, update: &Update) {
        self.loads.resize_with(update.lanes.len(), VecDeque::new);
        for (loads, lane) in self.loads.iter_mut().zip(&update.lanes) {
            push(loads, (lane.load * 100.0).round() as u8);
        }
        push(&mut self.received, update.received as f32);
        push(&mut self.sent, update.sent as f32);
        push(&mut self.dropped, update.dropped as f32);
        push(&mut self.imbalance, update.imbalance.map(|times| times as f32));
    }
}

fn push<T>(kept: &mut VecDeque<T>, next: T) {
    if kept.len() == KEPT {
        kept.pop_front();
    }
    kept.push_back(next);
}
