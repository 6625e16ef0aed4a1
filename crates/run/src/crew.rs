//! The workers of a run, and which of them is woken by work for a lane.

use std::io;
use std::sync::Arc;

use rheostat_base::LaneId;
use rheostat_base::sync::attendance::Attendance;

use crate::notifier::EventNotifier;

/// The workers of a run, as seen by threads that bring work.
#[derive(Debug)]
pub(crate) struct Crew {
    /// One per worker.
    notifiers: Vec<EventNotifier>,
    division: Division,
}

/// Which workers run which lanes.
#[derive(Debug)]
enum Division {
    /// Lane n is worker (n mod workers)'s.
    Bound,
    /// Lanes are shared: by all workers, or by those that `Attendance` finds to watch them.
    Shared {
        attendance: Attendance,
        /// Whether any worker may run any lane.
        any: bool,
    },
}

impl Crew {
    /// `workers` workers that are awake; lane n is that of worker n mod `workers`.
    ///
    /// # Errors
    /// What the operating system said: the process has too many files open.
    pub(crate) fn bound(workers: usize) -> io::Result<Arc<Crew>> {
        Crew::new(workers, Division::Bound)
    }

    /// `workers` workers that are awake and share `lanes` lanes; with `any`, each may run any of them.
    ///
    /// # Errors
    /// As [`Crew::bound`].
    pub(crate) fn shared(workers: usize, lanes: usize, any: bool) -> io::Result<Arc<Crew>> {
        let attendance = Attendance::new(lanes, workers);
        Crew::new(workers, Division::Shared { attendance, any })
    }

    fn new(workers: usize, division: Division) -> io::Result<Arc<Crew>> {
        let notifiers = (0..workers).map(|_| EventNotifier::new()).collect::<io::Result<_>>()?;
        Ok(Arc::new(Crew { notifiers, division }))
    }

    /// How many workers there are.
    pub(crate) fn len(&self) -> usize {
        self.notifiers.len()
    }

    /// What worker `worker` sleeps on.
    pub(crate) fn notifier(&self, worker: usize) -> &EventNotifier {
        &self.notifiers[worker]
    }

    /// Which worker attends which lane, where workers share them.
    pub(crate) fn attendance(&self) -> Option<&Attendance> {
        match &self.division {
            Division::Bound => None,
            Division::Shared { attendance, .. } => Some(attendance),
        }
    }

    /// Wakes all workers that sleep.
    pub(crate) fn wake_all(&self) {
        self.notifiers.iter().for_each(|notifier| {
            notifier.wake();
        });
    }

    /// What brings of work for each of `lanes` lanes wake a worker by.
    pub(crate) fn lane_notifiers(self: &Arc<Crew>, lanes: usize) -> Vec<LaneNotifier> {
        (0..lanes)
            .map(|lane| LaneNotifier { lane: LaneId(lane as u16), crew: self.clone() })
            .collect()
    }
}

/// Wakes a worker that may run a lane. Belongs to the lane: a thread that brings work for it need not know which worker runs it.
#[derive(Clone, Debug)]
pub struct LaneNotifier {
    lane: LaneId,
    crew: Arc<Crew>,
}

impl LaneNotifier {
    /// Wakes one worker that may run the lane, unless one has it, comes back to it by itself within its short timeout, or
    /// is awake and looks. Call it after the work is where the lane's poll will look.
    #[inline]
    pub fn wake(&self) {
        let Crew { notifiers, division } = &*self.crew;
        let lane = self.lane.index();
        match division {
            Division::Bound => {
                notifiers[lane % notifiers.len()].wake();
            }
            // Where it is not known which worker may run the lane, all are woken.
            Division::Shared { attendance, any } => {
                attendance.call(lane, |worker| notifiers[worker].wake() && *any);
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Of the workers that say they sleep, those that do not any more once lane 1 has work.
    fn woken(crew: &Arc<Crew>, asleep: &[usize]) -> Vec<usize> {
        asleep.iter().for_each(|worker| crew.notifier(*worker).prepare_park());
        crew.lane_notifiers(3)[1].wake();
        asleep.iter().copied().filter(|worker| !crew.notifier(*worker).wake()).collect()
    }

    #[test]
    fn work_wakes_the_worker_that_a_lane_is_bound_to_and_no_other() {
        assert_eq!(woken(&Crew::bound(3).unwrap(), &[0, 2]), [0; 0], "the lane's worker is awake");
        assert_eq!(woken(&Crew::bound(1).unwrap(), &[0]), [0], "it runs all lanes");
    }

    #[test]
    fn work_for_an_unattended_lane_wakes_one_worker() {
        let crew = Crew::shared(3, 3, true).unwrap();
        assert_eq!(woken(&crew, &[0, 2]), [2]);
        let attendance = crew.attendance().unwrap();
        assert!(attendance.has_calls());
        attendance.attend(1);
        assert_eq!(woken(&crew, &[0, 2]), [0; 0], "a worker is about to poll the lane");
        attendance.leave(1);
        attendance.watch(1, 0);
        assert_eq!(woken(&crew, &[0, 2]), [0], "the one that watches the lane");
    }
}
