//! Which conflicts are the same one, and how often each is the cause of an abort.

use std::cmp::Reverse;

use rheostat_state::object::Cause;
use rheostat_state::txn::{Access, ConflictCount, ObjectId, ObjectInfo};

/// Conflicts between the same two operations, called from the same two places, for the same reason. Whichever of
/// the two was aborted: the author's two lines are what they have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) object: ObjectId,
    pub(super) cause: Cause,
    /// The lesser first, so that both orders are one.
    sides: [Access; 2],
    /// How often it was noted.
    pub(super) count: u64,
}

impl Pair {
    fn of(counted: &ConflictCount, objects: &[ObjectInfo]) -> Pair {
        let ConflictCount { conflict, count } = counted;
        let object = conflict.object;
        let cause = Cause::of(objects[usize::from(object.0)].kind, conflict);
        let mut sides = [conflict.mine, conflict.theirs];
        sides.sort_unstable();
        Pair { object, cause, sides, count: *count }
    }

    fn is_like(&self, other: &Pair) -> bool {
        Pair { count: 0, ..*self } == Pair { count: 0, ..*other }
    }

    /// The operations, as `read / update`.
    pub(super) fn operations(&self) -> String {
        self.sides.map(|side| side.operation.name()).join(" / ")
    }

    /// The places, as `file:line / file:line`; once, if they are the same.
    pub(super) fn source(&self) -> String {
        let mut places = self.sides.map(|side| {
            side.site.map_or_else(|| "a line that is not known".to_owned(), |site| site.to_string())
        });
        match &mut places {
            [one, other] if one == other => std::mem::take(one),
            places => places.join(" / "),
        }
    }
}

/// The pairs, those of the cause that was noted most often first, whatever operations it is about: a recipe fixes a cause, not a
/// pair of lines. Pairs of the same cause are ordered by how often they were noted, most often first.
pub(super) fn ranked(conflicts: &[ConflictCount], objects: &[ObjectInfo]) -> Vec<Pair> {
    let mut pairs: Vec<Pair> = Vec::new();
    for pair in conflicts.iter().filter(|conflict| conflict.count > 0) {
        let pair = Pair::of(pair, objects);
        match pairs.iter_mut().find(|known| known.is_like(&pair)) {
            Some(known) => known.count += pair.count,
            None => pairs.push(pair),
        }
    }
    let counts: Vec<u64> = pairs.iter().map(|pair| of_cause(pair, &pairs)).collect();
    let mut ranked: Vec<(u64, Pair)> = counts.into_iter().zip(pairs).collect();
    ranked.sort_by_key(|(total, pair)| {
        (Reverse(*total), pair.object, pair.cause, Reverse(pair.count))
    });
    ranked.into_iter().map(|(_, pair)| pair).collect()
}

/// How often the cause of `one` was noted on its object, for any two operations.
pub(super) fn of_cause(one: &Pair, pairs: &[Pair]) -> u64 {
    let same = |pair: &&Pair| (pair.object, pair.cause) == (one.object, one.cause);
    pairs.iter().filter(same).map(|pair| pair.count).sum()
}
