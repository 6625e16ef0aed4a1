//! Which keys a running instance can change, and why it cannot change the others.

/// Whether a running instance can change a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InPlace {
    /// A reload changes it.
    Yes,
    /// A new run is needed, for this reason: a clause whose subject is the key.
    No(&'static str),
}

use InPlace::{No, Yes};

const DEVICES: &str = "is set when devices are opened";
const MEMORY: &str = "is part of the memory that a run has from its start";
const LANES: &str = "is set when workers and lanes are started";
const PLACING: &str = "decides where packets and flows are placed from the start";
const ENTERED: &str = "is entered before privileges are dropped";
const SERVICE: &str = "is set when the service is made";

/// Every section, and keys that differ from the rest of theirs: of the entries that a key starts with, the longest counts.
const KEYS: &[(&str, InPlace)] = &[
    ("run", No(PLACING)),
    ("run.duration", Yes),
    ("run.user", No(ENTERED)),
    ("run.group", No(ENTERED)),
    ("workers", No(LANES)),
    ("pool", No(MEMORY)),
    ("device", No(DEVICES)),
    ("route", Yes),
    ("neighbour", Yes),
    ("network", Yes),
    ("network.follow_kernel", No("needs a socket that is opened before privileges are dropped")),
    ("network.announce", No("has its effect at the start alone")),
    ("serve", No(SERVICE)),
    ("serve.drain_time", Yes),
    ("chain", No("is compiled into the code path of lanes, with the layout of their flow tables")),
    ("function", Yes),
    ("state", No(MEMORY)),
    ("steering", No(PLACING)),
    ("balance", Yes),
    ("class", No("is what lanes count packets by from the start")),
    ("slo", No("is what lanes measure latencies by from the start")),
    ("polling", No(LANES)),
    ("observe", Yes),
    ("observe.control", No(ENTERED)),
    ("observe.http", No(ENTERED)),
    ("observe.http_names", No(ENTERED)),
];

impl InPlace {
    /// Whether a running instance can change a key, given with its sections and without places in lists, such as `route.via`;
    /// `None` for a section that does not exist.
    pub fn of(key: &str) -> Option<InPlace> {
        let leads = |entry: &str| {
            key.strip_prefix(entry).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let entries = KEYS.iter().filter(|(entry, _)| leads(entry));
        entries.max_by_key(|(entry, _)| entry.len()).map(|(_, in_place)| *in_place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Reference, Registry};

    #[test]
    fn every_section_is_declared_and_every_entry_names_a_key() {
        let reference = Reference::of(&Registry::new());
        let entries = reference.entries();
        for entry in &entries {
            assert!(InPlace::of(&entry.name).is_some(), "{} is not declared", entry.name);
        }
        for (key, _) in KEYS {
            assert!(entries.iter().any(|entry| entry.name == *key), "{key} is no key");
        }
    }

    #[test]
    fn the_longest_entry_counts() {
        assert_eq!(InPlace::of("network.errors_per_second"), Some(Yes));
        assert!(matches!(InPlace::of("network.follow_kernel"), Some(No(_))));
        assert_eq!(InPlace::of("networks"), None);
    }
}
