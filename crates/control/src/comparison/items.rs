//! Lists: which items are new, which are gone, and which have only moved.

use std::collections::{HashMap, HashSet};

use rheostat_settings::declared::Setting;
use rheostat_settings::given::GivenValue;

use super::{Change, Difference, Place, compare};

/// Notes what differs between two lists of tables. Tables that have the same name on both sides are one, whose keys are compared;
/// the others are the same only if all their values are.
pub(super) fn compare_tables(
    at: &Place,
    old: &[GivenValue],
    new: &[GivenValue],
    setting: Option<&Setting>,
    differences: &mut Vec<Difference>,
) {
    let [old_names, new_names] = names(old, new, setting);
    let pairs = pair(&old_names, &new_names);
    differences.extend(count(at, old.len(), new.len(), &pairs));
    let known =
        |key: &str| setting.and_then(|setting| setting.keys.iter().find(|own| own.key == key));
    for (from, to) in pairs {
        let (GivenValue::Table(before), GivenValue::Table(after)) = (&old[from], &new[to]) else {
            continue;
        };
        let mut keys: Vec<_> = before.keys().chain(after.keys()).collect();
        keys.sort();
        keys.dedup();
        let at = at.item(&new_names[to], to);
        for key in keys {
            compare(&at.key(key), before.get(key), after.get(key), known(key), differences);
        }
    }
}

/// What differs between two lists of values.
pub(super) fn compare_plain(
    at: &Place,
    old: &[GivenValue],
    new: &[GivenValue],
) -> Option<Difference> {
    let names = |items: &[GivenValue]| items.iter().map(ToString::to_string).collect::<Vec<_>>();
    count(at, old.len(), new.len(), &pair(&names(old), &names(new)))
}

fn count(at: &Place, old: usize, new: usize, pairs: &[(usize, usize)]) -> Option<Difference> {
    let in_order = longest_rising(pairs.iter().map(|(from, _)| *from));
    let (added, removed, moved) = (new - pairs.len(), old - pairs.len(), pairs.len() - in_order);
    let differs = added + removed + moved > 0;
    differs.then(|| at.difference(Change::Items { added, removed, moved }))
}

/// What the items of two lists are recognised by: their name, or else the value that each must have, where no two of a list share it;
/// otherwise all of their values. A word of a few is no such value: rules that deny have that in common.
fn names(old: &[GivenValue], new: &[GivenValue], setting: Option<&Setting>) -> [Vec<String>; 2] {
    let keys = setting.map_or(&[][..], |setting| &setting.keys);
    let required = keys.iter().find(|key| key.is_required && key.kind != "word");
    let tells_apart = |key: &&str| [old, new].iter().all(|items| are_named_by(items, key));
    let key = [Some("name"), required.map(|key| key.key)];
    let key = key.into_iter().flatten().find(tells_apart);
    let name = |item: &GivenValue| match key.and_then(|key| item.get(key)) {
        Some(name) => name.to_string(),
        None => item.to_string(),
    };
    [old, new].map(|items| items.iter().map(name).collect())
}

/// Whether each item has another value of this key.
fn are_named_by(items: &[GivenValue], key: &str) -> bool {
    let mut names = HashSet::new();
    items.iter().all(|item| item.get(key).is_some_and(|name| names.insert(name.to_string())))
}

/// The items that are in both lists, as places in the old and the new one, in the order of the new one.
fn pair(old: &[String], new: &[String]) -> Vec<(usize, usize)> {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (place, name) in old.iter().enumerate().rev() {
        places.entry(name).or_default().push(place);
    }
    let found = new.iter().enumerate();
    found.filter_map(|(to, name)| Some((places.get_mut(name.as_str())?.pop()?, to))).collect()
}

/// The length of the longest rising part of a sequence, in time n log n: the items that have not moved.
fn longest_rising(sequence: impl Iterator<Item = usize>) -> usize {
    // By length, the least end of a rising part.
    let mut ends: Vec<usize> = Vec::new();
    for value in sequence {
        let at = ends.partition_point(|end| *end < value);
        match ends.get_mut(at) {
            Some(end) => *end = value,
            None => ends.push(value),
        }
    }
    ends.len()
}
