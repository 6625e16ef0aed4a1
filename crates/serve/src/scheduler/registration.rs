//! Schedulers by name.

use std::fmt;

use rheostat_tcp::sched::SchedulerError;

use super::{AvailableScheduler, SchedulerPlan};

/// A scheduler that configurations and commands can name.
#[derive(Clone, Copy)]
pub struct SchedulerRegistration {
    /// Its name in a configuration, or the form of its names, such as `dispatcher-D:A`.
    pub name: &'static str,
    /// Which workers do what, in a few words for `--help`; empty if its author gives none.
    pub summary: &'static str,
    names: Names,
}

#[derive(Clone, Copy)]
enum Names {
    /// The name alone.
    One(SchedulerPlan),
    /// All names of the form.
    OfForm(ReadName),
}

/// Reads a name; `None` if it has another form.
type ReadName = fn(&str) -> Option<Result<AvailableScheduler, SchedulerError>>;

impl SchedulerRegistration {
    /// A scheduler with this plan.
    pub const fn new(name: &'static str, plan: SchedulerPlan) -> SchedulerRegistration {
        SchedulerRegistration { name, summary: "", names: Names::One(plan) }
    }

    /// Schedulers whose names have numbers in them, which `read` reads.
    pub(super) const fn of_form(form: &'static str, read: ReadName) -> SchedulerRegistration {
        SchedulerRegistration { name: form, summary: "", names: Names::OfForm(read) }
    }

    /// The same with a summary.
    #[must_use]
    pub const fn summarised(self, summary: &'static str) -> SchedulerRegistration {
        SchedulerRegistration { name: self.name, summary, names: self.names }
    }

    /// The scheduler of this name among those that are registered; `None` if there is none. A name goes before a form.
    ///
    /// # Errors
    /// [`SchedulerError`] if the name has a form that is registered, and does not parse.
    pub fn named(
        registered: &[SchedulerRegistration],
        name: &str,
    ) -> Option<Result<AvailableScheduler, SchedulerError>> {
        let by_name = |known: &SchedulerRegistration| match known.names {
            Names::One(plan) if known.name == name => Some(AvailableScheduler::new(name, plan)),
            _ => None,
        };
        let by_form = |known: &SchedulerRegistration| match known.names {
            Names::One(_) => None,
            Names::OfForm(read) => read(name),
        };
        let found = registered.iter().find_map(by_name).map(Ok);
        found.or_else(|| registered.iter().find_map(by_form))
    }
}

impl fmt::Debug for SchedulerRegistration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SchedulerRegistration").field(&self.name).finish()
    }
}
