//! Reports for people, and as lines of a table.

use std::fmt;

use crate::report::{LoadReport, Verdict};

/// The columns of [`LoadReport::tsv`].
const COLUMNS: [&str; 15] = [
    "server",
    "class",
    "rate",
    "offered",
    "achieved",
    "replies",
    "p50_us",
    "p99_us",
    "p999_us",
    "p9999_us",
    "slowdown_p999",
    "not_sent",
    "unanswered",
    "ci95",
    "floor_us",
];

/// A number of microseconds, or a dash.
fn us(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"))
}

impl LoadReport {
    /// A line of names, a line for all requests, and one for each class, with tabs between.
    pub fn tsv(&self) -> String {
        let mut lines = vec![COLUMNS.join("\t")];
        let row = |class: &str, replies: u64, latencies: [Option<f64>; 4], slowdown| {
            let [p50, p99, p999, p9999] = latencies.map(us);
            [
                self.server.clone(),
                class.to_owned(),
                format!("{}", self.rate),
                format!("{:.1}", self.offered),
                format!("{:.1}", self.achieved),
                replies.to_string(),
                p50,
                p99,
                p999,
                p9999,
                us(slowdown),
                self.not_sent.to_string(),
                self.unanswered.to_string(),
                us(self.ci95),
                us(self.floor_us),
            ]
            .join("\t")
        };
        let all = [self.p50_us, self.p99_us, self.p999_us, self.p9999_us];
        lines.push(row("all", self.replies, all, None));
        for class in &self.classes {
            let latencies = [class.p50_us, class.p99_us, class.p999_us, class.p9999_us];
            lines.push(row(&class.name, class.replies, latencies, class.slowdown_p999));
        }
        lines.join("\n")
    }

    /// Why the rate may not be claimed, where it may not.
    pub fn complaint(&self) -> Option<String> {
        match self.verdict() {
            Verdict::Offered => None,
            Verdict::Failed => Some(self.problem.clone().unwrap_or_else(|| {
                format!("{} answered none of {} requests", self.server, self.unanswered + self.lost)
            })),
            Verdict::NotOffered => Some(format!(
                "the rate of {:.0}/s was not offered: {} requests were not sent by the end of their run, since no connection took \
                 them. What is above is of {:.0}/s. Ask for less, or give it more --connections or --outstanding",
                self.rate, self.not_sent, self.offered
            )),
        }
    }
}

impl fmt::Display for LoadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LoadReport { server, protocol, arrivals, connections, runs, seconds, .. } = self;
        let noun = if *runs == 1 { "run" } else { "runs" };
        writeln!(
            f,
            "{server}, {protocol}, {arrivals} arrivals, {connections} connections; {runs} {noun}, {seconds:.2} s measured"
        )?;
        if let Some(queues) = &self.queues {
            let queues: Vec<_> = queues.iter().map(usize::to_string).collect();
            writeln!(f, "connections by queue: {}", queues.join(" "))?;
        }
        writeln!(
            f,
            "{:.0}/s asked, {:.0}/s offered, {:.0}/s achieved",
            self.rate, self.offered, self.achieved
        )?;
        writeln!(
            f,
            "{:>14} {:>10} {:>9} {:>9} {:>9} {:>9} {:>11}  slowdown p50, p99, p99.9",
            "us", "replies", "p50", "p99", "p99.9", "p99.99", "service"
        )?;
        let line =
            |f: &mut fmt::Formatter<'_>, name: &str, replies, latencies: [Option<f64>; 4]| {
                let [p50, p99, p999, p9999] = latencies.map(us);
                write!(f, "{name:>14} {replies:>10} {p50:>9} {p99:>9} {p999:>9} {p9999:>9}")
            };
        line(f, "all", self.replies, [self.p50_us, self.p99_us, self.p999_us, self.p9999_us])?;
        writeln!(f)?;
        for class in
            self.classes.iter().filter(|class| self.classes.len() > 1 || class.service_us.is_some())
        {
            let latencies = [class.p50_us, class.p99_us, class.p999_us, class.p9999_us];
            line(f, &class.name, class.replies, latencies)?;
            if let (Some(service), Some(took)) = (class.service_us, class.took_us) {
                let slowdowns =
                    [class.slowdown_p50, class.slowdown_p99, class.slowdown_p999].map(us);
                write!(f, " {:>11}  {}", format!("{service:.1}/{took:.1}"), slowdowns.join(", "))?;
            }
            writeln!(f)?;
        }
        if let (Some(mean), Some(half)) = (self.p999_mean_us, self.ci95) {
            writeln!(f, "p99.9 of the runs: {mean:.1} us on average, within {half:.1} us at 95 %")?;
        }
        if let Some(floor) = self.floor_us {
            writeln!(
                f,
                "floor: p99.9 of this client against a sink in its process is {floor:.1} us"
            )?;
        }
        let counts = [
            (self.not_sent, "not sent"),
            (self.late, "sent more than 1 ms late"),
            (self.unanswered, "without a reply"),
            (self.lost, "lost with their connection"),
            (self.failed, "answered with an error"),
        ];
        for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
            writeln!(f, "{count} requests were {what}")?;
        }
        let ends = [
            (self.closed, "closed by the server"),
            (self.reset, "reset"),
            (self.refused, "not accepted again"),
            (self.garbage, "given up because of what the server said"),
        ];
        for (count, what) in ends.into_iter().filter(|(count, _)| *count > 0) {
            writeln!(f, "{count} connections were {what}")?;
        }
        if self.warm_up_only {
            writeln!(f, "ended in the warm-up, of which this is")?;
        } else if self.interrupted {
            writeln!(f, "ended early")?;
        }
        Ok(())
    }
}
