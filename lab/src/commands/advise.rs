//! `rheo advise`: the scheduler for a service over TCP.

use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum;
use rheostat_base::unit::parse_duration;
use rheostat_measure::record::TableRow;
use serde::Serialize;

use crate::commands::Failed;
use crate::commands::machine_costs::{CostsOrigin, UsedCosts};
use crate::commands::sim::SchedSetup;
use crate::sim::sched::{Advice, RequestCosts, SchedBench, SchedRow, Variability};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo advise --service 100us
  rheo advise --service 5us --variability bimodal-1 --load 0.6 --cores 4
  rheo advise --service 1us --costs thesis
  rheo advise --service 1us --costs measured:my-costs.json --json

The schedulers that use the cores are simulated (rheo sim sched), and the one
with the least p99.9 is recommended. `--service` is the mean of all requests: of
bimodal-1, 99.5 % take a hundredth of the time of the others; of bimodal-2, half
do. Load 1 is what the cores could do if TCP and the application were all there
is to do.

The answer is for the costs of this machine and names them. They are measured at
first use, in up to 20 s, and kept in costs.json in the cache folder
(docs/schedulers.md). While other programs keep the machine busy, and in a debug
build without kept costs, shipped costs of another machine take their place, and
the answer says so. Where the costs of the thesis lead to another scheduler, it
is printed, too. The exit status is 2 when no scheduler can do the load.")]
pub(crate) struct Args {
    /// The mean time that the application takes for a request.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    service: Duration,
    /// How service times vary.
    #[arg(long, value_enum, default_value = "constant")]
    variability: VariabilityName,
    /// The load: above 0 and at most 2.
    #[arg(long, value_name = "SHARE", default_value_t = 0.8)]
    load: f64,
    /// Cores.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=64))]
    cores: u16,
    #[command(flatten)]
    setup: SchedSetup,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum VariabilityName {
    /// All alike.
    Constant,
    /// 99.5 % short, 0.5 % a hundred times as long.
    #[value(name = "bimodal-1")]
    Bimodal1,
    /// Half short, half a hundred times as long.
    #[value(name = "bimodal-2")]
    Bimodal2,
    /// Exponential.
    Exponential,
}

/// The advice for the costs in use, as JSON has it.
#[derive(Serialize)]
struct AdviceAnswer<'a> {
    #[serde(flatten)]
    advice: &'a Advice,
    /// Whose costs it is for.
    costs: CostsOrigin,
    /// What the costs of the thesis lead to; `null` where that is the same scheduler, and where they are in use.
    thesis: Option<ThesisAnswer>,
}

/// What the costs of the thesis lead to.
#[derive(Serialize)]
struct ThesisAnswer {
    /// The scheduler; `null` if none can do the load.
    scheduler: Option<String>,
    /// Its 99.9th percentile in microseconds, with the costs of the thesis.
    expected_p999_us: Option<f64>,
}

impl ThesisAnswer {
    /// What the thesis's costs lead to, where that is another scheduler than `advice` has.
    fn beside(advice: &Advice, thesis: Advice) -> Option<ThesisAnswer> {
        let Advice { scheduler, expected_p999_us, .. } = thesis;
        (scheduler != advice.scheduler).then_some(ThesisAnswer { scheduler, expected_p999_us })
    }
}

impl VariabilityName {
    fn variability(self) -> Variability {
        match self {
            VariabilityName::Constant => Variability::Constant,
            VariabilityName::Bimodal1 => Variability::Bimodal1,
            VariabilityName::Bimodal2 => Variability::Bimodal2,
            VariabilityName::Exponential => Variability::Exponential,
        }
    }
}

/// Simulates and recommends the best.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failed> {
    args.setup.check_lock()?;
    let service = (args.service, args.variability.variability());
    let (unused, machine) = (RequestCosts::thesis(), args.setup.machine());
    let mut bench = args.setup.bench(args.cores, &unused, machine.as_ref());
    // Before anything is measured.
    Advice::check(&bench, service, args.load)?;
    let used = args.setup.costs()?;
    bench.costs = &used.costs;
    let advice = Advice::of(&bench, service, args.load)?;
    let thesis = args.setup.thesis();
    let thesis = thesis.map(|costs| {
        Advice::of(&SchedBench { costs: &costs, ..bench.clone() }, service, args.load)
    });
    let thesis = thesis.transpose()?.and_then(|thesis| ThesisAnswer::beside(&advice, thesis));
    if args.setup.json {
        let answer = AdviceAnswer { advice: &advice, costs: used.origin(), thesis };
        out!("{}", serde_json::to_string(&answer).expect("an answer is plain data"));
    } else {
        show(&advice, &used, thesis.as_ref());
    }
    if advice.scheduler.is_none() {
        err!("error: {}", advice.reason);
        return Ok(ExitCode::from(2));
    }
    Ok(ExitCode::SUCCESS)
}

fn show(advice: &Advice, used: &UsedCosts, thesis: Option<&ThesisAnswer>) {
    if let (Some(scheduler), Some(time)) = (&advice.scheduler, advice.expected_p999_us) {
        out!("{scheduler}: p99.9 {time:.1} us, simulated");
        out!("because {}", advice.reason);
        match (&advice.runner_up, advice.runner_up_p999_us) {
            (Some(next), Some(time)) => out!("runner-up: {next}, {time:.1} us"),
            _ => out!("no other scheduler can do the load"),
        }
    }
    out!("costs: {used}");
    match thesis.map(|thesis| (&thesis.scheduler, thesis.expected_p999_us)) {
        Some((Some(scheduler), Some(time))) => {
            out!("with the thesis's costs: {scheduler}, {time:.1} us");
        }
        Some(_) => out!("with the thesis's costs: no scheduler can do the load"),
        None => {}
    }
    out!("{}", SchedRow::heading());
    for row in &advice.considered {
        out!("{}", row.line());
    }
}
