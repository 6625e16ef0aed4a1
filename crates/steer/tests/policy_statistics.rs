//! How good the plans of the balancing policies are, over many loads.
//! `cargo test -p rheostat-steer --test steer policy_statistics -- --nocapture` prints the tables.

use std::time::Duration;

use rheostat_base::Time;
use rheostat_steer::policy::{LoadSnapshot, LocalSearch, Policy, Rsspp};

use crate::load;

const INSTANCES: usize = 200;
const SHARDS: usize = 128;

/// What a policy's plans come to, over the instances of one size.
#[derive(Default)]
struct Outcome {
    /// Squared imbalance above what cannot be avoided.
    squared: Vec<f64>,
    moves: usize,
}

impl Outcome {
    /// Follows up to `plans` plans, and stops when one is empty.
    fn add(&mut self, policy: &mut dyn Policy, load: &LoadSnapshot, plans: usize) {
        let (mut load, mut now) = (load.clone(), Time::from_secs(1));
        for _ in 0..plans {
            let plan = policy.plan(now, &load);
            if plan.is_empty() {
                break;
            }
            self.moves += plan.moves.len();
            load = load.after(&plan).expect("it fits");
            now += Duration::from_secs(1);
        }
        self.squared.push(load.imbalance().squared.share() - floor(&load));
    }

    fn mean(&self) -> f64 {
        self.squared.iter().sum::<f64>() / self.squared.len() as f64
    }

    fn median(&self) -> f64 {
        let mut sorted = self.squared.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    }

    fn moves(&self) -> f64 {
        self.moves as f64 / self.squared.len() as f64
    }
}

/// A squared imbalance below which no assignment comes: as if all shards could be divided, except
/// those that are heavier than what the rest leaves for each of the other lanes.
fn floor(load: &LoadSnapshot) -> f64 {
    let mut weights: Vec<f64> = load.shards().iter().map(|shard| shard.load.share()).collect();
    weights.sort_by(|one, other| other.total_cmp(one));
    let (mut rest, mut lanes) = (weights.iter().sum::<f64>(), load.active().count() as f64);
    let mean = rest / lanes;
    let mut squared = 0.0;
    for weight in weights {
        if weight * lanes <= rest {
            break;
        }
        squared += (weight - mean).powi(2);
        rest -= weight;
        lanes -= 1.0;
    }
    squared + lanes * (rest / lanes - mean).powi(2)
}

struct Row {
    lanes: usize,
    rsspp: Outcome,
    local: Outcome,
    /// How often local search is better.
    better: usize,
}

fn table(title: &str, plans: usize) -> Vec<Row> {
    println!("\n{title}: squared imbalance above the floor (mean, median), moves");
    println!("lanes   before |    rsspp   median  moves |    local   median  moves | better");
    let sizes = [2, 4, 8, 16, 24, 32, 48, 64];
    sizes.map(|lanes| row(lanes, plans)).into_iter().collect()
}

fn row(lanes: usize, plans: usize) -> Row {
    let (mut rsspp, mut local, mut before) = <(Outcome, Outcome, Outcome)>::default();
    for seed in 0..INSTANCES {
        let load = load::zipf_like((seed << 8 | lanes) as u64, lanes, SHARDS);
        before.add(&mut Rsspp::default(), &load, 0);
        rsspp.add(&mut Rsspp::default(), &load, plans);
        local.add(&mut LocalSearch::default(), &load, plans);
    }
    let pairs = local.squared.iter().zip(&rsspp.squared);
    let better = pairs.filter(|(ours, theirs)| ours < theirs).count();
    let show =
        |of: &Outcome| format!("{:>8.1e} {:>8.1e} {:>6.1}", of.mean(), of.median(), of.moves());
    let percent = 100 * better / INSTANCES;
    println!(
        "{lanes:>5} {:>8.1e} | {} | {} | {percent:>4} %",
        before.mean(),
        show(&rsspp),
        show(&local)
    );
    Row { lanes, rsspp, local, better }
}

#[test]
fn local_search_balances_better_than_rsspp_for_about_as_many_moves() {
    println!("{INSTANCES} loads of {SHARDS} shards per row");
    for row in table("one plan", 1).iter().filter(|row| row.lanes >= 16) {
        let Row { lanes, rsspp, local, better } = row;
        assert!(local.mean() < rsspp.mean() / 2.0, "{lanes} lanes");
        assert!(local.median() < rsspp.median(), "{lanes} lanes");
        assert!(*better > INSTANCES * 2 / 3, "{lanes} lanes");
        assert!(local.moves() <= 1.3 * rsspp.moves(), "{lanes} lanes");
    }
    for row in table("until a plan is empty", 100).iter().filter(|row| row.lanes >= 16) {
        let Row { lanes, rsspp, local, .. } = row;
        assert!(local.mean() < rsspp.mean() / 10.0, "{lanes} lanes");
    }
}
