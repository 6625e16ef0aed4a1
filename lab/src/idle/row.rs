//! What a row states.

use rheostat_measure::confidence::Median;
use rheostat_measure::nf::Spec;
use rheostat_measure::record::{Column, TableRow};
use rheostat_measure::rounding::rounded;
use serde::{Deserialize, Serialize};

use super::IdlePair;

/// The figures of one chain on so many lanes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IdleFlowRow {
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

impl IdleFlowRow {
    pub(super) fn new(spec: &Spec, pairs: &[IdlePair]) -> IdleFlowRow {
        let median = |of: fn(&IdlePair) -> f64| Median::of(pairs.iter().map(of).collect());
        // Throughput is the inverse of the time.
        let cost = median(|pair| 1.0 - pair.fixed / pair.balanced);
        IdleFlowRow {
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

impl TableRow for IdleFlowRow {
    const COLUMNS: &'static [Column<IdleFlowRow>] = &[
        Column::name("chain", 10, |row| &row.chain),
        Column::count("lanes", 5, |row| row.lanes as u64),
        Column::count("windows", 7, |row| row.windows as u64),
        Column::number("static ns", 10, 1, |row| row.ns_static),
        Column::number("balanced ns", 12, 1, |row| row.ns_balanced),
        Column::percent("cost", 8, 2, |row| row.cost),
        Column::text("95 %", 18, |row| {
            format!("{:.2} % to {:.2} %", 100.0 * row.cost_low, 100.0 * row.cost_high)
        }),
        Column::count("plans", 6, |row| row.plans),
        Column::count("withheld", 8, |row| row.withheld),
    ];
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
            .map(|fixed| IdlePair { fixed, balanced: fixed / 0.99, controlled })
            .collect();
        let row = IdleFlowRow::new(&selection.specs()[0], &pairs);
        assert_eq!((row.chain.as_str(), row.lanes, row.windows), ("firewall", 2, 9));
        assert_eq!((row.ns_static, row.ns_balanced), (200.0, 202.02));
        assert_eq!((row.cost, row.cost_low, row.cost_high), (0.01, 0.01, 0.01));
        assert_eq!((row.plans, row.withheld), (45, 9));
        let line = row.line();
        assert!(line.contains(" 1.00 % "), "{line}");
    }
}
