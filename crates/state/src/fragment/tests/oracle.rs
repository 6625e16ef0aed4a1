//! The oracle marks each unit of eight bytes that has come with the fragment that brought it.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

const UNITS: usize = 12;

/// Fragments as an honest sender cuts them and as others do, of a few datagrams of up to 96 bytes.
#[derive(Clone, Debug)]
struct Part {
    datagram: u32,
    start: usize,
    units: usize,
    /// The last fragment may end within a unit; then this many bytes of it are there.
    short: u16,
    more: bool,
    key: Option<u16>,
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let cut =
        (0..UNITS, 1..5_usize, 0..12_u16, any::<bool>(), prop::option::weighted(0.9, 0..2_u16))
            .prop_map(|(start, units, short, more, key)| (start, units, short, more, key));
    let honest = (0..UNITS / 2).prop_map(|nth| {
        let more = nth + 1 < UNITS / 2;
        (2 * nth, 2, if more { 0 } else { 3 }, more, Some(0))
    });
    let part = prop_oneof![8 => honest, 1 => cut];
    let whole = (0..3_u32, part).prop_map(|(datagram, (start, units, short, more, key))| Part {
        datagram,
        start,
        units,
        short: if short < 8 { short } else { 0 },
        more,
        key,
    });
    prop::collection::vec(whole, 1..if cfg!(miri) { 20 } else { 60 })
}

#[derive(Default)]
struct Known {
    poisoned: bool,
    key: Option<FlowKey>,
    held: Vec<u32>,
    /// Which fragment (its bytes, and whether more follow) brought each unit.
    units: Vec<Option<(u16, u16, bool)>>,
}

impl Known {
    /// The end that the last fragment declared.
    fn end(&self) -> Option<u16> {
        let last = self.units.iter().flatten().find(|(.., more)| !more)?;
        Some(last.0 + last.1)
    }

    fn is_honest(&self, fragment: &Fragment, key: Option<FlowKey>) -> bool {
        let end = fragment.offset + fragment.len;
        let furthest = self.units.iter().flatten().map(|(offset, len, _)| offset + len).max();
        let piece = (fragment.offset, fragment.len, fragment.more);
        let units = usize::from(fragment.offset / 8)..usize::from(end.div_ceil(8));
        let fresh = self.units[units.clone()].iter().all(Option::is_none);
        let again = self.units[units].iter().all(|unit| *unit == Some(piece));
        let ends_agree = match self.end() {
            Some(known) if fragment.more => end < known,
            Some(known) => known == end,
            None => fragment.more || furthest.is_none_or(|furthest| furthest < end),
        };
        let keys_agree =
            fragment.offset > 0 || key.is_some() && self.key.is_none_or(|known| Some(known) == key);
        !self.poisoned && (fresh || again) && ends_agree && keys_agree
    }
}

/// What should come of a fragment.
fn expected(known: &mut Known, fragment: &Fragment, key: Option<FlowKey>, stamp: u32) -> Outcome {
    let mut outcome = Outcome { fate: Fate::Hold, released: Vec::new(), dropped: Vec::new() };
    if fragment.more && !fragment.len.is_multiple_of(8) {
        outcome.fate = Fate::Drop(DropReason::FragmentInvalid);
        return outcome;
    }
    if known.units.is_empty() {
        known.units = vec![None; UNITS + 8];
    }
    if !known.is_honest(fragment, key) {
        let held = std::mem::take(&mut known.held);
        outcome.dropped = held.into_iter().map(|s| (DropReason::FragmentInvalid, s)).collect();
        outcome.fate = Fate::Drop(DropReason::FragmentInvalid);
        known.poisoned = true;
        return outcome;
    }
    let end = fragment.offset + fragment.len;
    for unit in fragment.offset / 8..end.div_ceil(8) {
        let piece = (fragment.offset, fragment.len, fragment.more);
        known.units[usize::from(unit)] = Some(piece);
    }
    if fragment.offset == 0 && known.key.is_none() {
        known.key = key;
        let held = std::mem::take(&mut known.held);
        outcome.released = held.into_iter().map(|s| (key.unwrap(), s)).collect();
    }
    match known.key {
        Some(key) => outcome.fate = Fate::Release(key),
        None => known.held.push(stamp),
    }
    if let (Some(_), Some(end)) = (known.key, known.end()) {
        let mut units = known.units[..usize::from(end.div_ceil(8))].iter();
        if units.all(Option::is_some) {
            *known = Known::default();
        }
    }
    outcome
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]

    #[test]
    fn the_tracker_does_what_the_oracle_says(parts in parts()) {
        let mut source = Source::new();
        let mut tracker = FragmentTracker::new(FragmentConfig::default());
        let mut model: HashMap<u32, Known> = HashMap::new();
        for (stamp, given) in (0..).zip(&parts) {
            let len = (given.units * 8) as u16 - given.short;
            let fragment = part((given.start * 8) as u16, len, given.more);
            let key = given.key.filter(|_| given.start == 0).map(flow);
            let known = model.entry(given.datagram).or_default();
            let expected = expected(known, &fragment, key, stamp);
            let id = if given.datagram == 0 { v6(0) } else { v4(given.datagram) };
            let outcome = feed(&mut tracker, &mut source, id, fragment, key, Time::ZERO);
            prop_assert_eq!(outcome, expected);
            let held: usize = model.values().map(|known| known.held.len()).sum();
            prop_assert_eq!(tracker.held(), held);
        }
        let held = tracker.held();
        prop_assert_eq!(tracker.drain().len(), held);
        prop_assert_eq!((tracker.held(), tracker.datagrams()), (0, 0));
        prop_assert_eq!(source.outside(), 0);
    }
}
