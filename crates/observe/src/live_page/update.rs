//! The figures of one interval, as the page gets them. Rates are per second.

use std::collections::BTreeMap;

use rheostat_base::{DropReason, Histogram};
use rheostat_run::LaneSample;
use serde::Serialize;

use super::{Event, TopFlow};
use crate::ClassMetrics;
use crate::control::{BackendState, Status};
use crate::link_board::LinkWord;
use crate::openmetrics::Snapshot;

/// Counters listed.
const COUNTERS: usize = 24;

/// The interval between two snapshots.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Update {
    /// Milliseconds since 1970.
    pub(super) unix_ms: u64,
    /// Seconds since the start.
    pub(super) uptime: f64,
    /// Packets and bits that arrived at devices.
    pub(super) received: f64,
    pub(super) received_bits: f64,
    /// Packets and bits that devices sent.
    pub(super) sent: f64,
    pub(super) sent_bits: f64,
    /// Packets dropped for any reason.
    pub(super) dropped: f64,
    /// Packets given to other lanes.
    pub(super) handed_off: f64,
    /// Packets processed after a younger packet of their flow.
    pub(super) reordered: u64,
    /// Flows alive.
    pub(super) flows: u64,
    /// Connections of a service.
    pub(super) connections: Option<u64>,
    /// Busiest lane ÷ mean; none without work.
    pub(super) imbalance: Option<f64>,
    pub(super) lanes: Vec<LaneUpdate>,
    pub(super) drops: Vec<DropUpdate>,
    pub(super) devices: Vec<DeviceUpdate>,
    pub(super) moves: MoveUpdate,
    pub(super) classes: Vec<ClassMetrics>,
    pub(super) counters: Vec<CounterUpdate>,
    pub(super) backends: Vec<BackendState>,
    /// The heaviest flows, and the number of sampled packets that they come from.
    pub(super) top_flows: Vec<TopFlow>,
    pub(super) sampled: u64,
    /// New events.
    pub(super) events: Vec<Event>,
}

/// One lane.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct LaneUpdate {
    /// Busy time as a share of the interval, 0 to 1.
    pub(super) load: f64,
    pub(super) packets: f64,
    pub(super) flows: u64,
    pub(super) shards: u64,
    pub(super) role: Option<String>,
    pub(super) mode: Option<String>,
    /// Latencies since the start in microseconds; none where no objective measures them.
    pub(super) latency_us_p50: Option<f64>,
    pub(super) latency_us_p99: Option<f64>,
}

/// A reason of drops.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct DropUpdate {
    pub(super) reason: String,
    pub(super) meaning: Option<&'static str>,
    pub(super) rate: f64,
    pub(super) total: u64,
}

/// One device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct DeviceUpdate {
    pub(super) name: String,
    pub(super) arrived: f64,
    pub(super) sent: f64,
    pub(super) lost: f64,
    pub(super) link: Option<LinkWord>,
}

/// What the policy has decided.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct MoveUpdate {
    pub(super) policy: String,
    pub(super) plans: u64,
    /// Reasons of the last plan.
    pub(super) why: Vec<String>,
    /// Shards moved in the interval, and since the start.
    pub(super) moved: u64,
    pub(super) total: u64,
}

/// A counter of a function, of TCP, or of a service.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct CounterUpdate {
    pub(super) name: String,
    pub(super) rate: f64,
    pub(super) total: u64,
}

impl Update {
    /// The interval between two snapshots of one run, without flows and events.
    pub(super) fn between(earlier: &Snapshot, later: &Snapshot, unix_ms: u64) -> Update {
        let (before, now) = (&earlier.sample, &later.sample);
        let seconds = now.seconds - before.seconds;
        let rate = |before: u64, now: u64| match seconds > 0.0 {
            true => now.saturating_sub(before) as f64 / seconds,
            false => 0.0,
        };
        let (all_before, all) = (LaneSample::sum(&before.lanes), LaneSample::sum(&now.lanes));
        let bytes = |snapshot: &Snapshot| -> (u64, u64) {
            let devices = &snapshot.sample.devices;
            let of =
                |device: &rheostat_io::DeviceCounters| (device.arrived_bytes, device.sent_bytes);
            devices.iter().map(of).fold((0, 0), |sum, own| (sum.0 + own.0, sum.1 + own.1))
        };
        let (bytes_before, bytes_now) = (bytes(earlier), bytes(later));
        let lanes = lanes(earlier, later);
        let busy: f64 = lanes.iter().map(|lane| lane.load).sum();
        let busiest = lanes.iter().map(|lane| lane.load).fold(0.0, f64::max);
        let drops = drops(&earlier.status, &later.status, &rate);
        let summary = &later.status.summary;
        Update {
            unix_ms,
            uptime: now.seconds,
            received: rate(before.arrived(), now.arrived()),
            received_bits: rate(bytes_before.0, bytes_now.0) * 8.0,
            sent: rate(all_before.sent, all.sent),
            sent_bits: rate(bytes_before.1, bytes_now.1) * 8.0,
            dropped: drops.iter().map(|drop| drop.rate).sum(),
            handed_off: rate(all_before.handoff_out, all.handoff_out),
            reordered: all.reordered.saturating_sub(all_before.reordered),
            flows: all.flows_live(),
            connections: later.status.tcp.get("tcpCurrEstab").copied(),
            imbalance: (busy > 0.0).then(|| busiest * lanes.len() as f64 / busy),
            lanes,
            drops,
            devices: devices(earlier, later, &rate),
            moves: MoveUpdate {
                policy: later.plan.policy.to_owned(),
                plans: later.plan.plans,
                why: later.plan.why.clone(),
                moved: all.shards_in.saturating_sub(all_before.shards_in),
                total: all.shards_in,
            },
            classes: summary.classes.clone(),
            counters: counters(&earlier.status, &later.status, &rate),
            backends: later.status.backends.clone(),
            ..Update::default()
        }
    }
}

fn lanes(earlier: &Snapshot, later: &Snapshot) -> Vec<LaneUpdate> {
    let none = LaneSample::default();
    let polling = later.status.summary.polling.as_ref();
    let lane = |(number, now): (usize, &LaneSample)| {
        let before = earlier.sample.lanes.get(number).unwrap_or(&none);
        let since = now.since(before);
        let seconds = later.sample.seconds - earlier.sample.seconds;
        let share = |figure: f64| if seconds > 0.0 { figure / seconds } else { 0.0 };
        let summary = later.status.summary.lanes.get(number);
        let latency = later.latencies.get(number);
        let at = |q| latency.and_then(|known: &Histogram| Some(known.quantile(q)? as f64 / 1e3));
        LaneUpdate {
            load: share(since.busy_ns as f64 / 1e9).clamp(0.0, 1.0),
            packets: share(since.received as f64),
            flows: now.flows_live(),
            shards: later.owners.iter().filter(|owner| owner.index() == number).count() as u64,
            role: summary.and_then(|lane| lane.role.clone()),
            mode: polling.and_then(|polling| Some(polling.lanes.get(number)?.mode.clone())),
            latency_us_p50: at(0.5),
            latency_us_p99: at(0.99),
        }
    };
    later.sample.lanes.iter().enumerate().map(lane).collect()
}

/// Reasons by which packets have been dropped since the start, the most frequent of the interval first.
fn drops(earlier: &Status, later: &Status, rate: &dyn Fn(u64, u64) -> f64) -> Vec<DropUpdate> {
    let reason = |(reason, total): (&std::borrow::Cow<'static, str>, &u64)| {
        let before = earlier.summary.dropped.get(reason).copied().unwrap_or(0);
        let meaning = DropReason::named(reason).map(|known| known.meaning());
        DropUpdate {
            reason: reason.to_string(),
            meaning,
            rate: rate(before, *total),
            total: *total,
        }
    };
    let mut drops: Vec<_> = later.summary.dropped.iter().map(reason).collect();
    drops.sort_by(|one, other| {
        other.rate.total_cmp(&one.rate).then_with(|| other.total.cmp(&one.total))
    });
    drops
}

fn devices(
    earlier: &Snapshot,
    later: &Snapshot,
    rate: &dyn Fn(u64, u64) -> f64,
) -> Vec<DeviceUpdate> {
    let before = |number: usize| earlier.sample.devices.get(number).cloned().unwrap_or_default();
    let device = |(number, name): (usize, &String)| {
        let (before, now) = (before(number), later.sample.devices.get(number)?);
        let link = later.status.summary.links.iter().find(|link| link.device == *name);
        Some(DeviceUpdate {
            name: name.clone(),
            arrived: rate(before.arrived, now.arrived),
            sent: rate(before.sent, now.sent),
            lost: rate(before.lost(), now.lost()),
            link: link.map(|link| link.state),
        })
    };
    later.devices.iter().enumerate().filter_map(device).collect()
}

/// The counters that have counted something, the fastest of the interval first.
fn counters(
    earlier: &Status,
    later: &Status,
    rate: &dyn Fn(u64, u64) -> f64,
) -> Vec<CounterUpdate> {
    let named = |status: &Status| -> BTreeMap<String, u64> {
        let functions = status.summary.functions.iter();
        let functions = functions.map(|(name, count)| (name.to_string(), *count));
        let others = [&status.tcp, &status.service, &status.application];
        let others = others.into_iter().flatten().map(|(name, count)| (name.clone(), *count));
        functions.chain(others).collect()
    };
    let before = named(earlier);
    let counter = |(name, total): (String, u64)| {
        // One that was not asked for before has no rate.
        let rate = before.get(&name).map_or(0.0, |before| rate(*before, total));
        CounterUpdate { rate, name, total }
    };
    let mut counters: Vec<_> = named(later).into_iter().map(counter).collect();
    counters.retain(|counter| counter.total > 0);
    counters.sort_by(|one, other| {
        other.rate.total_cmp(&one.rate).then_with(|| other.total.cmp(&one.total))
    });
    counters.truncate(COUNTERS);
    counters
}
