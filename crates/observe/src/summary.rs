//! The summary of a run, as text and as JSON.

mod migration_metrics;
mod offloaded;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use rheostat_base::DropReason;
use rheostat_run::{LaneSample, RunReport, Sample};
use serde::{Deserialize, Serialize};

pub use rheostat_functions::monitor::TopLine;

pub use self::migration_metrics::MigrationMetrics;
pub use self::offloaded::Offloaded;
use crate::class_metrics::ClassMetrics;
use crate::flow_name::with_protocol;
use crate::link_board::LinkLine;
use crate::output_files::IncompleteFile;
use crate::polling_metrics::PollingMetrics;
use crate::port_board::{self, PortLine};
use crate::shared_queue_metrics::SharedQueueMetrics;
use crate::shared_shard_metrics::SharedShardMetrics;
use crate::source_metrics::SourceMetrics;

/// The version of the JSON fields of statuses and summaries. Fields are added without another version, and none is renamed or
/// removed; the version grows if a field changes its meaning.
pub const SCHEMA: u32 = 1;

/// What a run came to. The fields are those of the JSON summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The version of the fields: see [`SCHEMA`].
    #[serde(default)]
    pub schema: u32,
    /// Packets that arrived at devices.
    pub received: u64,
    /// Packets that functions made.
    pub originated: u64,
    /// Copies that functions made.
    pub copied: u64,
    /// Packets that devices sent.
    pub sent: u64,
    /// System calls that devices made to send them; left out where none counts any.
    #[serde(default, skip_serializing_if = "is_none")]
    pub send_calls: u64,
    /// Packets that ended on purpose.
    pub consumed: u64,
    /// Packets still held.
    pub held: u64,
    /// Packets dropped, by reason; reasons without drops are left out.
    pub dropped: BTreeMap<Cow<'static, str>, u64>,
    /// Packets that changed lanes.
    pub handoff: u64,
    /// Shards that changed lanes.
    pub migrations: u64,
    /// How long moving them took; left out while nothing has moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migration: Option<MigrationMetrics>,
    /// How much more the busiest lane worked than a fair share: 1 when all worked alike; `null` when there
    /// was no work. Over the whole run, unless the controller has measured it interval by interval.
    pub imbalance: Option<f64>,
    /// Packets that came to a shard's former owner after the shard had left.
    pub late_handoff: u64,
    /// What flows that left their lanes came to; left out while none has left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offloaded: Option<Offloaded>,
    /// Classes of traffic, in the order in which they are tried, and what none matches; left out where they are not measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<ClassMetrics>,
    /// By which factor waits differed from what plans predicted, up or down; left out where nothing was predicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prediction_error: Option<f64>,
    /// Flows.
    pub flows: Flows,
    /// Packets processed after a younger packet of their flow.
    pub reordered: u64,
    /// Handlers of functions on shared objects that panicked; left out while none has.
    #[serde(default, skip_serializing_if = "is_none")]
    pub panics: u64,
    /// What the functions of the chain have counted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub functions: BTreeMap<Cow<'static, str>, u64>,
    /// The first entries of each ranking of a function, by the ranking's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub top: BTreeMap<Cow<'static, str>, Vec<TopLine>>,
    /// The lanes, in order.
    pub lanes: Vec<LaneMetrics>,
    /// How lanes were polled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polling: Option<PollingMetrics>,
    /// What it took to make packets arrive at simulated NICs; left out where that is the lanes' work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceMetrics>,
    /// Receive queues that several lanes empty; left out where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared_queues: Vec<SharedQueueMetrics>,
    /// Shards that the lanes of a queue own together; left out where each belongs to one lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_shards: Option<SharedShardMetrics>,
    /// How long the run took.
    pub seconds: f64,
    /// Million packets received per second.
    pub mpps: f64,
    /// Files that miss some of what was to be in them; left out while all are complete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub incomplete: Vec<IncompleteFile>,
    /// The links of live devices; left out where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkLine>,
    /// The ports of a NAT's external addresses; left out where none are in use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortLine>,
    /// "ok", or what did not hold.
    pub invariants: String,
}

/// How many flows there were.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flows {
    /// Flows created.
    pub created: u64,
    /// Flows that have ended, for whatever reason.
    pub expired: u64,
    /// Flows alive at the end.
    pub live: u64,
    /// The sum of the most flows that each lane held at once.
    pub peak: u64,
}

/// What one lane did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LaneMetrics {
    /// Packets the lane received from its queues.
    pub packets: u64,
    /// Busy time ÷ time.
    pub load: f64,
    /// What it was for at last, `working`, `offloading` or `parked`, where that changes; left out elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Times that the lane was polled and had no work.
    #[serde(default)]
    pub idle_polls: u64,
}

impl Summary {
    /// Sums a report up.
    pub fn of(report: &RunReport) -> Summary {
        let violations: Vec<_> = report.violations.iter().map(ToString::to_string).collect();
        let invariants =
            if violations.is_empty() { "ok".to_owned() } else { violations.join("; ") };
        let functions = report.metrics.iter().map(|(name, count)| (name.into(), count)).collect();
        let rankings = report.metrics.rankings();
        let top = rankings.map(|(name, ranking)| (name.into(), TopLine::of(ranking))).collect();
        let migration = MigrationMetrics::of(&report.migration);
        Summary { functions, top, invariants, migration, ..Summary::so_far(&report.last) }
    }

    /// Sums up what has happened until `sample`, without the counters of functions. Whether the invariants hold is known at the end of
    /// a run only.
    pub fn so_far(sample: &Sample) -> Summary {
        let all = LaneSample::sum(&sample.lanes);
        let received = sample.arrived();
        let dropped = sample.dropped().map(|(reason, count)| (reason.name().into(), count));
        let lanes = sample.lanes.iter();
        Summary {
            schema: SCHEMA,
            received,
            originated: all.originated,
            copied: all.copied,
            sent: all.sent,
            send_calls: sample.devices.iter().map(|device| device.send_calls).sum(),
            consumed: all.consumed,
            held: all.held_total(),
            dropped: dropped.collect(),
            handoff: all.handoff_out,
            migrations: all.shards_in,
            migration: None,
            imbalance: imbalance(&sample.lanes),
            late_handoff: all.late_handoff,
            offloaded: Offloaded::of(&all),
            classes: Vec::new(),
            prediction_error: None,
            flows: Flows {
                created: all.flows_created,
                expired: all.flows_ended,
                live: all.flows_live(),
                peak: all.flows_peak,
            },
            reordered: all.reordered,
            panics: all.panics,
            functions: BTreeMap::new(),
            top: BTreeMap::new(),
            lanes: lanes
                .map(|lane| LaneMetrics {
                    packets: lane.received,
                    load: lane.load(),
                    role: None,
                    idle_polls: lane.idle_polls,
                })
                .collect(),
            polling: PollingMetrics::of(&sample.polling),
            sources: sample.sources.iter().map(SourceMetrics::of).collect(),
            shared_queues: SharedQueueMetrics::of(&sample.sharing),
            shared_shards: SharedShardMetrics::of(sample),
            seconds: sample.seconds,
            mpps: if sample.seconds > 0.0 { received as f64 / sample.seconds / 1e6 } else { 0.0 },
            incomplete: Vec::new(),
            links: Vec::new(),
            ports: Vec::new(),
            invariants: "checked at the end".to_owned(),
        }
    }

    /// The same with what flows came to that may leave their lanes, also where none has left.
    #[must_use]
    pub fn with_offloading(mut self, sample: &Sample) -> Summary {
        self.offloaded = Some(Offloaded::counted(&LaneSample::sum(&sample.lanes)));
        self
    }

    /// The same with what lanes were for at last.
    #[must_use]
    pub fn with_roles(mut self, roles: impl IntoIterator<Item = &'static str>) -> Summary {
        for (lane, role) in self.lanes.iter_mut().zip(roles) {
            lane.role = Some(role.to_owned());
        }
        self
    }

    /// Packets dropped for any reason.
    pub fn dropped_total(&self) -> u64 {
        self.dropped.values().sum()
    }

    /// One line of JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and names are always JSON")
    }
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

/// The busiest lane's time ÷ the mean.
fn imbalance(lanes: &[LaneSample]) -> Option<f64> {
    let busy = || lanes.iter().map(|lane| lane.busy_ns);
    let (busiest, all) = (busy().max()?, busy().sum::<u64>());
    (all > 0).then(|| busiest as f64 * lanes.len() as f64 / all as f64)
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "packets   {} received in {:.3} s ({:.3} Mpps)",
            self.received, self.seconds, self.mpps
        )?;
        writeln!(
            f,
            "          {} sent, {} originated, {} copied, {} consumed, {} held, {} dropped",
            self.sent,
            self.originated,
            self.copied,
            self.consumed,
            self.held,
            self.dropped_total()
        )?;
        if self.send_calls > 0 {
            writeln!(f, "          {} system calls to send", self.send_calls)?;
        }
        for (reason, count) in &self.dropped {
            write!(f, "          dropped {count:>12} {reason}")?;
            // Of an instance of another program or version, the reason may be unknown here.
            match DropReason::named(reason) {
                Some(known) => writeln!(f, ": {}", known.meaning())?,
                None => writeln!(f)?,
            }
        }
        writeln!(
            f,
            "flows     {} created, {} ended, {} alive, {} at once at most",
            self.flows.created, self.flows.expired, self.flows.live, self.flows.peak
        )?;
        if self.panics > 0 {
            writeln!(f, "panics    {} of handlers", self.panics)?;
        }
        for (name, count) in &self.functions {
            writeln!(f, "          {name} {count}")?;
        }
        for (name, lines) in &self.top {
            writeln!(f, "{name}")?;
            for TopLine { name, least, most } in lines {
                let (beyond, name) = (most - least, with_protocol(name));
                match beyond {
                    0 => writeln!(f, "          {least:>14}  {name}")?,
                    _ => writeln!(f, "          {least:>14}  {name}  (or up to {beyond} more)")?,
                }
            }
        }
        for (number, lane) in self.lanes.iter().enumerate() {
            write!(
                f,
                "lane {number:<4} {} packets, load {:.0} %",
                lane.packets,
                lane.load * 100.0
            )?;
            match &lane.role {
                Some(role) => writeln!(f, ", {role}")?,
                None => writeln!(f)?,
            }
        }
        if let Some(polling) = &self.polling {
            write!(f, "{polling}")?;
        }
        for source in &self.sources {
            writeln!(f, "source    {source}")?;
        }
        for queue in &self.shared_queues {
            writeln!(f, "queue     {queue}")?;
        }
        if let Some(shards) = &self.shared_shards {
            writeln!(f, "shards    {shards}")?;
        }
        writeln!(
            f,
            "hand-offs {} ({} late), {} shards moved, {} packets reordered",
            self.handoff, self.late_handoff, self.migrations, self.reordered
        )?;
        if let Some(offloaded) = &self.offloaded {
            writeln!(f, "offloaded {offloaded}")?;
        }
        for class in &self.classes {
            writeln!(f, "class     {class}")?;
        }
        if let Some(error) = self.prediction_error {
            writeln!(f, "predicted within a factor of {error:.2} (geometric mean)")?;
        }
        // Of one lane, or without packets, there is nothing to balance.
        let is_balanced = self.lanes.len() > 1 && self.received > 0;
        if let Some(imbalance) = self.imbalance.filter(|_| is_balanced) {
            writeln!(f, "imbalance {imbalance:.2} (busiest lane ÷ mean)")?;
        }
        for file in &self.incomplete {
            writeln!(f, "incomplete {file}")?;
        }
        for link in self.links.iter().filter(|link| link.is_eventful()) {
            writeln!(f, "link      {link}")?;
        }
        port_board::write_lines(f, &self.ports)?;
        write!(f, "invariants {}", self.invariants)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rheostat_base::OwnDropReason;
    use rheostat_io::DeviceCounters;
    use rheostat_run::{Metrics, Sample};

    fn report() -> RunReport {
        let mut lane = LaneSample {
            shards_in: 2,
            received: 8,
            sent: 5,
            flows_created: 4,
            flows_ended: 1,
            ..LaneSample::default()
        };
        lane.dropped[DropReason::Denied as usize] = 3;
        let device = DeviceCounters {
            arrived: 10,
            queue_full: vec![2],
            sent: 5,
            ..DeviceCounters::default()
        };
        let last =
            Sample { seconds: 2.0, lanes: vec![lane], devices: vec![device], ..Sample::default() };
        let mut metrics = Metrics::default();
        metrics.add("ports_preserved", 3);
        RunReport {
            last,
            device_names: vec!["wire".into()],
            warnings: vec![],
            violations: vec![],
            metrics,
            ..RunReport::default()
        }
    }

    #[test]
    fn what_devices_dropped_counts_too_and_the_account_balances() {
        let summary = Summary::of(&report());
        assert_eq!(summary.received, 10);
        assert_eq!(summary.dropped_total(), 5);
        assert_eq!(summary.dropped["queue_full"], 2);
        assert_eq!(
            summary.received + summary.originated + summary.copied,
            summary.sent + summary.consumed + summary.held + summary.dropped_total()
        );
        assert_eq!(summary.flows.live, 3);
    }

    #[test]
    fn drops_for_the_reason_of_a_function_have_its_name_and_its_meaning() {
        static TOO_MANY: OwnDropReason =
            OwnDropReason::new("observe_summary.too_many", "The source sends too much.");
        let mut report = report();
        report.last.lanes[0].received += 4;
        report.last.lanes[0].dropped[TOO_MANY.reason() as usize] = 4;
        let summary = Summary::of(&report);
        assert_eq!(summary.dropped["observe_summary.too_many"], 4);
        assert_eq!(summary.dropped_total(), 9);
        let line = "4 observe_summary.too_many: The source sends too much.";
        assert!(summary.to_string().contains(line), "{summary}");
        assert!(summary.to_json().contains("\"observe_summary.too_many\":4"));
    }

    #[test]
    fn imbalance_is_shown_of_several_lanes_with_packets_only() {
        let busy = LaneSample { received: 8, busy_ns: 5, ..LaneSample::default() };
        let shows = |lanes: Vec<LaneSample>, arrived| {
            let devices = vec![DeviceCounters { arrived, ..DeviceCounters::default() }];
            let sample = Sample { lanes, devices, ..Sample::default() };
            Summary::so_far(&sample).to_string().contains("imbalance")
        };
        assert!(shows(vec![busy.clone(), busy.clone()], 16));
        assert!(!shows(vec![busy.clone()], 16), "one lane");
        assert!(!shows(vec![busy.clone(), busy], 0), "no packets");
    }

    #[test]
    fn panics_are_told_where_there_were_some() {
        let mut report = report();
        assert!(!Summary::of(&report).to_json().contains("panics"));
        report.last.lanes[0].panics = 4;
        let summary = Summary::of(&report);
        assert!(summary.to_json().contains("\"panics\":4"), "{}", summary.to_json());
        assert!(summary.to_string().contains("panics    4 of handlers"), "{summary}");
    }

    #[test]
    fn the_json_has_the_fields_that_programs_read() {
        let json: serde_json::Value =
            serde_json::from_str(&Summary::of(&report()).to_json()).unwrap();
        for field in [
            "schema",
            "received",
            "originated",
            "copied",
            "sent",
            "consumed",
            "held",
            "dropped",
            "handoff",
            "migrations",
            "imbalance",
            "late_handoff",
            "flows",
            "reordered",
            "lanes",
            "seconds",
            "mpps",
            "invariants",
        ] {
            assert!(json.get(field).is_some(), "{field} is missing");
        }
        assert_eq!(json["migrations"], 2);
        assert_eq!(json.get("migration"), None, "no times were taken");
        let moved = report();
        moved.migration.moved.record(2_000_000);
        let times = Summary::of(&moved).migration.unwrap();
        assert!(times.moved_us_p99.is_some_and(|us| (1_900.0..2_100.0).contains(&us)), "{times:?}");
        assert_eq!((times.held_us_p50, times.woken_us_p50), (None, None));
        assert_eq!(json["invariants"], "ok");
        assert_eq!(json["lanes"][0]["packets"], 8);
        assert_eq!(json["functions"]["ports_preserved"], 3);
    }
}
