//! The metrics of a run while it goes on, in the two text formats that Prometheus reads: OpenMetrics 1.0 and the older
//! text format 0.0.4. Every family is declared once, with its name, its labels and its meaning; the page of the documentation is
//! written from the declarations.

mod devices;
mod family;
mod functions;
mod histogram;
mod lanes;
mod markdown;
mod policy;
mod polling;
mod reloads;
mod service;

use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, prometheus_text, text};
use prometheus_client::registry::Registry;
use rheostat_base::{Histogram, LaneId};
use rheostat_run::{LaneTimes, Sample};
use rheostat_state::txn::LaneProfile;

pub use self::family::Family;
pub use self::markdown::to_markdown;
use crate::control::{RuleLine, Status};

/// What is known of a run at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The version of the program.
    pub version: &'static str,
    /// The names of the devices, in the order of their numbers.
    pub devices: Vec<String>,
    /// The counters of lanes and devices.
    pub sample: Sample,
    /// What `rheo status` shows.
    pub status: Status,
    /// Packets of each shard; none where shards are not counted.
    pub shards: Vec<u64>,
    /// How long shards took to move, in nanoseconds.
    pub moves: Histogram,
    /// The latencies of each class, in nanoseconds, by the classes' names.
    pub classes: Vec<(String, Histogram)>,
    /// Transactions of each lane; none where functions share no objects.
    pub transactions: Vec<LaneProfile>,
    /// The rules of functions.
    pub rules: Vec<RuleLine>,
    /// By lane, how long packets were on hold, and the sizes of bursts.
    pub times: Vec<Arc<LaneTimes>>,
    /// By shard, the lane that owns it.
    pub owners: Vec<LaneId>,
    /// What the policy that moves shards has decided.
    pub plan: PlanState,
    /// By lane, the latencies of its sampled packets, in nanoseconds; none where no objective measures them.
    pub latencies: Vec<Histogram>,
}

/// What the policy that moves shards has decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanState {
    /// Its name; empty before the first plan.
    pub policy: &'static str,
    /// How often it has planned.
    pub plans: u64,
    /// Reasons of the last plan, a sentence each.
    pub why: Vec<String>,
}

/// A text format of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// The text format 0.0.4 of Prometheus.
    Prometheus,
}

impl Snapshot {
    /// What the status of an instance without lanes says.
    pub fn of(version: &'static str, status: Status) -> Snapshot {
        Snapshot {
            version,
            devices: Vec::new(),
            sample: Sample { seconds: status.summary.seconds, ..Sample::default() },
            status,
            shards: Vec::new(),
            moves: Histogram::new(),
            classes: Vec::new(),
            transactions: Vec::new(),
            rules: Vec::new(),
            times: Vec::new(),
            owners: Vec::new(),
            plan: PlanState::default(),
            latencies: Vec::new(),
        }
    }
}

impl Format {
    /// The format that a client prefers by its `Accept` header (RFC 9110, 12.5.1): OpenMetrics where it is named with the greatest
    /// weight, and the older format otherwise, which every scraper reads.
    pub fn preferred(accept: Option<&str>) -> Format {
        let weight_of = |range: &str| {
            let mut parts = range.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default().to_ascii_lowercase();
            let weight = parts.filter_map(|part| part.strip_prefix("q=")).next_back();
            (name, weight.and_then(|weight| weight.parse::<f32>().ok()).unwrap_or(1.0))
        };
        let (mut openmetrics, mut others) = (0.0_f32, 0.0_f32);
        for range in accept.unwrap_or_default().split(',') {
            match weight_of(range) {
                (name, weight) if name == "application/openmetrics-text" => {
                    openmetrics = openmetrics.max(weight);
                }
                (name, weight) if name == "text/plain" || name == "text/*" => {
                    others = others.max(weight);
                }
                _ => {}
            }
        }
        match openmetrics > 0.0 && openmetrics >= others {
            true => Format::OpenMetrics,
            false => Format::Prometheus,
        }
    }

    /// The `Content-Type` of a page in this format.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Prometheus => prometheus_text::CONTENT_TYPE,
        }
    }
}

/// All families, in the order of the page.
pub fn families() -> impl Iterator<Item = &'static Family> {
    [
        lanes::FAMILIES,
        policy::FAMILIES,
        devices::FAMILIES,
        functions::FAMILIES,
        polling::FAMILIES,
        service::FAMILIES,
        reloads::FAMILIES,
    ]
    .into_iter()
    .flatten()
}

/// The page of a snapshot. A family without samples is left out.
pub fn encode(snapshot: Snapshot, format: Format) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(snapshot));
    let mut page = String::new();
    let written = match format {
        Format::OpenMetrics => text::encode(&mut page, &registry),
        Format::Prometheus => prometheus_text::encode(&mut page, &registry),
    };
    written.expect("a string takes all that is written");
    page
}

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        families().try_for_each(|family| family.encode(self, &mut encoder))
    }
}

#[cfg(test)]
mod tests;
