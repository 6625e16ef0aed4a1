//! What services count for themselves, beside the accounts that every run keeps.

use std::collections::BTreeMap;

use rheostat_state::Estimate;

/// What services count, summed over shards, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    counts: BTreeMap<&'static str, u64>,
    rankings: BTreeMap<&'static str, Ranking>,
    /// In place of all rankings, where only counts are collected.
    ignored: Option<Ranking>,
}

impl Metrics {
    /// Metrics that take counts alone: what is merged into a ranking is not looked at. For a run that goes on, in which the names of
    /// thousands of entries would keep packets waiting.
    pub fn counts() -> Metrics {
        let ignored = Ranking { is_ignored: true, ..Ranking::default() };
        Metrics { ignored: Some(ignored), ..Metrics::default() }
    }

    /// Adds to the figure of this name.
    pub fn add(&mut self, name: &'static str, count: u64) {
        *self.counts.entry(name).or_default() += count;
    }

    /// The figure of this name; zero if nothing was added to it.
    pub fn get(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or(0)
    }

    /// All figures in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.counts.iter().map(|(name, count)| (*name, *count))
    }

    /// The ranking of this name, to add a shard's part to it; `listed` is how many of its entries are to
    /// be shown.
    pub fn ranking(&mut self, name: &'static str, listed: usize) -> &mut Ranking {
        let ranking = match &mut self.ignored {
            Some(ignored) => ignored,
            None => self.rankings.entry(name).or_default(),
        };
        ranking.list(listed);
        ranking
    }

    /// All rankings in the order of their names.
    pub fn rankings(&self) -> impl Iterator<Item = (&'static str, &Ranking)> {
        self.rankings.iter().map(|(name, ranking)| (*name, ranking))
    }
}

/// The keys with the largest counts, where only some counts are kept: the union of several summaries, each with a floor that no
/// count of a key it does not name exceeds (Agarwal et al., "Mergeable Summaries", PODS 2012, section 3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranking {
    entries: BTreeMap<String, Estimate>,
    floor: u64,
    listed: usize,
    is_ignored: bool,
}

impl Ranking {
    /// Lists no fewer than `count`.
    pub fn list(&mut self, count: usize) {
        self.listed = self.listed.max(count);
    }

    /// Adds a summary of other traffic: its entries, and the most that any other key in it may have.
    pub fn merge(&mut self, part: impl IntoIterator<Item = (String, Estimate)>, floor: u64) {
        if self.is_ignored {
            return;
        }
        let mut part: BTreeMap<String, Estimate> = part.into_iter().collect();
        let up_to = |floor| Estimate { most: floor, error: floor };
        for (name, known) in &mut self.entries {
            *known = known.plus(part.remove(name).unwrap_or(up_to(floor)));
        }
        let own = self.floor;
        self.entries.extend(part.into_iter().map(|(name, count)| (name, count.plus(up_to(own)))));
        self.floor += floor;
    }

    /// The keys with the largest counts that are certain, at most as many as are to be listed; equals by name.
    pub fn top(&self) -> Vec<(&str, Estimate)> {
        let entries = self.entries.iter().map(|(name, count)| (name.as_str(), *count));
        let mut entries: Vec<_> = entries.filter(|(_, count)| count.least() > 0).collect();
        entries.sort_by_key(|(_, count)| std::cmp::Reverse(count.least()));
        entries.truncate(self.listed);
        entries
    }

    /// The bounds of one entry; `None` when it is in no summary.
    pub fn of(&self, name: &str) -> Option<Estimate> {
        self.entries.get(name).copied()
    }

    /// The most that a key may have that is in no summary.
    pub fn floor(&self) -> u64 {
        self.floor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_alone_look_at_no_entry_of_a_ranking() {
        let mut metrics = Metrics::counts();
        metrics.add("seen", 3);
        let unread = std::iter::from_fn(|| panic!("an entry is made"));
        metrics.ranking("hosts", 2).merge(unread, 5);
        assert_eq!(metrics.get("seen"), 3);
        assert_eq!(metrics.rankings().count(), 0);
    }

    #[test]
    fn merged_bounds_hold_for_keys_that_a_summary_does_not_name() {
        let mut metrics = Metrics::default();
        let part = |entries: &[(&str, u64, u64)]| {
            let estimate = |&(name, most, error): &(&str, u64, u64)| {
                (name.to_owned(), Estimate { most, error })
            };
            entries.iter().map(estimate).collect::<Vec<_>>()
        };
        metrics.ranking("hosts", 2).merge(part(&[("a", 10, 0), ("b", 7, 2)]), 5);
        let ranking = metrics.ranking("hosts", 2);
        ranking.merge(part(&[("b", 4, 0), ("c", 3, 0)]), 0);
        // In the first part, c may have had up to 5 unseen; in the second, a had nothing.
        assert_eq!(ranking.of("c"), Some(Estimate { most: 8, error: 5 }));
        assert_eq!(ranking.of("a"), Some(Estimate { most: 10, error: 0 }));
        assert_eq!((ranking.of("d"), ranking.floor()), (None, 5));
        let top: Vec<_> = ranking.top().iter().map(|(name, e)| (*name, e.least())).collect();
        assert_eq!(top, [("a", 10), ("b", 9)]);
    }
}
