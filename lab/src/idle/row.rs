//! What a row states.

use std::fmt;

use rheostat_measure::confidence::Median;
use rheostat_measure::nf::Spec;
use rheostat_measure::rounding::rounded;
use serde::{Deserialize, Serialize};

use super::Pair;

/// The figures of one chain on so many lanes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The name of the chain, as [`ChainKind::name`](rheostat_measure::nf::ChainKind::name) has it.
    pub chain: String,
    /// Lanes, each on a core of its own.
    pub lanes: usize,
    /// Pairs of runs.
    pub windows: usize,
    /// A lane's time per packet under static RSS, source and sink included, in nanoseconds: the median run.
    pub ns_static: f64,
    /// The same under RSS++ with nothing to move.
    pub ns_balanced: f64,
    /// The share of a lane's throughput that balancing takes, 0.02 being 2 %: the median pair. Below zero
    /// where chance is greater than the cost.
    pub cost: f64,
    /// The least that the true median may be, with a confidence of 95 % together with `cost_high`.
    pub cost_low: f64,
    /// The most.
    pub cost_high: f64,
    /// Plans that the controllers made.
    pub plans: u64,
    /// Plans that would have moved shards. Only where something else took time from one of the lanes: then
    /// the machine was not left alone.
    pub withheld: u64,
}

impl Row {
    pub(super) fn new(spec: &Spec, pairs: &[Pair]) -> Row {
        let median = |of: fn(&Pair) -> f64| Median::of(pairs.iter().map(of).collect());
        // Throughput is the inverse of the time.
        let cost = median(|pair| 1.0 - pair.fixed / pair.balanced);
        Row {
            chain: spec.chain.name().into(),
            lanes: spec.lanes,
            windows: pairs.len(),
            ns_static: rounded(median(|pair| pair.fixed).value, 1e3),
            ns_balanced: rounded(median(|pair| pair.balanced).value, 1e3),
            cost: rounded(cost.value, 1e5),
            cost_low: rounded(cost.low, 1e5),
            cost_high: rounded(cost.high, 1e5),
            plans: pairs.iter().map(|pair| pair.controlled.plans).sum(),
            withheld: pairs.iter().map(|pair| pair.controlled.withheld).sum(),
        }
    }
}

/// Rows as lines under a heading.
#[derive(Clone, Copy, Debug)]
pub struct Table;

impl Table {
    /// The heading.
    pub fn heading() -> String {
        format!(
            "{:<10} {:>5} {:>7} {:>10} {:>12} {:>8} {:>18} {:>6} {:>8}",
            "chain",
            "lanes",
            "windows",
            "static ns",
            "balanced ns",
            "cost",
            "95 %",
            "plans",
            "withheld"
        )
    }

    /// A row's line.
    pub fn line(row: &Row) -> impl fmt::Display {
        let percent = |share: f64| format!("{:.2} %", 100.0 * share);
        let range = format!("{} to {}", percent(row.cost_low), percent(row.cost_high));
        format!(
            "{:<10} {:>5} {:>7} {:>10.1} {:>12.1} {:>8} {:>18} {:>6} {:>8}",
            row.chain,
            row.lanes,
            row.windows,
            row.ns_static,
            row.ns_balanced,
            percent(row.cost),
            range,
            row.plans,
            row.withheld,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rheostat_measure::memory::{FrameSize, SourceKind};
    use rheostat_measure::nf::{ChainKind, Controlled, SHARDS, Selection};
    use rheostat_traffic::Distribution;

    #[test]
    fn the_cost_is_that_of_pairs_and_not_of_moments() {
        let selection = Selection {
            chains: vec![ChainKind::Firewall],
            flows: vec![1_000],
            distributions: vec![Distribution::Uniform],
            sizes: vec![FrameSize::Smallest],
            sources: vec![SourceKind::Converse],
            new_flow_shares: vec![0.0],
            lanes: vec![2],
            shards: vec![SHARDS],
            seed: 1,
        };
        let controlled = Controlled { plans: 5, withheld: 1 };
        // The machine slows down to a third, and balancing costs a hundredth at any moment.
        let pairs: Vec<_> = (0..9)
            .map(|slow| 100.0 + 25.0 * f64::from(slow))
            .map(|fixed| Pair { fixed, balanced: fixed / 0.99, controlled })
            .collect();
        let row = Row::new(&selection.specs()[0], &pairs);
        assert_eq!((row.chain.as_str(), row.lanes, row.windows), ("firewall", 2, 9));
        assert_eq!((row.ns_static, row.ns_balanced), (200.0, 202.02));
        assert_eq!((row.cost, row.cost_low, row.cost_high), (0.01, 0.01, 0.01));
        assert_eq!((row.plans, row.withheld), (45, 9));
        let line = format!("{}", Table::line(&row));
        assert!(line.contains(" 1.00 % "), "{line}");
    }
}
