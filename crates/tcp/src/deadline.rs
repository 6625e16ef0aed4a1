//! When something is due, in the bytes of a time.

use rheostat_base::Time;

/// When something is due, or that nothing is. It takes 8 bytes, where an `Option` takes 16, and none is the latest of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Deadline(Time);

impl Deadline {
    pub(crate) const NONE: Deadline = Deadline(Time::NEVER);

    pub(crate) const fn at(time: Time) -> Deadline {
        Deadline(time)
    }

    pub(crate) fn is_none(self) -> bool {
        self == Deadline::NONE
    }

    /// Whether something is due at `now`.
    pub(crate) fn has_come(self, now: Time) -> bool {
        !self.is_none() && self.0 <= now
    }

    pub(crate) fn time(self) -> Option<Time> {
        (!self.is_none()).then_some(self.0)
    }
}

impl Default for Deadline {
    fn default() -> Deadline {
        Deadline::NONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_is_never_due_and_later_than_all() {
        let some = Deadline::at(Time::from_secs(1));
        assert!(!some.has_come(Time::from_millis(999)) && some.has_come(Time::from_secs(1)));
        assert!(!Deadline::NONE.has_come(Time::NEVER));
        assert_eq!(some.min(Deadline::NONE).time(), Some(Time::from_secs(1)));
        assert_eq!(Deadline::default().time(), None);
    }
}
