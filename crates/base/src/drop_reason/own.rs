//! Drop reasons that functions add to those of rheostat.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use thiserror::Error;

use super::{DropReason, SHIPPED, SLOTS};

/// The registered reasons, in the order of their numbers.
static REGISTERED: [OnceLock<&OwnDropReason>; SLOTS.len()] =
    [const { OnceLock::new() }; SLOTS.len()];

/// How many of them there are; locked by registrations, so that each gets a number of its own.
static COUNT: Mutex<usize> = Mutex::new(0);

/// A drop reason that a function adds: a static with a name and a sentence for people.
///
/// Packets dropped for it are counted and shown like those dropped for rheostat's own reasons.
///
/// ```
/// use rheostat_base::OwnDropReason;
///
/// static TOO_MANY: OwnDropReason =
///     OwnDropReason::new("synlimit.too_many", "The source has opened too many connections.");
///
/// let reason = TOO_MANY.reason();
/// assert_eq!(reason.name(), "synlimit.too_many");
/// ```
#[derive(Debug)]
pub struct OwnDropReason {
    name: &'static str,
    meaning: &'static str,
    /// The number of the reason once it is registered; 0, a number of rheostat's, until then.
    number: AtomicU8,
}

/// Why a function's drop reason was not registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DropReasonError {
    /// Another reason has the name.
    #[error("two drop reasons have the name `{0}`; rename one of them")]
    Taken(&'static str),
    /// All numbers for functions' own reasons are in use.
    #[error(
        "no room for the drop reason `{name}`: functions have added {limit}, as many as there may be"
    )]
    Full {
        /// The name of the reason.
        name: &'static str,
        /// How many there may be.
        limit: usize,
    },
}

impl OwnDropReason {
    /// A reason with a name of the form `function.reason`, and its meaning in a sentence or two for people.
    ///
    /// # Panics
    /// If the name has no dot, or anything but `a-z`, `0-9`, `_` and dots: an error of the compiler where the value is a
    /// static.
    pub const fn new(name: &'static str, meaning: &'static str) -> OwnDropReason {
        assert!(is_name(name.as_bytes()), "a drop reason is named like `function.reason`");
        OwnDropReason { name, meaning, number: AtomicU8::new(0) }
    }

    /// The name under which the reason appears in summaries and metrics.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The meaning of the reason, for people.
    pub const fn meaning(&self) -> &'static str {
        self.meaning
    }

    /// Gives the reason its number, once in the life of the process. Programs do so when they start, to report an error
    /// there.
    ///
    /// # Errors
    /// [`DropReasonError`] if another reason has the name, or 64 are registered.
    pub fn register(&'static self) -> Result<DropReason, DropReasonError> {
        let mut count = COUNT.lock().unwrap_or_else(PoisonError::into_inner);
        let registered = REGISTERED[..*count].iter().filter_map(OnceLock::get);
        match registered.zip(SLOTS).find(|(known, _)| known.name == self.name) {
            Some((known, slot)) if std::ptr::eq(*known, self) => return Ok(*slot),
            Some(_) => return Err(DropReasonError::Taken(self.name)),
            None => {}
        }
        let (Some(slot), Some(entry)) = (SLOTS.get(*count), REGISTERED.get(*count)) else {
            return Err(DropReasonError::Full { name: self.name, limit: SLOTS.len() });
        };
        // Empty: entries are filled in order, under the lock.
        let _ = entry.set(self);
        *count += 1;
        // Relaxed: a reader needs the number only. A name is read through its `OnceLock`.
        self.number.store(*slot as u8, Ordering::Relaxed);
        Ok(*slot)
    }

    /// The reason, to drop a packet for: one load. Registers the reason if the program has not;
    /// [`DropReason::Unregistered`] if that fails.
    #[inline]
    pub fn reason(&'static self) -> DropReason {
        let number = usize::from(self.number.load(Ordering::Relaxed));
        match number.checked_sub(SHIPPED.len()).and_then(|slot| SLOTS.get(slot)) {
            Some(reason) => *reason,
            None => self.register_late(),
        }
    }

    #[cold]
    fn register_late(&'static self) -> DropReason {
        self.register().unwrap_or(DropReason::Unregistered)
    }
}

/// How many reasons are registered.
pub(super) fn count() -> usize {
    *COUNT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The registered reason with this number.
pub(super) fn of(reason: DropReason) -> Option<&'static OwnDropReason> {
    let slot = (reason as usize).checked_sub(SHIPPED.len())?;
    REGISTERED.get(slot)?.get().copied()
}

/// Whether the name is words of `a-z`, `0-9` and `_`, at least two, with a dot between them.
const fn is_name(name: &[u8]) -> bool {
    let (mut at, mut dots, mut word) = (0, 0, 0);
    while at < name.len() {
        match name[at] {
            b'.' if word > 0 => (dots, word) = (dots + 1, 0),
            b'a'..=b'z' | b'0'..=b'9' | b'_' => word += 1,
            _ => return false,
        }
        at += 1;
    }
    dots > 0 && word > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DropCounters;

    // The numbers are the process's: one test fills them, and knows no other that registers any.
    #[test]
    fn reasons_get_numbers_until_all_are_in_use() {
        static FIRST: OwnDropReason = OwnDropReason::new("test.first", "The first one.");
        static SAME_NAME: OwnDropReason = OwnDropReason::new("test.first", "Another one.");
        assert_eq!(DropReason::named("test.first"), None);
        let reason = FIRST.reason();
        assert_eq!((reason.name(), reason.meaning()), ("test.first", "The first one."));
        assert_eq!(FIRST.register(), Ok(reason), "registered once");
        assert_eq!(DropReason::named("test.first"), Some(reason));
        assert_eq!(SAME_NAME.register(), Err(DropReasonError::Taken("test.first")));
        assert_eq!(SAME_NAME.reason(), DropReason::Unregistered);

        let counters = DropCounters::default();
        counters.add(FIRST.reason(), 3);
        assert_eq!((counters.get(reason), counters.total()), (3, 3));
        assert_eq!(counters.sample()[reason as usize], 3);

        let names: Vec<String> =
            (1..=SLOTS.len()).map(|number| format!("test.r{number}")).collect();
        let mut given: Vec<_> = names
            .iter()
            .map(|name| {
                let own = OwnDropReason::new(name.clone().leak(), "One of many.");
                Box::leak(Box::new(own)).register()
            })
            .collect();
        let last = given.pop().expect("one for each slot");
        let limit = SLOTS.len();
        assert!(
            matches!(last, Err(DropReasonError::Full { limit: 64, .. })),
            "{last:?}, of {limit}"
        );
        for (name, given) in names.iter().zip(&given) {
            assert_eq!(given.expect("a slot is free").name(), name);
        }
        assert_eq!(DropReason::all().count(), DropReason::COUNT);
        let all: std::collections::HashSet<_> = DropReason::all().map(DropReason::name).collect();
        assert_eq!(all.len(), DropReason::COUNT, "every name is distinct");
    }

    #[test]
    fn a_name_is_a_function_and_a_reason() {
        for good in ["synlimit.too_many", "a.b.c", "f4.x_1"] {
            assert!(is_name(good.as_bytes()), "{good}");
        }
        for bad in ["", "denied", ".x", "x.", "a..b", "Syn.limit", "a.b c", "a.ü"] {
            assert!(!is_name(bad.as_bytes()), "{bad}");
        }
    }
}
