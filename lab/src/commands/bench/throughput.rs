//! `rheo bench throughput`: the highest rate without loss.

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;

use rheostat_app::bench::Rows;
use rheostat_base::unit::parse_duration;
use rheostat_measure::record::{Column, TableRow};
use serde::Serialize;

use crate::commands::Failed;
use crate::real::{Real, Trial};
use crate::scenario::Scenario;
use crate::throughput::{LosslessRate, Search};

/// Trials that a rate may fail before it counts as failed.
const ATTEMPTS: u32 = 2;
/// The search begins between nothing and so many times what the lanes can do.
const MOST: f64 = 1.25;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # every policy of the scenario `balance`
  rheo bench throughput
  rheo bench throughput balance --policy rsspp --loss 0 --trial 60s
  rheo bench throughput my-scenario.toml --lanes 1,2 --json

A rate passes when a trial of it loses no more than the given share: 0 is the throughput of RFC 2544,
section 26.1 (NDR), 0.005 the partial drop rate that is usual for software (PDR). It fails when two
trials do. RFC 2544 requires trials of 60 seconds; shorter ones find rates that are a little higher.")]
pub(super) struct Args {
    /// A scenario that comes with rheostat, or a file: its traffic, chain, work and queues.
    #[arg(default_value = "balance")]
    scenario: String,
    /// Policies, instead of those of the scenario.
    #[arg(long = "policy", value_name = "NAME", value_delimiter = ',')]
    policies: Vec<String>,
    /// Numbers of lanes, instead of those of the scenario.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=64))]
    lanes: Vec<u16>,
    /// Shares of the packets that may be lost.
    #[arg(long, value_name = "SHARE", value_delimiter = ',', default_values_t = [0.0, 0.005], value_parser = share)]
    loss: Vec<f64>,
    /// How long each trial is.
    #[arg(long, default_value = "2s", value_parser = parse_duration)]
    trial: Duration,
    /// How closely to look, as a share of the rate.
    #[arg(long, value_name = "SHARE", default_value_t = 0.01, value_parser = precision)]
    precision: f64,
    /// Print rows as lines of JSON.
    #[arg(long)]
    json: bool,
}

/// What came of a search. The fields are those of the JSON output.
#[derive(Serialize)]
struct OfferedRow {
    policy: String,
    lanes: u16,
    /// The share of packets that may be lost.
    loss: f64,
    /// The highest rate that passed, in packets per second.
    pps: f64,
    /// The same as a share of what the lanes can do.
    load: f64,
    /// The lowest rate that failed.
    above_pps: f64,
    trials: u32,
    trial_seconds: f64,
}

/// Searches.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let mut scenario = Scenario::open(&args.scenario)?;
    if !args.policies.is_empty() {
        scenario.policies.clone_from(&args.policies);
    }
    if !args.lanes.is_empty() {
        scenario.lanes.clone_from(&args.lanes);
    }
    scenario.duration = args.trial;
    scenario.check()?;
    let mut real = Real::new(&scenario)?;
    let printed = Rows::table::<OfferedRow>(&crate::commands::BUILD, args.json);
    for &lanes in &scenario.lanes {
        for policy in &scenario.policies {
            for &loss in &args.loss {
                let seed = scenario.seeds[0];
                let trial = Trial { policy: policy.clone(), lanes, load: 1.0, seed };
                let row = search(&mut real, &trial, loss, args)?;
                printed.print(&row);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn search(
    real: &mut Real<'_>,
    trial: &Trial,
    loss: f64,
    args: &Args,
) -> Result<OfferedRow, Failed> {
    let all = f64::from(trial.lanes) * real.capacity(trial)?;
    let mut search = Search::new(loss, MOST * all, args.precision, ATTEMPTS);
    while let Some(rate) = search.next() {
        let lost = real.run_at_rate(trial, rate)?.drop_share();
        if io::stderr().is_terminal() {
            err!(
                "{} on {} lanes: {rate:.0} pps lose {:.3} %",
                trial.policy,
                trial.lanes,
                100.0 * lost
            );
        }
        search.note(lost);
    }
    let LosslessRate { rate, above, trials } = search.result();
    Ok(OfferedRow {
        policy: trial.policy.clone(),
        lanes: trial.lanes,
        loss,
        pps: rate.round(),
        load: (rate / all * 1e4).round() / 1e4,
        above_pps: above.round(),
        trials,
        trial_seconds: args.trial.as_secs_f64(),
    })
}

impl TableRow for OfferedRow {
    const COLUMNS: &'static [Column<OfferedRow>] = &[
        Column::name("policy", 14, |row| &row.policy),
        Column::count("lanes", 5, |row| row.lanes.into()),
        Column::text("loss", 7, |row| match row.loss {
            0.0 => "none".to_owned(),
            loss => format!("{:.2} %", 100.0 * loss),
        }),
        Column::number("pps", 12, 0, |row| row.pps),
        Column::number("load", 6, 3, |row| row.load),
        Column::count("trials", 7, |row| row.trials.into()),
    ];
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| (0.0..0.5).contains(share));
    share.ok_or_else(|| "a share of the packets from 0 to below 0.5".into())
}

fn precision(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| (0.001..=0.2).contains(share));
    share.ok_or_else(|| "a share of the rate between 0.001 and 0.2".into())
}
