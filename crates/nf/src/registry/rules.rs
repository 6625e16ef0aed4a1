//! The rules of a function, and how often each has decided about a packet.
//!
//! A rule is evaluated on the first packet of a flow, and on packets that open no flow: counting costs the packets of established
//! flows nothing. Lanes count for each shard by itself, and readers add the counts up.
#![expect(
    clippy::disallowed_types,
    reason = "counters that are read from outside the lanes; no function decides by them"
)]

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rheostat_base::{ShardId, Time};

/// Shards that have a counter of their own; the others share one.
const SHARDS: usize = 128;
/// Bytes that the counters of a function's rules take at most, unless [`LEAST_SHARDS`] take more.
const MOST_BYTES: usize = 8 << 20;
/// Shards that have a counter of their own however many rules there are.
const LEAST_SHARDS: usize = 8;

/// The rules of a function, as it states them during a run.
pub trait RuleList: fmt::Debug + Send + Sync {
    /// The rules in the order in which they are tried.
    fn rules(&self) -> Vec<RuleUse>;

    /// The counters, for the rules of a configuration that takes the place of this one; `None` when they are none of
    /// [`RuleCounters`].
    fn counters(&self) -> Option<&RuleCounters> {
        None
    }
}

/// A rule and its use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleUse {
    /// The rule.
    pub rule: Rule,
    /// How often it has decided.
    pub tally: Tally,
}

/// How often a rule has decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tally {
    /// The function counts by [`RuleCounters`], or as they do.
    Counted(RuleCount),
    /// The function counts the rule's packets in its metrics under this name.
    Metric(&'static str),
}

/// A rule as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// Its name, the same as long as it is the same rule to people.
    pub name: String,
    /// Its conditions and its effect in words.
    pub text: String,
}

/// How often a rule has decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleCount {
    /// The packets that it has decided about: the first one of each flow, and those that open no flow.
    pub hits: u64,
    /// The bytes of these packets, with their link headers.
    pub bytes: u64,
    /// The time of the last one by the run's clock.
    pub last: Option<Time>,
}

/// Counters of a function's rules. Counting takes some nanoseconds and allocates nothing.
#[derive(Debug, Default)]
pub struct RuleCounters {
    rules: Vec<(Rule, Arc<[Cell]>)>,
}

/// The counts of one shard, in a cache line of their own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Cell {
    hits: AtomicU64,
    bytes: AtomicU64,
    /// In nanoseconds; 0 before the first hit.
    last: AtomicU64,
}

impl RuleCounters {
    /// Counters of these rules, in their order.
    pub fn new(rules: impl IntoIterator<Item = Rule>) -> RuleCounters {
        RuleCounters::after(None, rules)
    }

    /// Counters of these rules. One that `earlier` has with the same name and the same text goes on with its counts, which both
    /// have together from then on.
    pub fn after(
        earlier: Option<&RuleCounters>,
        rules: impl IntoIterator<Item = Rule>,
    ) -> RuleCounters {
        let mut known: HashMap<&Rule, Vec<&Arc<[Cell]>>> = HashMap::new();
        for (rule, cells) in earlier.iter().flat_map(|earlier| earlier.rules.iter().rev()) {
            known.entry(rule).or_default().push(cells);
        }
        let rules: Vec<_> = rules.into_iter().collect();
        let shards = MOST_BYTES / size_of::<Cell>() / rules.len().max(1);
        // One more for the shards that have none of their own.
        let cells = shards.clamp(LEAST_SHARDS, SHARDS) + 1;
        let of = |rule: Rule| {
            let kept = known.get_mut(&rule).and_then(Vec::pop).cloned();
            (rule, kept.unwrap_or_else(|| (0..cells).map(|_| Cell::default()).collect()))
        };
        RuleCounters { rules: rules.into_iter().map(of).collect() }
    }

    /// Counts a packet of so many bytes that the rule with this number has decided about, for a function that keeps its state in
    /// shards: only the lane that has `shard` may call it.
    #[inline]
    pub fn count(&self, rule: usize, shard: ShardId, bytes: usize, now: Time) {
        let Some((_, cells)) = self.rules.get(rule) else { return };
        match cells[..cells.len() - 1].get(shard.index()) {
            Some(cell) => cell.add(bytes as u64, now),
            None => cells[cells.len() - 1].add_beside_others(bytes as u64, now),
        }
    }

    /// The same for a function on shared objects, whose packets of a shard may be with several lanes at once. A handler that is
    /// repeated after a conflict counts again.
    pub fn count_shared(&self, rule: usize, shard: ShardId, bytes: usize, now: Time) {
        let Some((_, cells)) = self.rules.get(rule) else { return };
        cells[shard.index() % cells.len()].add_beside_others(bytes as u64, now);
    }
}

impl RuleList for RuleCounters {
    fn rules(&self) -> Vec<RuleUse> {
        let uses = self.rules.iter().map(|(rule, cells)| {
            let tally = Tally::Counted(cells.iter().map(Cell::read).sum());
            RuleUse { rule: rule.clone(), tally }
        });
        uses.collect()
    }

    fn counters(&self) -> Option<&RuleCounters> {
        Some(self)
    }
}

impl Cell {
    /// Counts for the only writer.
    #[inline]
    fn add(&self, bytes: u64, now: Time) {
        // Relaxed: counters order nothing. A shard that moves to another lane takes what was written along.
        let next = |counter: &AtomicU64, more| {
            counter.store(counter.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
        };
        next(&self.hits, 1);
        next(&self.bytes, bytes);
        self.last.store(now.as_nanos().max(1), Ordering::Relaxed);
    }

    /// Counts beside other writers.
    fn add_beside_others(&self, bytes: u64, now: Time) {
        self.hits.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.last.fetch_max(now.as_nanos().max(1), Ordering::Relaxed);
    }

    fn read(&self) -> RuleCount {
        let [hits, bytes, last] =
            [&self.hits, &self.bytes, &self.last].map(|counter| counter.load(Ordering::Relaxed));
        RuleCount { hits, bytes, last: (last > 0).then(|| Time::from_nanos(last)) }
    }
}

impl std::iter::Sum for RuleCount {
    fn sum<I: Iterator<Item = RuleCount>>(counts: I) -> RuleCount {
        counts.fold(RuleCount::default(), |sum, count| RuleCount {
            hits: sum.hits.wrapping_add(count.hits),
            bytes: sum.bytes.wrapping_add(count.bytes),
            last: sum.last.max(count.last),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(name: &str, text: &str) -> Rule {
        Rule { name: name.to_owned(), text: text.to_owned() }
    }

    fn counts(rules: &RuleCounters) -> Vec<(u64, u64)> {
        let counts = rules.rules().into_iter().map(|used| match used.tally {
            Tally::Counted(count) => (count.hits, count.bytes),
            Tally::Metric(_) => unreachable!("all are counted"),
        });
        counts.collect()
    }

    #[test]
    fn counts_of_all_shards_are_added_up() {
        let rules = RuleCounters::new([rule("web", "allow"), rule("ssh", "deny")]);
        let at = |seconds: u64| Time::from_nanos(seconds * 1_000_000_000);
        rules.count(0, ShardId(0), 60, at(3));
        rules.count(0, ShardId(127), 100, at(5));
        // Beyond the shards that have a counter each.
        rules.count(0, ShardId(128), 1, at(4));
        rules.count(0, ShardId(4_000), 1, at(4));
        rules.count_shared(1, ShardId(4_000), 9, at(0));
        rules.count(7, ShardId(0), 9, at(9));
        assert_eq!(counts(&rules), [(4, 162), (1, 9)]);
        let [web, ssh] = rules.rules().try_into().unwrap();
        assert!(matches!(web.tally, Tally::Counted(RuleCount { last, .. }) if last == Some(at(5))));
        assert!(matches!(ssh.tally, Tally::Counted(RuleCount { last: Some(_), .. })));
    }

    #[test]
    fn rules_that_stay_keep_their_counts_and_others_begin_anew() {
        let earlier =
            RuleCounters::new([rule("web", "allow"), rule("ssh", "deny"), rule("web", "allow")]);
        for (number, hits) in [(0, 3), (1, 5), (2, 7)] {
            (0..hits).for_each(|_| earlier.count(number, ShardId(1), 10, Time::from_nanos(1)));
        }
        let later = RuleCounters::after(
            Some(&earlier),
            [
                rule("ssh", "allow"),
                rule("web", "allow"),
                rule("dns", "allow"),
                rule("web", "allow"),
            ],
        );
        assert_eq!(counts(&later), [(0, 0), (3, 30), (0, 0), (7, 70)]);
        // A lane that still goes by the earlier rules.
        earlier.count(0, ShardId(1), 10, Time::from_nanos(1));
        assert_eq!(counts(&later)[1], (4, 40));
    }

    #[test]
    fn many_rules_have_few_counters_each_and_lose_no_count() {
        let rules = RuleCounters::new((0..100_000).map(|number| rule(&number.to_string(), "deny")));
        (0..1_000).for_each(|shard| rules.count(99_999, ShardId(shard), 1, Time::from_nanos(1)));
        assert_eq!(counts(&rules)[99_999], (1_000, 1_000));
    }
}
