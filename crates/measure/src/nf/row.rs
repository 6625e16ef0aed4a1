//! What a row states, as JSON and as text.

use std::fmt;

use rheostat_traffic::Distribution;
use serde::{Deserialize, Serialize};

use super::measurement::{Figure, Mode};
use super::{ChainKind, SHARDS, Spec, StageNanos};
use crate::memory::{FrameSize, SourceKind};
use crate::record::{Column, TableRow};
use crate::rounding::{to_tenths, to_thousandths};

/// The figures of one row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The name of the chain, as [`ChainKind::name`](super::ChainKind::name) has it.
    pub chain: String,
    /// Where packets come from: `converse` or `replay`.
    #[serde(default = "converse")]
    pub source: String,
    /// Flows open throughout.
    pub flows: u32,
    /// `uniform`, or `zipf-` with the exponent.
    pub distribution: String,
    /// How long packets are.
    pub packet_bytes: PacketBytes,
    /// The share of packets that open a flow.
    pub new_flow_share: f64,
    /// Lanes, each on a core of its own.
    pub lanes: usize,
    /// Shards of all lanes together.
    #[serde(default = "shards")]
    pub shards: usize,
    /// Whether the lanes own shards together.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub joint_shards: bool,
    /// `processes` if each lane was in a process of its own, with nothing shared: the control of the row before. `mpps` is
    /// the sum. Others: see `of_unmeasured`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<String>,
    /// The rate of a row on several lanes by that of its control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_processes: Option<Ratio>,
    /// Of a row whose `control` says what its lanes measured of classes of traffic: its rate by that of lanes that measured
    /// nothing. `again` is a second process that measured nothing either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_unmeasured: Option<Ratio>,
    /// Packets per second through all lanes, in millions, as observed: the median window.
    pub mpps: f64,
    /// The slowest window.
    pub mpps_min: f64,
    /// The fastest window.
    pub mpps_max: f64,
    /// A lane's time per packet, in nanoseconds, as observed.
    pub ns_per_packet: f64,
    /// That less what the harness takes for the same load, from the same source, on as many lanes. States little unless both
    /// rows are `fast`.
    pub ns_above_harness: f64,
    /// An estimate of `mpps` on a core that nothing shares: each window's rate by its `speed`, the median. `None` in rows from
    /// before it was written, of which those that are `slow` have it as `mpps`.
    #[serde(default)]
    pub mpps_at_full_speed: Option<f64>,
    /// A lane's time per packet at that rate.
    #[serde(default)]
    pub ns_per_packet_at_full_speed: Option<f64>,
    /// How undisturbed the row's windows are.
    #[serde(default)]
    pub mode: Mode,
    /// The processor's speed in the median window, as a share of the fastest that the process has seen.
    #[serde(default)]
    pub speed: f64,
    /// How often the kernel took the core from a lane in a window, all lanes together: the mean of the row's windows. `None` in
    /// rows from before it was counted.
    #[serde(default)]
    pub involuntary_switches: Option<f64>,
    /// Instructions per packet, source and sink included, if they were to be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions_per_packet: Option<f64>,
    /// That less what the harness takes for the same load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions_above_harness: Option<f64>,
    /// Calls of the allocator per packet, by all threads.
    pub allocations_per_packet: f64,
    /// How long each stage takes, if that was requested: as a tenth of all polls has it at most, in nanoseconds per packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stages: Option<StageNanos>,
    /// The same in median polls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stages_median: Option<StageNanos>,
}

/// The ratio of a row to its control: of each start of their processes, the median of windows taken in turn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The median start.
    pub median: f64,
    /// The start with the least.
    pub low: f64,
    /// The start with the greatest.
    pub high: f64,
}

impl Ratio {
    pub(super) fn rounded(self) -> Ratio {
        let [median, low, high] = [self.median, self.low, self.high].map(to_thousandths);
        Ratio { median, low, high }
    }
}

/// How long packets are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PacketBytes {
    /// This many bytes on the wire.
    Each(u16),
    /// Drawn from what the name states.
    Drawn(String),
}

impl fmt::Display for PacketBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PacketBytes::Each(bytes) => f.pad(&bytes.to_string()),
            PacketBytes::Drawn(name) => f.pad(name),
        }
    }
}

impl Row {
    pub(super) fn new(spec: &Spec, figure: &Figure, harness: &Figure) -> Row {
        let ns = |mpps: f64| 1e3 * spec.lanes as f64 / mpps;
        let above =
            if spec.chain == ChainKind::Harness { 0.0 } else { ns(figure.mpps) - ns(harness.mpps) };
        let instructions = figure.instructions_per_packet;
        let own = harness.instructions_per_packet;
        Row {
            chain: spec.chain.name().into(),
            source: spec.load.source.name().into(),
            flows: spec.load.flows,
            distribution: match spec.load.distribution {
                Distribution::Uniform => "uniform".into(),
                Distribution::Zipf(exponent) => format!("zipf-{exponent}"),
            },
            packet_bytes: match spec.load.size {
                FrameSize::Smallest => PacketBytes::Each(64),
                FrameSize::Tagged => PacketBytes::Drawn("vlan".into()),
                FrameSize::Ipv6 => PacketBytes::Drawn("ipv6".into()),
                FrameSize::Mix => PacketBytes::Drawn("mix".into()),
            },
            new_flow_share: spec.load.new_flow_share,
            lanes: spec.lanes,
            shards: spec.shards,
            joint_shards: spec.claimants() > 1,
            control: None,
            of_processes: None,
            of_unmeasured: None,
            mpps: to_thousandths(figure.mpps),
            mpps_min: to_thousandths(figure.range.0),
            mpps_max: to_thousandths(figure.range.1),
            ns_per_packet: to_thousandths(ns(figure.mpps)),
            ns_above_harness: to_thousandths(above),
            mpps_at_full_speed: Some(to_thousandths(figure.mpps_at_full_speed)),
            ns_per_packet_at_full_speed: Some(to_thousandths(ns(figure.mpps_at_full_speed))),
            mode: figure.mode,
            speed: to_thousandths(figure.speed),
            involuntary_switches: Some(to_tenths(figure.switches)),
            instructions_per_packet: instructions.map(to_thousandths),
            instructions_above_harness: instructions
                .zip(own)
                .map(|(all, own)| to_thousandths(all - own)),
            allocations_per_packet: figure.allocations_per_packet,
            stages: figure.stages.map(|stages| stages.p10),
            stages_median: figure.stages.map(|stages| stages.median),
        }
    }

    /// What distinguishes the row from others.
    pub fn name(&self) -> String {
        let Row { chain, source, flows, distribution, .. } = self;
        let Row { packet_bytes, new_flow_share, lanes, .. } = self;
        let new = new_flow_share * 100.0;
        let lanes_are = match (&self.control, self.joint_shards) {
            (Some(control), _) => control,
            (None, true) => "lanes with joint shards",
            (None, false) => "lanes",
        };
        let shards = match self.shards {
            SHARDS => String::new(),
            shards => format!(" {shards} shards"),
        };
        format!(
            "{chain} {source} {flows} {distribution} {packet_bytes} B {new} % new {lanes} {lanes_are}{shards}"
        )
    }
}

/// Of rows whose lanes are processes.
pub(super) const PROCESSES: &str = "processes";

/// How many there were before there was a choice.
fn shards() -> usize {
    SHARDS
}

/// What rows came from before there was a choice.
fn converse() -> String {
    SourceKind::Converse.name().into()
}

impl TableRow for Row {
    const COLUMNS: &'static [Column<Row>] = &[
        Column::name("chain", 10, |row| &row.chain),
        Column::name("source", 8, |row| &row.source),
        Column::count("flows", 10, |row| row.flows.into()),
        Column::name("spread", 9, |row| &row.distribution),
        Column::text("bytes", 5, |row| row.packet_bytes.to_string()),
        Column::text("new", 6, |row| format!("{}%", row.new_flow_share * 100.0)),
        Column::count("lanes", 5, |row| row.lanes as u64),
        Column::number("Mpps", 8, 2, |row| row.mpps),
        Column::text("min-max", 15, |row| format!("{:.2}-{:.2}", row.mpps_min, row.mpps_max)),
        Column::number("ns", 8, 1, |row| row.ns_per_packet),
        Column::number("above", 8, 1, |row| row.ns_above_harness),
        Column::number("allocs", 9, 6, |row| row.allocations_per_packet),
        Column::name("mode", 9, |row| match row.mode {
            Mode::Fast => "fast",
            Mode::Slow => "slow",
            Mode::Preempted => "preempted",
            Mode::Unknown => "",
        }),
        Column::left(Column::text("control", 0, Row::control_text)),
    ];

    fn remarks(&self) -> String {
        let stages = self.stages.as_ref().map(StageNanos::remark).unwrap_or_default();
        self.disturbance() + &stages + &self.instructions()
    }
}

impl Row {
    /// What it is the control of, or how it stands beside its control.
    fn control_text(&self) -> String {
        if self.shards != SHARDS {
            return format!("{} shards", self.shards);
        }
        match (&self.control, self.of_processes.or(self.of_unmeasured)) {
            (Some(control), Some(Ratio { median, low, high })) => {
                format!("{control}: {median:.3} of unmeasured ({low:.3}-{high:.3})")
            }
            (Some(control), None) => control.clone(),
            (None, Some(Ratio { median, low, high })) => {
                let shards = if self.joint_shards { "joint shards, " } else { "" };
                format!("{shards}{median:.3} of processes ({low:.3}-{high:.3})")
            }
            (None, None) if self.joint_shards => "joint shards".into(),
            (None, None) => String::new(),
        }
    }

    /// What makes the figures of a row worse than they are on a machine of its own.
    fn disturbance(&self) -> String {
        match (self.mode, self.mpps_at_full_speed, self.ns_per_packet_at_full_speed) {
            (Mode::Slow, Some(mpps), Some(ns)) => {
                format!("\n  at full speed, as estimated: {mpps:.2} Mpps, {ns:.1} ns")
            }
            (Mode::Preempted, ..) => {
                let switches = self.involuntary_switches.unwrap_or(0.0);
                format!("\n  other programs took the lanes' cores {switches:.1} times a window")
            }
            _ => String::new(),
        }
    }

    fn instructions(&self) -> String {
        let counted = self.instructions_per_packet.zip(self.instructions_above_harness);
        counted.map_or_else(String::new, |(all, above)| {
            format!("\n  instructions: {all:.1} a packet, {above:.1} above the harness")
        })
    }
}

impl StageNanos {
    fn remark(&self) -> String {
        let StageNanos { source, classify, probe, run, emit, sink, rest } = self;
        format!(
            "\n  p10 by stage: source {source:.1}, classify {classify:.1}, probe {probe:.1}, run {run:.1}, \
             emit {emit:.1}, sink {sink:.1}, rest {rest:.1}; above source and sink {:.1}",
            self.above_own()
        )
    }
}
