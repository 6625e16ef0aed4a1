//! The differences between the configuration of a run and another one, by key: what a reload changes, and what it cannot change.

mod items;

use std::fmt;

use rheostat_settings::declared::{Form, Setting};
use rheostat_settings::given::GivenValue;

use crate::in_place::InPlace;
use crate::load::Config;
use crate::reference::Reference;

/// A value that is not written, where its key has no default.
const NONE: &str = "none";
/// The longest list, in bytes, that is shown as a whole.
const LONGEST_LIST: usize = 60;

/// A key that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The key with its sections; an item of a list has its name in brackets, such as `route[10.0.0.0/8].via`.
    pub key: String,
    /// How it differs.
    pub change: Change,
    /// The same key without brackets.
    plain: String,
    /// The same key as a report of mistakes has it, with the places of items in the new file; in the old one, where it has none.
    place: String,
}

/// How a key differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It has another value.
    Value {
        /// The old one.
        from: String,
        /// The new one.
        to: String,
    },
    /// It is a list with other items.
    Items {
        /// Items that are new.
        added: usize,
        /// Items that are gone.
        removed: usize,
        /// Items that are elsewhere among those that stay.
        moved: usize,
    },
}

/// What differs between two configurations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// What a running instance can change.
    pub changes: Vec<Difference>,
    /// What it cannot change, each with the reason, a clause whose subject is the key.
    pub fixed: Vec<(Difference, &'static str)>,
    /// What flags of the command line hide.
    pub hidden: Vec<Difference>,
}

impl Config {
    /// What differs in `next`, which was loaded with the same flags; `reference` has the defaults of keys.
    pub fn compare(&self, next: &Config, reference: &Reference) -> Comparison {
        let mut differences = Vec::new();
        let (old, new) = (self.given(), next.given());
        for section in reference.sections() {
            let at = Place::of_section(section.key);
            let (old, new) = (old.get(section.key), new.get(section.key));
            compare(&at, old, new, Some(section), &mut differences);
        }
        let mut comparison = Comparison::default();
        for difference in differences {
            let is_hidden = [self, next].iter().any(|config| config.hides(&difference.place));
            match InPlace::of(&difference.plain) {
                _ if is_hidden => comparison.hidden.push(difference),
                Some(InPlace::Yes) => comparison.changes.push(difference),
                Some(InPlace::No(reason)) => comparison.fixed.push((difference, reason)),
                None => comparison.fixed.push((difference, "is of a section that does not exist")),
            }
        }
        comparison
    }

    fn hides(&self, place: &str) -> bool {
        self.hidden().iter().any(|hidden| {
            let rest = place.strip_prefix(hidden.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })
    }
}

impl Comparison {
    /// Whether the two are the same, as far as flags do not hide it.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.fixed.is_empty()
    }
}

/// A key in its three spellings.
#[derive(Clone)]
struct Place {
    shown: String,
    plain: String,
    place: String,
}

impl Place {
    fn of_section(key: &str) -> Place {
        Place { shown: key.to_owned(), plain: key.to_owned(), place: key.to_owned() }
    }

    fn key(&self, key: &str) -> Place {
        let with = |of: &str| format!("{of}.{key}");
        Place { shown: with(&self.shown), plain: with(&self.plain), place: with(&self.place) }
    }

    fn item(&self, name: &str, index: usize) -> Place {
        Place {
            shown: format!("{}[{name}]", self.shown),
            plain: self.plain.clone(),
            place: format!("{}[{index}]", self.place),
        }
    }

    fn difference(&self, change: Change) -> Difference {
        let Place { shown, plain, place } = self.clone();
        Difference { key: shown, change, plain, place }
    }
}

/// Notes what differs at a key, which is declared as `setting` if that is known.
fn compare(
    at: &Place,
    old: Option<&GivenValue>,
    new: Option<&GivenValue>,
    setting: Option<&Setting>,
    differences: &mut Vec<Difference>,
) {
    if old == new {
        return;
    }
    let is = |form| setting.is_some_and(|setting| setting.form == form);
    let of_tables = |value: Option<&GivenValue>| match value {
        Some(GivenValue::List(items)) => {
            !items.is_empty() && items.iter().all(|item| matches!(item, GivenValue::Table(_)))
        }
        _ => false,
    };
    let is_table = |value: Option<&GivenValue>| matches!(value, Some(GivenValue::Table(_)));
    if is(Form::Tables) || of_tables(old) || of_tables(new) {
        items::compare_tables(at, list(old), list(new), setting, differences);
    } else if is(Form::Table) || is_table(old) || is_table(new) {
        for key in keys_of(old, new) {
            let known = setting.and_then(|setting| setting.keys.iter().find(|own| own.key == key));
            let value =
                |table: Option<&'_ GivenValue>| table.and_then(|table| table.get(&key)).cloned();
            compare(&at.key(&key), value(old).as_ref(), value(new).as_ref(), known, differences);
        }
    } else {
        compare_values(at, old, new, setting, differences);
    }
}

fn compare_values(
    at: &Place,
    old: Option<&GivenValue>,
    new: Option<&GivenValue>,
    setting: Option<&Setting>,
    differences: &mut Vec<Difference>,
) {
    let default = setting.and_then(Setting::shown_default);
    let (from, to) = (old.map(ToString::to_string), new.map(ToString::to_string));
    let or_default = |value: &Option<String>| value.clone().or(default.map(str::to_owned));
    if or_default(&from) == or_default(&to) {
        return;
    }
    let is_long =
        |value: &Option<String>| value.as_ref().is_some_and(|text| text.len() > LONGEST_LIST);
    if (is_long(&from) || is_long(&to)) && matches!(old.or(new), Some(GivenValue::List(_))) {
        return differences.extend(items::compare_plain(at, list(old), list(new)));
    }
    let shown = |value: Option<String>| {
        value.unwrap_or_else(|| {
            default.map_or_else(|| NONE.to_owned(), |text| format!("{text} (default)"))
        })
    };
    differences.push(at.difference(Change::Value { from: shown(from), to: shown(to) }));
}

/// The items of a list; none where it is not written.
fn list(value: Option<&GivenValue>) -> &[GivenValue] {
    match value {
        Some(GivenValue::List(items)) => items,
        _ => &[],
    }
}

/// The keys of either table, in order.
fn keys_of(old: Option<&GivenValue>, new: Option<&GivenValue>) -> Vec<String> {
    let tables = [old, new].into_iter().flatten();
    let keys = tables.flat_map(|table| match table {
        GivenValue::Table(entries) => entries.keys().cloned().collect(),
        _ => Vec::new(),
    });
    let mut keys: Vec<_> = keys.collect();
    keys.sort();
    keys.dedup();
    keys
}

/// The difference in words: `firewall.timeouts.udp: 30s -> 60s`, or `firewall: 3 rules added, 1 removed`.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.key.strip_prefix("function.").unwrap_or(&self.key);
        let (added, removed, moved) = match &self.change {
            Change::Value { from, to } => return write!(f, "{key}: {from} -> {to}"),
            Change::Items { added, removed, moved } => (*added, *removed, *moved),
        };
        let noun = match key.rsplit_once('.') {
            Some((of, noun)) => {
                write!(f, "{of}: ")?;
                noun
            }
            None => key,
        };
        // The noun stands with the first count.
        let counts = [(added, "added"), (removed, "removed"), (moved, "moved")];
        for (index, (count, done)) in counts.iter().filter(|(count, _)| *count > 0).enumerate() {
            match (index, count) {
                (0, 1) => write!(f, "1 {noun} {done}")?,
                (0, _) => write!(f, "{count} {} {done}", plural(noun))?,
                _ => write!(f, ", {count} {done}")?,
            }
        }
        Ok(())
    }
}

/// The plural of a key that names one item.
fn plural(noun: &str) -> String {
    match noun {
        // Keys that are lists of values are plurals already.
        _ if noun.ends_with('s') && !noun.ends_with("ss") => noun.to_owned(),
        _ if noun.ends_with("ss") => format!("{noun}es"),
        _ => format!("{noun}s"),
    }
}

#[cfg(test)]
mod tests;
