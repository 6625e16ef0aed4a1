//! `rheo advise`: which scheduler to take for a service over TCP.

use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum;
use rheostat_base::unit::parse_duration;
use rheostat_bench::sim::sched::{Advice, SchedTable, Variability};

use crate::failure::Failure;
use crate::sim::SchedSetup;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo advise --service 100us                              constant service times, load 0.8, 8 cores
  rheo advise --service 5us --variability bimodal-1 --load 0.6 --cores 4
  rheo advise --service 1us --costs measured:my-costs.json --json

The schedulers that use the cores are simulated with the given costs (rheo sim sched), and the one with the least p99.9 is
named. `--service` is the mean of all requests: of bimodal-1, 99.5 % take a hundredth of what the others take; of bimodal-2,
half do. Load 1 is what the cores could do if TCP and the application were all there is to do. The exit status is 2 when no
scheduler can do the load.")]
pub(crate) struct Args {
    /// What the application takes for a request, on average.
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

/// Simulates and names the best.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let costs = args.setup.costs()?;
    let machine = args.setup.machine();
    let bench = args.setup.bench(args.cores, &costs, machine.as_ref());
    let variability = match args.variability {
        VariabilityName::Constant => Variability::Constant,
        VariabilityName::Bimodal1 => Variability::Bimodal1,
        VariabilityName::Bimodal2 => Variability::Bimodal2,
        VariabilityName::Exponential => Variability::Exponential,
    };
    let advice = Advice::of(&bench, (args.service, variability), args.load)?;
    if args.setup.json {
        out!("{}", serde_json::to_string(&advice).expect("advice is plain data"));
        return Ok(ExitCode::SUCCESS);
    }
    out!("{}: p99.9 {:.1} us, simulated", advice.scheduler, advice.expected_p999_us);
    out!("because {}", advice.reason);
    match (&advice.runner_up, advice.runner_up_p999_us) {
        (Some(next), Some(time)) => out!("runner-up: {next}, {time:.1} us"),
        _ => out!("no other scheduler can do the load"),
    }
    out!("costs: {}", costs.about);
    out!("{}", SchedTable::heading());
    for row in &advice.considered {
        out!("{}", SchedTable::line(row));
    }
    Ok(ExitCode::SUCCESS)
}
