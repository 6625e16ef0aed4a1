//! The rules of the functions of a run, with how often each has decided.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rheostat_base::Time;
use rheostat_nf::registry::{RuleCount, RuleList, Tally};

use crate::control::RuleLine;

/// A function of a chain by its name, with its rules.
pub type FunctionRules = (String, Arc<dyn RuleList>);

/// The rules in force, in the order of the chain. A configuration that takes the place of another puts its own here.
#[derive(Debug, Default)]
pub struct RuleBoard(Mutex<Vec<FunctionRules>>);

impl RuleBoard {
    /// A board with these rules.
    pub fn new(rules: Vec<FunctionRules>) -> RuleBoard {
        RuleBoard(Mutex::new(rules))
    }

    /// Puts these rules in the place of those before.
    pub fn replace(&self, rules: Vec<FunctionRules>) {
        *self.lock() = rules;
    }

    /// Whether a function counts rules in its metrics, so that [`RuleBoard::lines`] needs them.
    pub fn needs_metrics(&self) -> bool {
        let rules = self.lock().clone();
        let mut uses = rules.iter().flat_map(|(_, rules)| rules.rules());
        uses.any(|used| matches!(used.tally, Tally::Metric(_)))
    }

    /// The rules at a moment of the run's clock; `metric` returns a count of the functions' metrics by its name.
    pub fn lines(&self, now: Time, metric: impl Fn(&str) -> u64) -> Vec<RuleLine> {
        let rules = self.lock().clone();
        let mut lines = Vec::new();
        for (function, rules) in &rules {
            for (number, used) in (1..).zip(rules.rules()) {
                let (hits, bytes, last) = match used.tally {
                    Tally::Counted(RuleCount { hits, bytes, last }) => (hits, Some(bytes), last),
                    Tally::Metric(name) => (metric(name), None, None),
                };
                lines.push(RuleLine {
                    place: lines.len() as u64 + 1,
                    function: function.clone(),
                    number,
                    rule: used.rule.name,
                    hits,
                    bytes,
                    // The packet that a lane works on may be younger than `now`.
                    last_hit: last.map(|last| now.max(last).since(last).as_secs_f64()),
                    text: used.rule.text,
                });
            }
        }
        lines
    }

    fn lock(&self) -> MutexGuard<'_, Vec<FunctionRules>> {
        // Whole at every step.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rheostat_base::ShardId;
    use rheostat_nf::registry::{Rule, RuleCounters, RuleUse};

    /// A function that counts in its metrics.
    #[derive(Debug)]
    struct Limit;

    impl RuleList for Limit {
        fn rules(&self) -> Vec<RuleUse> {
            let rule = Rule { name: "red".into(), text: "drop".into() };
            vec![RuleUse { rule, tally: Tally::Metric("dropped") }]
        }
    }

    #[test]
    fn rules_of_all_functions_have_their_counts_and_their_age() {
        let rule = |name: &str| Rule { name: name.into(), text: "allow".into() };
        let counted = Arc::new(RuleCounters::new([rule("web"), rule("dns")]));
        let second = |seconds: u64| Time::from_nanos(seconds * 1_000_000_000);
        counted.count(1, ShardId(3), 60, second(2));
        let rules: Vec<FunctionRules> =
            vec![("firewall".into(), counted.clone()), ("policer".into(), Arc::new(Limit))];
        let board = RuleBoard::new(rules);
        assert!(board.needs_metrics());
        let metric = |name: &str| if name == "dropped" { 7 } else { 0 };
        let lines = board.lines(second(5), metric);
        let shown: Vec<_> = lines
            .iter()
            .map(|line| {
                (line.rule.as_str(), line.place, line.number, line.hits, line.bytes, line.last_hit)
            })
            .collect();
        assert_eq!(
            shown,
            [
                ("web", 1, 1, 0, Some(0), None),
                ("dns", 2, 2, 1, Some(60), Some(3.0)),
                ("red", 3, 1, 7, None, None),
            ]
        );
        board.replace(vec![("firewall".into(), counted)]);
        assert!(!board.needs_metrics());
        assert_eq!(board.lines(second(1), metric)[1].last_hit, Some(0.0));
    }
}
