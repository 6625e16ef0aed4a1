//! How the workers of a run poll: a policy with its settings.

use std::fmt;
use std::io;
use std::sync::Arc;

use rheostat_base::LaneId;

use super::PollPolicy;
use super::metronome::{Binding, MetronomeSettings, Mode};
use crate::crew::Crew;
use crate::worker::Shift;

/// How the workers of a run poll: a policy with its settings. Two of the same name and description are equal.
#[derive(Clone)]
pub struct Polling {
    name: &'static str,
    description: String,
    mode: Mode,
    never_sleeps: bool,
    workers: Workers,
}

/// How workers have lanes.
#[derive(Clone)]
enum Workers {
    /// Each has lanes of its own, and a policy that is made for their number.
    Bound(Arc<MakePolling>),
    /// All workers share all lanes by Metronome.
    Shared(MetronomeSettings),
}

type MakePolling = dyn Fn(usize) -> Box<dyn PollPolicy> + Send + Sync;

impl Polling {
    /// Workers with lanes of their own. `make` is called once per worker, with the number of its lanes. The policy is asked
    /// once per poll of a lane, by one virtual call, so it should decide in nanoseconds.
    pub fn new<P, M>(name: &'static str, make: M) -> Polling
    where
        P: PollPolicy + 'static,
        M: Fn(usize) -> P + Send + Sync + 'static,
    {
        let make = move |lanes| -> Box<dyn PollPolicy> { Box::new(make(lanes)) };
        let workers = Workers::Bound(Arc::new(make));
        Polling { name, description: name.into(), mode: Mode::Busy, never_sleeps: false, workers }
    }

    /// All workers share all lanes by Metronome.
    pub(super) fn shared(name: &'static str, settings: MetronomeSettings) -> Polling {
        let (workers, mode) = (Workers::Shared(settings), Mode::Metronome);
        Polling { name, description: name.into(), mode, never_sleeps: false, workers }
    }

    /// With its settings in words, behind the name.
    #[must_use]
    pub fn described(self, description: String) -> Polling {
        Polling { description, ..self }
    }

    /// With lanes that `rheo status` shows in this mode.
    #[must_use]
    pub fn in_mode(self, mode: Mode) -> Polling {
        Polling { mode, ..self }
    }

    /// By a policy that never sleeps: `rheo check` warns where the kernel would stop such a worker, and members of a pool poll
    /// on, too.
    #[must_use]
    pub fn without_sleep(self) -> Polling {
        Polling { never_sleeps: true, ..self }
    }

    /// The policy's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether workers never sleep.
    pub fn never_sleeps(&self) -> bool {
        self.never_sleeps
    }

    /// The settings of Metronome, where workers share lanes by it.
    pub fn metronome(&self) -> Option<&MetronomeSettings> {
        match &self.workers {
            Workers::Shared(settings) => Some(settings),
            Workers::Bound(_) => None,
        }
    }

    /// The mode that lanes are in at the start.
    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    /// Whether each lane has one worker: worker n has the lanes n, n + workers, and so on.
    pub fn binds_lanes(&self) -> bool {
        matches!(self.workers, Workers::Bound(_))
    }

    /// The work of a worker to which these lanes are bound, where lanes are; none if there are none.
    pub(crate) fn shift(&self, bound: Vec<LaneId>) -> Option<Shift> {
        match &self.workers {
            Workers::Shared(settings) => Some(Shift::Shared(*settings)),
            Workers::Bound(_) if bound.is_empty() => None,
            Workers::Bound(make) => {
                let policy = make(bound.len());
                Some(Shift::Bound(bound, policy))
            }
        }
    }

    /// The workers of a run by this policy, as others see them.
    pub(crate) fn crew(&self, workers: usize, lanes: usize) -> io::Result<Arc<Crew>> {
        match &self.workers {
            Workers::Bound(_) => Crew::bound(workers),
            Workers::Shared(settings) => {
                Crew::shared(workers, lanes, settings.binding == Binding::Random)
            }
        }
    }
}

impl PartialEq for Polling {
    fn eq(&self, other: &Polling) -> bool {
        (self.name, &self.description) == (other.name, &other.description)
    }
}

impl fmt::Display for Polling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.description)
    }
}

impl fmt::Debug for Polling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Polling").field(&self.description).finish()
    }
}
