//! How good the plans of the balancing policies are, over many loads.
//! `cargo test -p rheostat-steer --test policy_statistics -- --nocapture` prints the table.

mod load;

use rheostat_base::Time;
use rheostat_steer::policy::{LocalSearch, LoadSnapshot, Policy, Rsspp};

/// What a policy's plans come to, over the instances of one size.
#[derive(Default)]
struct Outcome {
    squared: Vec<f64>,
    moves: usize,
}

impl Outcome {
    fn add(&mut self, policy: &mut dyn Policy, load: &LoadSnapshot) -> f64 {
        let plan = policy.plan(Time::ZERO, load);
        let squared = load.after(&plan).expect("it fits").imbalance().squared.share();
        self.moves += plan.moves.len();
        self.squared.push(squared);
        squared
    }

    fn mean(&self) -> f64 {
        self.squared.iter().sum::<f64>() / self.squared.len() as f64
    }

    fn median(&self) -> f64 {
        let mut sorted = self.squared.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    }
}

#[test]
fn local_search_balances_better_than_rsspp_for_about_as_many_moves() {
    const INSTANCES: u64 = 200;
    println!("squared imbalance (mean, median) and moves per plan, {INSTANCES} loads of 128 shards");
    println!("lanes    before |     rsspp   median  moves |    local   median  moves | better");
    for lanes in [2, 4, 8, 16, 24, 32, 48, 64] {
        let (mut rsspp, mut local, mut before) = <(Outcome, Outcome, f64)>::default();
        let mut better = 0;
        for seed in 0..INSTANCES {
            let load = load::zipf_like(seed << 8 | lanes as u64, lanes, 128);
            before += load.imbalance().squared.share();
            let theirs = rsspp.add(&mut Rsspp::default(), &load);
            let ours = local.add(&mut LocalSearch::default(), &load);
            better += usize::from(ours < theirs);
        }
        let per_plan = |outcome: &Outcome| outcome.moves as f64 / INSTANCES as f64;
        println!(
            "{lanes:>5} {:>9.2e} | {:>9.2e} {:>8.1e} {:>6.1} | {:>8.2e} {:>8.1e} {:>6.1} | {better}",
            before / INSTANCES as f64,
            rsspp.mean(),
            rsspp.median(),
            per_plan(&rsspp),
            local.mean(),
            local.median(),
            per_plan(&local),
        );
    }
}
