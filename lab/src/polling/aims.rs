//! What the rows are held against.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::PollingRow;
use super::slices::LEAST;

/// The highest load at which nothing may be lost that busy polling does not lose.
const LOSSLESS_LOAD: f64 = 0.95;
/// The highest load at which the target latency is to hold.
const TARGET_LOAD: f64 = 0.8;
/// Processor time of an idle lane beyond one sleep cycle and one empty poll per vacation.
const IDLE_FACTOR: f64 = 1.3;
/// Processor time of a lane that waits for an interrupt.
const INTERRUPT_SHARE: f64 = 0.01;
/// Two p99 within this factor count as equal.
const EQUAL: f64 = 1.1;

/// What this machine makes possible, measured beside the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// Packets per second of busy polling, all lanes together: a load of 1.
    pub capacity_pps: f64,
    /// A packet on its way from the device, measured alone, in nanoseconds.
    pub source_ns: f64,
    /// Processor time of a sleep of about the target, in microseconds.
    pub sleep_cycle_us: f64,
    /// From one wake-up of step-sleep to the next without packets, in microseconds: its longest sleep, and what the kernel
    /// adds.
    pub step_sleep_period_us: f64,
    /// A poll that finds nothing, in microseconds.
    pub empty_poll_us: f64,
    /// The shortest sleep worth taking, in microseconds.
    pub shortest_sleep_us: f64,
    /// What the machine itself adds to 1 % of all moments on cores that spin, in microseconds.
    pub noise_p99_us: f64,
}

/// One aim, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Aim {
    /// What is aimed at.
    pub aim: String,
    /// Whether it was reached; `null` where no row decides.
    pub reached: Option<bool>,
    /// The figures that decide.
    pub figures: String,
}

impl fmt::Display for Aim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.reached {
            Some(true) => "reached",
            Some(false) => "NOT REACHED",
            None => "not measured",
        };
        write!(f, "{word:<12} {}: {}", self.aim, self.figures)
    }
}

/// Holds rows against the aims: those without a program beside them that the machine did not disturb for most of the time.
/// Rows have targets of `target_us` for vacations.
pub fn aims(rows: &[PollingRow], costs: &Costs, target_us: f64) -> Vec<Aim> {
    let counts = |row: &&PollingRow| row.beside.is_none() && row.quiet >= LEAST;
    let rows: Vec<&PollingRow> = rows.iter().filter(counts).collect();
    vec![
        loss(&rows),
        latency(&rows, costs),
        idle(&rows, costs, target_us),
        interrupt(&rows),
        step_sleep(&rows),
    ]
}

/// The row of a policy at a load.
fn at<'a>(rows: &[&'a PollingRow], policy: &str, load: f64) -> Option<&'a PollingRow> {
    rows.iter().find(|row| row.policy == policy && row.load == load).copied()
}

fn is_metronome(row: &PollingRow) -> bool {
    row.policy.starts_with("metronome")
}

/// Each judgement is of one load. The aim is reached where all are.
fn all(aim: &str, judged: Vec<(bool, String)>) -> Aim {
    let reached = (!judged.is_empty()).then(|| judged.iter().all(|(reached, _)| *reached));
    let figures: Vec<_> = judged.into_iter().map(|(_, figures)| figures).collect();
    let figures = if figures.is_empty() { "not measured".to_owned() } else { figures.join("; ") };
    Aim { aim: aim.to_owned(), reached, figures }
}

fn loss(rows: &[&PollingRow]) -> Aim {
    let judge = |row: &&PollingRow| {
        let busy = at(rows, "busy", row.load)?.loss;
        let again = at(rows, "busy-again", row.load)?.loss;
        // What chance does to busy polling, it may do to others.
        let most = busy.max(again) + (busy - again).abs();
        let figures = format!(
            "{} at {}: {:.6} of {:.6} and {:.6} by busy polling",
            row.policy, row.load, row.loss, busy, again
        );
        Some((row.loss <= most, figures))
    };
    let rows = rows.iter().copied().filter(|row| is_metronome(row));
    let rows = rows.filter(|row| row.load > 0.0 && row.load <= LOSSLESS_LOAD);
    all(
        "loss within the A/A spread of busy polling up to 95 % of its throughput",
        rows.collect::<Vec<_>>().iter().filter_map(judge).collect(),
    )
}

fn latency(rows: &[&PollingRow], costs: &Costs) -> Aim {
    let judge = |row: &&&PollingRow| {
        let p99 = row.p99_us?;
        let busy = at(rows, "busy", row.load).and_then(|row| row.p99_us).unwrap_or(0.0);
        // What busy polling misses too is the machine's.
        let is_noise = busy > row.target_us || costs.noise_p99_us > row.target_us;
        let reached = p99 <= row.target_us;
        let mark = if !reached && is_noise { " (machine noise)" } else { "" };
        let figures = format!(
            "{p99:.1} us of {:.0} at {} in {} mode, busy polling {busy:.1}{mark}",
            row.target_us, row.load, row.mode
        );
        Some((reached || is_noise, figures))
    };
    let rows = rows
        .iter()
        .filter(|row| row.policy == "metronome-p99" && row.load > 0.0 && row.load <= TARGET_LOAD);
    all("p99 within the target up to a load of 80 %", rows.filter_map(|row| judge(&row)).collect())
}

fn idle(rows: &[&PollingRow], costs: &Costs, target_us: f64) -> Aim {
    let most = IDLE_FACTOR * (costs.sleep_cycle_us + costs.empty_poll_us) / target_us;
    let idle = |row: &&&PollingRow| {
        row.policy == "metronome" && row.load == 0.0 && row.mode == "metronome"
    };
    let judged = rows.iter().filter(idle).map(|row| {
        let figures = format!("{:.2} % of at most {:.2} %", 100.0 * row.cpu_share, 100.0 * most);
        (row.cpu_share <= most, figures)
    });
    all("idle CPU at most 1.3 × (a sleep cycle + an empty poll) ÷ vacation", judged.collect())
}

fn interrupt(rows: &[&PollingRow]) -> Aim {
    let judged = rows.iter().filter(|row| row.load == 0.0 && row.mode == "interrupt").map(|row| {
        let figures = format!("{} {:.2} %", row.policy, 100.0 * row.cpu_share);
        (row.cpu_share <= INTERRUPT_SHARE, figures)
    });
    all("at most 1 % once lanes wait for an interrupt", judged.collect())
}

/// At each load, the cheapest metronome whose p99 is at most that of step-sleep.
fn step_sleep(rows: &[&PollingRow]) -> Aim {
    let judge = |step: &&&PollingRow| {
        let (load, p99) = (step.load, step.p99_us?);
        let spread = match (at(rows, "busy", load), at(rows, "busy-again", load)) {
            (Some(busy), Some(again)) => (busy.cpu_share - again.cpu_share).abs(),
            _ => 0.0,
        };
        let mut equal = rows.iter().filter(|row| is_metronome(row) && row.load == load);
        let best = equal
            .by_ref()
            .filter(|row| row.p99_us.is_some_and(|own| own <= p99 * EQUAL))
            .min_by(|a, b| a.cpu_share.total_cmp(&b.cpu_share));
        let of_step = format!("step-sleep {:.1} % ({p99:.1} us)", 100.0 * step.cpu_share);
        let Some(best) = best else {
            return Some((false, format!("at {load} {of_step}, no metronome row as quick")));
        };
        let figures = format!(
            "at {load} {} {:.1} % ({:.1} us), {of_step}",
            best.policy,
            100.0 * best.cpu_share,
            best.p99_us.unwrap_or_default(),
        );
        Some((best.cpu_share <= step.cpu_share + spread, figures))
    };
    let steps = rows.iter().filter(|row| row.policy == "step-sleep");
    all(
        "never more CPU than step-sleep at equal p99",
        steps.filter_map(|row| judge(&row)).collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(policy: &str, load: f64, (cpu, loss, p99): (f64, f64, f64)) -> PollingRow {
        PollingRow {
            policy: policy.into(),
            chain: "forward".into(),
            workers: 1,
            lanes: 1,
            load,
            rate_pps: 1e6 * load,
            cpu_share: cpu,
            source_cpu_share: 0.0,
            loss,
            p50_us: Some(p99 / 2.0),
            p99_us: Some(p99),
            target_us: if policy == "metronome-p99" { 100.0 } else { 10.0 },
            vacation_mean_us: None,
            mode: if policy.starts_with("metronome") { "metronome" } else { policy }.into(),
            lost_tries: None,
            wake_ups_per_s: 0.0,
            seconds: 1.0,
            quiet: 1.0,
            run_delay_ms: 0.0,
            steal_ms: 0.0,
            beside: None,
            beside_slowdown: None,
        }
    }

    const COSTS: Costs = Costs {
        capacity_pps: 1e6,
        source_ns: 50.0,
        sleep_cycle_us: 4.0,
        step_sleep_period_us: 13.4,
        empty_poll_us: 0.2,
        shortest_sleep_us: 4.0,
        noise_p99_us: 5.0,
    };

    fn reached(rows: &[PollingRow]) -> Vec<Option<bool>> {
        aims(rows, &COSTS, 10.0).iter().map(|aim| aim.reached).collect()
    }

    #[test]
    fn without_rows_no_aim_is_judged() {
        assert_eq!(reached(&[]), [None; 5]);
    }

    #[test]
    fn rows_within_the_aims_reach_them() {
        let rows = [
            row("busy", 0.95, (0.95, 0.001, 20.0)),
            row("metronome", 0.95, (0.9, 0.004, 40.0)),
            row("busy-again", 0.95, (0.95, 0.002, 20.0)),
            row("metronome-p99", 0.8, (0.5, 0.0, 99.0)),
            row("metronome", 0.0, (0.54, 0.0, 0.0)),
            PollingRow { mode: "interrupt".into(), ..row("metronome", 0.0, (0.009, 0.0, 0.0)) },
            row("interrupt", 0.0, (0.01, 0.0, 0.0)),
            row("step-sleep", 0.95, (0.91, 0.0, 39.0)),
        ];
        // Loss: 0.003 at most, for the two of busy polling differ by 0.001.
        assert_eq!(reached(&rows), [Some(false), Some(true), Some(true), Some(true), Some(true)]);
        let mut rows = rows.to_vec();
        rows[1].loss = 0.003;
        assert_eq!(reached(&rows)[0], Some(true));
    }

    #[test]
    fn rows_beyond_them_do_not() {
        let rows = [
            row("metronome-p99", 0.8, (0.5, 0.0, 101.0)),
            row("metronome", 0.0, (0.56, 0.0, 0.0)),
            row("interrupt", 0.0, (0.011, 0.0, 0.0)),
            row("metronome", 0.5, (0.62, 0.0, 30.0)),
            row("step-sleep", 0.5, (0.6, 0.0, 30.0)),
            // Quicker and dearer, and cheaper and slower, which is no match.
            row("metronome-equal", 0.5, (0.5, 0.0, 50.0)),
        ];
        assert_eq!(reached(&rows), [None, Some(false), Some(false), Some(false), Some(false)]);
        let beside: Vec<_> =
            rows.map(|row| PollingRow { beside: Some("nice:19/-20".into()), ..row }).into();
        assert_eq!(reached(&beside), [None; 5], "rows beside a program are another matter");
        let disturbed: Vec<_> =
            beside.into_iter().map(|row| PollingRow { beside: None, quiet: 0.1, ..row }).collect();
        assert_eq!(reached(&disturbed), [None; 5], "and so are those of a machine that was busy");
    }

    #[test]
    fn what_busy_polling_misses_too_is_the_machines() {
        let rows =
            [row("metronome-p99", 0.2, (0.5, 0.0, 300.0)), row("busy", 0.2, (1.0, 0.0, 150.0))];
        let aim = aims(&rows, &COSTS, 10.0).swap_remove(1);
        assert_eq!(aim.reached, Some(true));
        assert!(aim.figures.ends_with("(machine noise)"), "{aim}");
    }
}
