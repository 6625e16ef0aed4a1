//! Events of a run: lane changes, moves, link losses, backends, reloads.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

/// Events kept; the oldest is forgotten first.
const KEPT: usize = 200;
/// Characters of a text at most.
const LONGEST: usize = 400;

/// The last events of a run. Any thread may add some.
#[derive(Debug, Default)]
pub struct EventLog(Mutex<KeptEvents>);

#[derive(Debug, Default)]
struct KeptEvents {
    next: u64,
    events: VecDeque<Event>,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// Its number, from 0.
    pub id: u64,
    /// Its time, in milliseconds since 1970.
    pub unix_ms: u64,
    /// Its subject.
    pub kind: EventKind,
    /// A sentence for people, without a full stop; 400 characters at most.
    pub text: String,
}

/// The subject of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// The start of the run.
    Start,
    /// A lane was parked, or took up work.
    Lane,
    /// Shards moved.
    Move,
    /// A link was lost or came back.
    Link,
    /// A backend of a load balancer changed its health.
    Backend,
    /// Packets were dropped for a reason for the first time.
    Drop,
    /// The configuration was reloaded.
    Reload,
}

impl EventLog {
    /// Appends an event. A longer text is cut.
    pub fn add(&self, at: SystemTime, kind: EventKind, text: impl Into<String>) {
        let unix_ms = at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
        let mut text: String = text.into();
        if let Some((end, _)) = text.char_indices().nth(LONGEST) {
            text.truncate(end);
        }
        let mut kept = self.kept();
        let id = kept.next;
        kept.next += 1;
        if kept.events.len() == KEPT {
            kept.events.pop_front();
        }
        kept.events.push_back(Event { id, unix_ms, kind, text });
    }

    /// The kept events from this number on, the oldest first.
    pub fn since(&self, id: u64) -> Vec<Event> {
        self.kept().events.iter().filter(|event| event.id >= id).cloned().collect()
    }

    /// The number of the next event.
    pub fn next(&self) -> u64 {
        self.kept().next
    }

    fn kept(&self) -> MutexGuard<'_, KeptEvents> {
        // Nothing panics while it has the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
