//! What runs came to.

use serde::{Deserialize, Serialize};

use crate::classes::ClassMix;
use crate::interval;
use crate::latencies::Latencies;
use crate::ledger::ClassLedger;
use crate::receiver::Ends;
use crate::run_result::RunResult;
use crate::self_check::{Floor, MISSING};

/// What all runs came to. Times are in microseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LoadReport {
    /// The server.
    pub server: String,
    /// The server's scheduler, if the caller named it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub scheduler: Option<String>,
    /// The protocol.
    pub protocol: String,
    /// The gaps between requests.
    pub arrivals: String,
    /// Connections.
    pub connections: usize,
    /// Connections on each of the server's queues, where its hash is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub queues: Option<Vec<usize>>,
    /// Requests a second that were asked for.
    pub rate: f64,
    /// Requests a second that were sent.
    pub offered: f64,
    /// Replies a second that came.
    pub achieved: f64,
    /// Replies that were measured.
    pub replies: u64,
    /// Latencies from the moment a request was due, over all runs.
    pub p50_us: Option<f64>,
    /// As above.
    pub p90_us: Option<f64>,
    /// As above.
    pub p99_us: Option<f64>,
    /// As above.
    pub p999_us: Option<f64>,
    /// As above.
    pub p9999_us: Option<f64>,
    /// As above.
    pub max_us: Option<f64>,
    /// Requests that were due and not sent by the end of their run.
    pub not_sent: u64,
    /// Requests that were sent more than a millisecond after they were due; their latencies have that.
    pub late: u64,
    /// From the moment a request was due to its sending.
    pub lateness_p999_us: Option<f64>,
    /// Requests that were sent and had no reply by the end of their run.
    pub unanswered: u64,
    /// Requests whose connection ended before the reply.
    pub lost: u64,
    /// Replies that report an error.
    pub failed: u64,
    /// Connections that the server closed.
    pub closed: u64,
    /// Connections that were reset.
    pub reset: u64,
    /// Connections that were not accepted again.
    pub refused: u64,
    /// Connections that were given up because of what the server said.
    pub garbage: u64,
    /// Half of the 95 % interval of the mean of the runs' p99.9; none with one run.
    pub ci95: Option<f64>,
    /// That mean.
    pub p999_mean_us: Option<f64>,
    /// The client's own p99.9, against a sink in its process.
    pub floor_us: Option<f64>,
    /// Runs that were measured.
    pub runs: usize,
    /// Seconds that were measured in all.
    pub seconds: f64,
    /// Whether the runs were ended early.
    pub interrupted: bool,
    /// Whether the only run ended in its warm-up, which is what is reported.
    pub warm_up_only: bool,
    /// The p99.9 of each run.
    pub run_p999_us: Vec<Option<f64>>,
    /// The classes of requests.
    pub classes: Vec<ClassReport>,
    /// Why it ended early, unless it was told to.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub problem: Option<String>,
    /// All latencies of all runs.
    #[serde(skip)]
    pub latency: Latencies,
}

/// What a class came to. Slowdown is latency ÷ service time, for servers that state it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClassReport {
    /// Its name: a service time, where the server picks the class.
    pub name: String,
    /// Replies.
    pub replies: u64,
    /// Latencies.
    pub p50_us: Option<f64>,
    /// As above.
    pub p99_us: Option<f64>,
    /// As above.
    pub p999_us: Option<f64>,
    /// As above.
    pub p9999_us: Option<f64>,
    /// The mean of what requests should have taken.
    pub service_us: Option<f64>,
    /// The mean of what they took.
    pub took_us: Option<f64>,
    /// Slowdowns.
    pub slowdown_p50: Option<f64>,
    /// As above.
    pub slowdown_p99: Option<f64>,
    /// As above.
    pub slowdown_p999: Option<f64>,
}

/// What was asked for.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The server.
    pub server: String,
    /// Its scheduler, if that is known.
    pub scheduler: Option<String>,
    /// The protocol.
    pub protocol: String,
    /// The gaps between requests.
    pub arrivals: String,
    /// Connections.
    pub connections: usize,
    /// Requests a second.
    pub rate: f64,
    /// Classes, if the client has any.
    pub mix: ClassMix,
}

/// Whether a report may be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The rate was offered, and there were replies.
    Offered,
    /// Less was sent than was asked for.
    NotOffered,
    /// Nothing was answered, or the server went away.
    Failed,
}

fn thousandths(value: u64) -> f64 {
    value as f64 / 1e3
}

fn quantile(latencies: &Latencies, share: f64) -> Option<f64> {
    latencies.quantile(share).map(thousandths)
}

impl LoadReport {
    /// Of runs, in order.
    pub fn new(
        asked: Asked,
        runs: &[RunResult],
        floor: Option<Floor>,
        queues: Option<Vec<usize>>,
    ) -> LoadReport {
        let mut latency = Latencies::default();
        let mut lateness = Latencies::default();
        let mut classes: Vec<ClassLedger> = Vec::new();
        let mut ends = Ends::default();
        let (mut seconds, mut within) = (0.0, 0);
        for run in runs {
            latency.add(&run.ledger.latency());
            lateness.add(&run.sent.lateness);
            ends.add(run.ends);
            seconds += run.ledger.window().seconds();
            within += run.ledger.within;
            if classes.len() < run.ledger.classes.len() {
                classes.resize_with(run.ledger.classes.len(), ClassLedger::default);
            }
            classes.iter_mut().zip(&run.ledger.classes).for_each(|(all, one)| all.add(one));
        }
        let sum = |count: fn(&RunResult) -> u64| runs.iter().map(count).sum::<u64>();
        let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        let run_p999: Vec<_> =
            runs.iter().map(|run| quantile(&run.ledger.latency(), 0.999)).collect();
        let known: Vec<f64> = run_p999.iter().flatten().copied().collect();
        let interval = interval::of(&known);
        let classes = classes.iter().enumerate().filter(|(_, class)| class.latency.count() > 0);
        LoadReport {
            server: asked.server,
            scheduler: asked.scheduler,
            protocol: asked.protocol,
            arrivals: asked.arrivals,
            connections: asked.connections,
            queues,
            rate: asked.rate,
            offered: per_second(sum(|run| run.sent.sent)),
            achieved: per_second(within),
            replies: latency.count(),
            p50_us: quantile(&latency, 0.5),
            p90_us: quantile(&latency, 0.9),
            p99_us: quantile(&latency, 0.99),
            p999_us: quantile(&latency, 0.999),
            p9999_us: quantile(&latency, 0.9999),
            max_us: latency.most().map(thousandths),
            not_sent: sum(|run| run.sent.not_sent),
            late: sum(|run| run.sent.late),
            lateness_p999_us: quantile(&lateness, 0.999),
            unanswered: sum(|run| run.unanswered),
            lost: sum(|run| run.ledger.lost),
            failed: sum(|run| run.ledger.failed),
            closed: ends.closed,
            reset: ends.reset,
            refused: ends.refused,
            garbage: ends.garbage,
            ci95: interval.map(|interval| interval.half),
            p999_mean_us: interval.map(|interval| interval.mean),
            floor_us: floor.map(|floor| thousandths(floor.p999)),
            runs: runs.len(),
            seconds,
            interrupted: runs.iter().any(|run| run.is_early && run.problem.is_none()),
            warm_up_only: runs.iter().all(|run| run.is_warm_up) && !runs.is_empty(),
            run_p999_us: run_p999,
            classes: classes.map(|(number, class)| of_class(number, class, &asked.mix)).collect(),
            problem: runs.iter().find_map(|run| run.problem.as_ref()).map(ToString::to_string),
            latency,
        }
    }

    /// Whether the rate was offered and answered: 99 % of what was due was sent.
    pub fn verdict(&self) -> Verdict {
        let sent = self.replies + self.unanswered + self.lost;
        let due = sent + self.not_sent;
        if self.problem.is_some() || (self.replies == 0 && sent > 0) {
            Verdict::Failed
        } else if self.not_sent as f64 > MISSING * due as f64 {
            Verdict::NotOffered
        } else {
            Verdict::Offered
        }
    }
}

fn of_class(number: usize, class: &ClassLedger, mix: &ClassMix) -> ClassReport {
    let name = match (mix.classes().get(number), class.bounds) {
        (Some(class), _) => class.name.clone(),
        (None, Some((least, most))) if least == most => time(least),
        (None, Some(_)) => format!("class {number}"),
        (None, None) => "all".to_owned(),
    };
    let mean = |sum: u64| (class.served > 0).then(|| sum as f64 / class.served as f64 / 1e3);
    ClassReport {
        name,
        replies: class.latency.count(),
        p50_us: quantile(&class.latency, 0.5),
        p99_us: quantile(&class.latency, 0.99),
        p999_us: quantile(&class.latency, 0.999),
        p9999_us: quantile(&class.latency, 0.9999),
        service_us: mean(class.service),
        took_us: mean(class.took),
        slowdown_p50: quantile(&class.slowdown, 0.5),
        slowdown_p99: quantile(&class.slowdown, 0.99),
        slowdown_p999: quantile(&class.slowdown, 0.999),
    }
}

/// A service time as a name.
fn time(nanos: u64) -> String {
    match nanos {
        1_000_000.. => format!("{}ms", nanos as f64 / 1e6),
        1_000.. => format!("{}us", nanos as f64 / 1e3),
        _ => format!("{nanos}ns"),
    }
}
