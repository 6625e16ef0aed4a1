//! `rheo bench vacation`: Metronome's models against measurement.

use std::process::ExitCode;
use std::time::Duration;

use rheostat_app::bench::{Rows, SEED};
use rheostat_base::unit::parse_duration;

use crate::commands::Failed;
use crate::vacation::{CaseTemplate, VacationBench, VacationFigure, VacationRow};

/// Longer timeouts and targets are none that a model is about.
const LONGEST: Duration = Duration::from_millis(10);

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # every figure, in less than three minutes
  rheo bench vacation
  # the distribution of vacations of equal timeouts
  rheo bench vacation --figure 4.3
  rheo bench vacation --figure 4.3,5.10 --workers 2,3 --timeout 100us \\
    --load 0.05
  rheo bench vacation --figure 5.1,table-5.1 --target 10us,50us
  # what needs no quiet machine
  rheo bench vacation --only-simulated --window 5s
  rheo bench vacation --json > vacation.jsonl

Figures, by the numbers of the dissertation that describes Metronome:
  4.3        vacations of equal timeouts, by workers     real and simulated
  5.10       the same beside a CPU-bound program         real
  4.2.7      how often backups win at high load          real and simulated
  table-5.1  the load jumps from nothing to full rate    real and simulated
  5.1        latency and CPU time by target vacation     real and simulated
  5.2, 5.4   lost tries, CPU time, latency by workers    real and simulated
  5.3        latency beside both models, by load         real and simulated
  5.5        lost tries and CPU time by long timeout     real and simulated
  5.6        a load that rises and falls                 simulated
  5.11, 5.12 lost tries and CPU time by lanes, workers   simulated
  table-5.3  lanes with unequal loads                    simulated
  5.8.6      random or static binding, cores shared      simulated
  5.14       8 to 16 lanes                               simulated

M workers share N lanes. `real` rows are threads of the runtime on a simulated NIC that needs no core; `simulated` rows
are the same policies in virtual time, with the sleeps that this machine has just before. `model` is the law of
vacations with the measured sleeps of this machine, and `ks` the Kolmogorov-Smirnov distance from it. `aim`: whether at
most 10 % of the tries are lost, where timeouts adapt and M is between N and 2 N. `won`: vacations that another worker ended than the one
that began them. Latencies in us: measured; by the queue with multiple vacations; the same where packets of a burst
leave together, as lanes send them; and by the dissertation's E[V]/(1 - rho). Leave the machine alone meanwhile, and
build with --release.")]
pub(super) struct Args {
    /// Figures to take; all without this.
    #[arg(long = "figure", value_delimiter = ',', value_name = "NUMBER")]
    figures: Vec<VacationFigure>,
    /// Numbers of workers of figures 4.3 and 5.10.
    #[arg(long, value_delimiter = ',', default_value = "2,3,5", value_name = "M",
          value_parser = clap::value_parser!(u16).range(1..=64))]
    workers: Vec<u16>,
    /// Both timeouts of these figures.
    #[arg(long, default_value = "50us", value_parser = timeout)]
    timeout: Duration,
    /// Loads of these figures, as shares of what a lane can do; figure 5.10 takes the first.
    #[arg(long = "load", value_delimiter = ',', default_value = "0.02,0.1,0.3", value_parser = load)]
    loads: Vec<f64>,
    /// Target vacations of figure 5.1 and table 5.1.
    #[arg(long = "target", value_delimiter = ',', default_value = "10us,20us,50us,100us",
          value_parser = timeout)]
    targets: Vec<Duration>,
    /// The time that a packet takes.
    #[arg(long, default_value = "2us", value_parser = service)]
    service: Duration,
    /// How long each case is measured after a warm-up, in virtual time where it is simulated.
    #[arg(long, default_value = "800ms", value_parser = window)]
    window: Duration,
    /// Leave out what threads run.
    #[arg(long)]
    only_simulated: bool,
    /// Decides about everything random.
    #[arg(long, default_value_t = SEED)]
    seed: u64,
    /// Print rows as lines of JSON.
    #[arg(long)]
    json: bool,
}

/// Measures and simulates.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let template = CaseTemplate {
        workers: args.workers.iter().map(|workers| usize::from(*workers)).collect(),
        timeout: args.timeout,
        loads: args.loads.clone(),
        targets: args.targets.clone(),
        service: args.service,
        window: args.window,
        seed: args.seed,
    };
    let figures = rheostat_app::bench::given(args.figures.clone(), VacationFigure::ALL, usize::MAX);
    let bench = VacationBench { figures, template, only_simulated: args.only_simulated };
    let rows = Rows::table::<VacationRow>(&crate::commands::BUILD, args.json);
    bench.run(|row| rows.print(row))?;
    Ok(ExitCode::SUCCESS)
}

fn within(text: &str, least: Duration, most: Duration) -> Result<Duration, String> {
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    if (least..=most).contains(&time) {
        Ok(time)
    } else {
        Err(format!("between {least:?} and {most:?}"))
    }
}

fn timeout(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_micros(1), LONGEST)
}

fn service(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_nanos(200), Duration::from_micros(100))
}

fn window(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_millis(1), Duration::from_secs(60))
}

fn load(text: &str) -> Result<f64, String> {
    let load = text.parse::<f64>().ok().filter(|load| (0.0..=0.95).contains(load));
    load.ok_or_else(|| "between 0 and 0.95".into())
}
