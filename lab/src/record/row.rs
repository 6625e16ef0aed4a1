//! What all runs of one policy, number of lanes and load come to.

use rheostat_measure::confidence::Median;
use rheostat_measure::rounding::to_ten_thousandths;
use serde::{Deserialize, Serialize};

use super::RecordedRun;
use crate::noise::Noise;
use crate::scenario::again;

/// A row of a comparison: medians over the seeds. The fields are those of the JSON output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedRow {
    /// The scenario's name.
    pub scenario: String,
    /// The policy.
    pub policy: String,
    /// Lanes there were.
    pub lanes: u16,
    /// The load, as a share of what all lanes can do together.
    pub load: f64,
    /// Latency that half of the packets did not exceed, in microseconds; `null` if none left.
    pub p50_us: Option<f64>,
    /// 95 of 100.
    pub p95_us: Option<f64>,
    /// 99 of 100.
    pub p99_us: Option<f64>,
    /// Between what `p95_us` lies.
    pub p95_span: Option<RecordedSpan>,
    /// Between what `p99_us` lies.
    pub p99_span: Option<RecordedSpan>,
    /// Which of `p50_us`, `p95_us`, `p99_us` lie below twice what the machine alone does to them: they say
    /// nothing about the policy. Empty for simulated runs.
    pub noise_limited: Vec<String>,
    /// Packets dropped for want of room, in all runs.
    pub dropped: u64,
    /// As a share of all packets.
    pub drop_share: f64,
    /// The busiest lane's work ÷ the mean.
    pub imbalance: f64,
    /// Between what it lies.
    pub imbalance_span: RecordedSpan,
    /// The busiest lane's packets beyond the least busy one's, as a share of the latter (RSS++ Figure 12).
    pub spread: Option<f64>,
    /// What the busiest lane processed, as a share of what a lane can do as it was measured before: the median.
    #[serde(default)]
    pub busiest_share: f64,
    /// Whether that is more than a lane can do, by more than 5 %, as the speed of a machine changes between two runs.
    /// Then something else did part of its work, and the comparison is void.
    #[serde(default)]
    pub capacity_exceeded: bool,
    /// By what factor `p95_us` of two runs of one policy with the same packets differ by chance: the further end of the
    /// interval of 95 % of the median pair, at least 1. `null` where no policy ran twice (`rss-again`).
    #[serde(default)]
    pub aa_spread_p95: Option<f64>,
    /// By what factor `p95_us` is below that of static RSS with the same packets: the median pair; below 1 where it is
    /// above. `null` without runs of `rss`.
    #[serde(default)]
    pub gain_p95: Option<f64>,
    /// Whether `gain_p95` is further from 1 than chance is; `null` where either is not known.
    #[serde(default)]
    pub gain_shown: Option<bool>,
    /// Milliseconds for which threads of the process were ready and had no core: the median run.
    #[serde(default)]
    pub run_delay_ms: Option<f64>,
    /// Milliseconds that the hypervisor took from all cores together: the median run.
    #[serde(default)]
    pub steal_ms: Option<f64>,
    /// Shards that changed lanes, in all runs.
    pub migrations: u64,
    /// Lanes that owned shards or took flows of others, on average.
    pub active: f64,
    /// The share of the packets that left which was processed away from home.
    #[serde(default)]
    pub offloaded_share: f64,
    /// How often a flow left its lane, in all runs.
    #[serde(default)]
    pub flows_offloaded: u64,
    /// Latency that 99.5 % of the packets of signalling did not exceed, in microseconds: the median; `null` without any.
    #[serde(default)]
    pub priority_p995_us: Option<f64>,
    /// Packets per second that left.
    pub delivered_pps: f64,
    /// Packets missing, in all runs.
    pub lost: u64,
    /// Packets that left twice, in all runs.
    pub duplicated: u64,
    /// Packets overtaken within their flow, in all runs.
    pub reordered: u64,
    /// Runs.
    pub runs: usize,
    /// Whether they are simulated.
    pub simulated: bool,
}

/// A lane that processes more than its capacity by this share has been helped.
pub(super) const CAPACITY_TOLERANCE: f64 = 0.05;

/// Between what a median lies with a confidence of 95 %; with fewer than six runs, the range of all.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedSpan {
    /// The least.
    pub low: f64,
    /// The most.
    pub high: f64,
}

/// A row for each policy, number of lanes and load, in the order in which they first came.
pub fn rows(runs: &[RecordedRun], noise: Option<&Noise>) -> Vec<RecordedRow> {
    let mut groups: Vec<Vec<&RecordedRun>> = Vec::new();
    for run in runs {
        let same = |group: &&mut Vec<&RecordedRun>| {
            let first = group[0];
            (&first.scenario, &first.policy, first.lanes, first.simulated)
                == (&run.scenario, &run.policy, run.lanes, run.simulated)
                && first.load.to_bits() == run.load.to_bits()
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(run),
            None => groups.push(vec![run]),
        }
    }
    let row = |group: &Vec<&RecordedRun>| {
        let row = RecordedRow::of(group, noise);
        let of = |policy: &str| groups.iter().find(|other| is_beside(other[0], group[0], policy));
        let aa_spread_p95 = groups
            .iter()
            .filter(|other| is_beside(other[0], group[0], &other[0].policy))
            .find_map(|other| chance(other, of(&again(&other[0].policy))?));
        let gain_p95 = of("rss").and_then(|rss| ratio(rss, group)).map(|gain| gain.value);
        let gain_shown = gain_p95
            .zip(aa_spread_p95)
            .map(|(gain, chance)| gain > chance || gain.recip() > chance);
        let (aa_spread_p95, gain_p95) =
            (aa_spread_p95.map(to_ten_thousandths), gain_p95.map(to_ten_thousandths));
        RecordedRow { aa_spread_p95, gain_p95, gain_shown, ..row }
    };
    groups.iter().map(row).collect()
}

/// Whether a run is one of `policy` under what is otherwise the same.
fn is_beside(run: &RecordedRun, other: &RecordedRun, policy: &str) -> bool {
    run.policy == policy
        && (&run.scenario, run.lanes, run.simulated)
            == (&other.scenario, other.lanes, other.simulated)
        && run.load.to_bits() == other.load.to_bits()
}

/// The factor by which p95 of some runs is above that of others with the same packets, pair by pair.
fn ratio(runs: &[&RecordedRun], others: &[&RecordedRun]) -> Option<Median> {
    let pair = |run: &&RecordedRun| {
        let other = others.iter().find(|other| other.seed == run.seed)?;
        Some(run.latency(0.95)? / other.latency(0.95).filter(|us| *us > 0.0)?)
    };
    let ratios: Vec<f64> = runs.iter().filter_map(pair).collect();
    (!ratios.is_empty()).then(|| Median::of(ratios))
}

/// By what factor runs of one policy differ.
fn chance(runs: &[&RecordedRun], again: &[&RecordedRun]) -> Option<f64> {
    let Median { low, high, .. } = ratio(runs, again)?;
    Some(high.max(low.recip()).max(1.0))
}

impl RecordedRow {
    fn of(runs: &[&RecordedRun], noise: Option<&Noise>) -> RecordedRow {
        let first = runs[0];
        let median = |of: &dyn Fn(&RecordedRun) -> Option<f64>| {
            let values: Vec<f64> = runs.iter().filter_map(|run| of(run)).collect();
            (!values.is_empty()).then(|| Median::of(values))
        };
        let latency = |share: f64| median(&|run| run.latency(share));
        let (p50, p95, p99) = (latency(0.5), latency(0.95), latency(0.99));
        let imbalance = median(&|run| Some(run.imbalance)).expect("a group has a run");
        let sum = |of: fn(&RecordedRun) -> u64| runs.iter().map(|run| of(run)).sum::<u64>();
        let mean = |of: &dyn Fn(&RecordedRun) -> f64| {
            runs.iter().map(|run| of(run)).sum::<f64>() / runs.len() as f64
        };
        let limited = |(name, share, value): (&str, f64, Option<Median>)| {
            let floor = noise.filter(|_| !first.simulated)?.floor_us(share);
            (value?.value < 2.0 * floor).then(|| name.to_owned())
        };
        let busiest = median(&|run| Some(run.busiest_share())).expect("a group has a run").value;
        let figures = [("p50_us", 0.5, p50), ("p95_us", 0.95, p95), ("p99_us", 0.99, p99)];
        RecordedRow {
            scenario: first.scenario.clone(),
            policy: first.policy.clone(),
            lanes: first.lanes,
            load: first.load,
            p50_us: p50.map(|median| to_ten_thousandths(median.value)),
            p95_us: p95.map(|median| to_ten_thousandths(median.value)),
            p99_us: p99.map(|median| to_ten_thousandths(median.value)),
            p95_span: p95.map(RecordedSpan::of),
            p99_span: p99.map(RecordedSpan::of),
            noise_limited: figures.into_iter().filter_map(limited).collect(),
            dropped: sum(|run| run.dropped),
            drop_share: sum(|run| run.dropped) as f64 / sum(|run| run.packets).max(1) as f64,
            imbalance: to_ten_thousandths(imbalance.value),
            imbalance_span: RecordedSpan::of(imbalance),
            spread: median(&|run| run.spread).map(|median| to_ten_thousandths(median.value)),
            busiest_share: to_ten_thousandths(busiest),
            capacity_exceeded: busiest > 1.0 + CAPACITY_TOLERANCE,
            aa_spread_p95: None,
            gain_p95: None,
            gain_shown: None,
            run_delay_ms: median(&|run| run.run_delay_ms)
                .map(|median| to_ten_thousandths(median.value)),
            steal_ms: median(&|run| run.steal_ms).map(|median| to_ten_thousandths(median.value)),
            migrations: sum(|run| run.migrations),
            active: to_ten_thousandths(mean(&|run| run.active)),
            offloaded_share: to_ten_thousandths(mean(&|run| run.offloaded_share())),
            flows_offloaded: sum(|run| run.flows_offloaded),
            priority_p995_us: median(&|run| run.priority_us)
                .map(|median| to_ten_thousandths(median.value)),
            delivered_pps: mean(&|run| run.delivered as f64 / run.seconds).round(),
            lost: sum(|run| run.lost),
            duplicated: sum(|run| run.duplicated),
            reordered: sum(|run| run.reordered),
            runs: runs.len(),
            simulated: first.simulated,
        }
    }
}

impl RecordedSpan {
    fn of(median: Median) -> RecordedSpan {
        RecordedSpan { low: to_ten_thousandths(median.low), high: to_ten_thousandths(median.high) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(policy: &str, load: f64, seed: u64, p95: f64) -> RecordedRun {
        RecordedRun {
            policy: policy.into(),
            load,
            seed,
            lanes: 2,
            seconds: 1.0,
            packets: 100,
            dropped: seed,
            imbalance: 1.0 + seed as f64 / 10.0,
            latency_us: vec![(0.5, 1.0), (0.95, p95)],
            ..RecordedRun::default()
        }
    }

    #[test]
    fn runs_that_differ_in_their_seed_alone_make_a_row() {
        let mut runs: Vec<_> = (1..=6).map(|seed| run("rss", 0.8, seed, seed as f64)).collect();
        runs.push(run("rss", 0.9, 1, 7.0));
        runs.insert(3, run("rsspp", 0.8, 1, 7.0));
        let rows = rows(&runs, None);
        let named: Vec<_> =
            rows.iter().map(|row| (row.policy.as_str(), row.load, row.runs)).collect();
        assert_eq!(named, [("rss", 0.8, 6), ("rsspp", 0.8, 1), ("rss", 0.9, 1)]);
        assert_eq!((rows[0].p95_us, rows[0].p99_us), (Some(3.5), None));
        assert_eq!(rows[0].p95_span, Some(RecordedSpan { low: 1.0, high: 6.0 }));
        assert_eq!((rows[0].dropped, rows[0].drop_share), (21, 21.0 / 600.0));
        assert_eq!(rows[0].imbalance, 1.35);
    }

    #[test]
    fn a_gain_within_what_two_runs_of_one_policy_differ_by_is_not_shown() {
        let mut runs = Vec::new();
        for (seed, chance) in (1..=6).zip([1.0, 1.2, 0.7, 1.1, 1.0, 1.6]) {
            runs.push(run("rss", 0.9, seed, 1_000.0));
            runs.push(run("rss-again", 0.9, seed, 1_000.0 / chance));
            runs.push(run("rsspp", 0.9, seed, 100.0));
            runs.push(run("local-search", 0.9, seed, 800.0));
            runs.push(run("traffic-class", 0.9, seed, 2_000.0));
            runs.push(run("rsspp", 0.8, seed, 100.0));
        }
        let rows = rows(&runs, None);
        let said: Vec<_> =
            rows.iter().map(|row| (row.aa_spread_p95, row.gain_p95, row.gain_shown)).collect();
        // The interval of six pairs is from 0.7 to 1.6.
        let chance = Some(1.6);
        assert_eq!(said[0], (chance, Some(1.0), Some(false)));
        assert_eq!(said[2], (chance, Some(10.0), Some(true)));
        assert_eq!(said[3], (chance, Some(1.25), Some(false)));
        assert_eq!(said[4], (chance, Some(0.5), Some(true)));
        assert_eq!(said[5], (None, None, None), "nothing stands beside it at this load");
    }

    #[test]
    fn a_lane_that_did_more_than_it_can_is_marked() {
        let with = |busiest_pps: f64| {
            let run = RecordedRun { capacity: 200_000.0, busiest_pps, ..run("rss", 0.9, 1, 7.0) };
            let row = rows(&[run.clone(), run], None).remove(0);
            (row.busiest_share, row.capacity_exceeded)
        };
        assert_eq!(with(190_000.0), (0.95, false));
        assert_eq!(with(204_000.0), (1.02, false));
        assert_eq!(with(222_000.0), (1.11, true));
    }

    #[test]
    fn what_the_machine_alone_does_is_marked() {
        // Half of the time in gaps of 100 us: the floor of p95 is above 40 us.
        let noise = Noise::of_gaps(&[100_000; 5], 1_000_000, 0);
        let rows = rows(&[run("rss", 0.8, 1, 50.0), run("rss", 0.9, 1, 500.0)], Some(&noise));
        assert_eq!(rows[0].noise_limited, ["p95_us"]);
        assert!(rows[1].noise_limited.is_empty());
    }
}
