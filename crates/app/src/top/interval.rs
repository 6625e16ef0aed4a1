//! What has happened between two statuses of an instance.

use std::collections::BTreeMap;

use rheostat_observe::control::Status;
use rheostat_observe::{LinkWord, Summary};

/// Rates are per second.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Interval {
    /// Seconds since the start of the instance.
    pub(super) uptime: f64,
    pub(super) received: f64,
    pub(super) sent: f64,
    pub(super) dropped: f64,
    /// Shards that moved, and packets that changed lanes.
    pub(super) moved: u64,
    pub(super) handed_off: f64,
    pub(super) reordered: u64,
    pub(super) flows: u64,
    /// How much more the busiest lane worked than a fair share; none without work.
    pub(super) imbalance: Option<f64>,
    pub(super) lanes: Vec<LaneInterval>,
    /// Drops by reason, the most frequent first.
    pub(super) reasons: Vec<(String, f64)>,
    pub(super) devices: Vec<DeviceInterval>,
    /// Counters of TCP, the service and its application that have grown, the fastest first.
    pub(super) counters: Vec<(String, f64)>,
    pub(super) classes: Vec<ClassInterval>,
    /// Connections of a service.
    pub(super) connections: Option<u64>,
}

/// One lane.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LaneInterval {
    pub(super) number: usize,
    pub(super) packets: f64,
    /// Busy time as a share of the interval, 0 to 1.
    pub(super) load: f64,
    pub(super) role: Option<String>,
    pub(super) mode: Option<String>,
}

/// One class of traffic.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ClassInterval {
    pub(super) name: String,
    pub(super) packets: f64,
    /// The latencies at the median and at the 99th percentile since the start, in microseconds.
    pub(super) latency: Option<(f64, f64)>,
}

/// One device.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct DeviceInterval {
    pub(super) name: String,
    pub(super) arrived: f64,
    pub(super) sent: f64,
    pub(super) lost: f64,
    /// The state of its link, unless packets pass.
    pub(super) link: Option<LinkWord>,
}

impl Interval {
    pub(super) fn between(earlier: &Status, later: &Status) -> Interval {
        let (before, now) = (&earlier.summary, &later.summary);
        let seconds = now.seconds - before.seconds;
        let rate = |before: u64, now: u64| match seconds > 0.0 {
            true => now.saturating_sub(before) as f64 / seconds,
            false => 0.0,
        };
        let lanes = lanes(before, now, seconds);
        let busy: f64 = lanes.iter().map(|lane| lane.load).sum();
        let busiest = lanes.iter().map(|lane| lane.load).fold(0.0, f64::max);
        let none = 0;
        let since = |before: &BTreeMap<String, u64>, now: &BTreeMap<String, u64>| {
            let grown = now.iter().map(|(name, count)| {
                (name.clone(), rate(*before.get(name).unwrap_or(&none), *count))
            });
            grown.filter(|(_, rate)| *rate > 0.0).collect::<Vec<_>>()
        };
        let reasons = now.dropped.iter().map(|(reason, count)| {
            (reason.to_string(), rate(*before.dropped.get(reason).unwrap_or(&0), *count))
        });
        let functions = now.functions.iter().map(|(name, count)| {
            (name.to_string(), rate(*before.functions.get(name).unwrap_or(&0), *count))
        });
        let mut counters: Vec<_> = functions.filter(|(_, rate)| *rate > 0.0).collect();
        counters.extend(since(&earlier.tcp, &later.tcp));
        counters.extend(since(&earlier.service, &later.service));
        counters.extend(since(&earlier.application, &later.application));
        let classes = now.classes.iter().map(|class| {
            let before = before.classes.iter().find(|before| before.name == class.name);
            let packets = rate(before.map_or(0, |before| before.packets), class.packets);
            let latency = class.latency_us_p50.zip(class.latency_us_p99);
            ClassInterval { name: class.name.clone(), packets, latency }
        });
        let mut reasons: Vec<_> = reasons.filter(|(_, rate)| *rate > 0.0).collect();
        for list in [&mut reasons, &mut counters] {
            list.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        }
        Interval {
            uptime: now.seconds,
            received: rate(before.received, now.received),
            sent: rate(before.sent, now.sent),
            dropped: rate(before.dropped_total(), now.dropped_total()),
            moved: now.migrations.saturating_sub(before.migrations),
            handed_off: rate(before.handoff, now.handoff),
            reordered: now.reordered.saturating_sub(before.reordered),
            flows: now.flows.live,
            imbalance: (busy > 0.0).then(|| busiest * lanes.len() as f64 / busy),
            lanes,
            reasons,
            devices: devices(earlier, later, &rate),
            counters,
            classes: classes.collect(),
            connections: later.tcp.get("tcpCurrEstab").copied(),
        }
    }
}

fn lanes(before: &Summary, now: &Summary, seconds: f64) -> Vec<LaneInterval> {
    let polling = now.polling.as_ref();
    let lane = |(number, lane): (usize, &rheostat_observe::summary::LaneMetrics)| {
        let (packets, busy) = match before.lanes.get(number) {
            // A status has loads since the start.
            Some(before_lane) => {
                let busy = lane.load * now.seconds - before_lane.load * before.seconds;
                (lane.packets.saturating_sub(before_lane.packets), busy)
            }
            None => (lane.packets, lane.load * now.seconds),
        };
        let share = |figure: f64| if seconds > 0.0 { figure / seconds } else { 0.0 };
        LaneInterval {
            number,
            packets: share(packets as f64),
            load: share(busy).clamp(0.0, 1.0),
            role: lane.role.clone(),
            mode: polling.and_then(|polling| Some(polling.lanes.get(number)?.mode.clone())),
        }
    };
    now.lanes.iter().enumerate().map(lane).collect()
}

fn devices(
    earlier: &Status,
    later: &Status,
    rate: &dyn Fn(u64, u64) -> f64,
) -> Vec<DeviceInterval> {
    let device = |device: &rheostat_observe::control::DeviceState| {
        let before = earlier.devices.iter().find(|before| before.device == device.device);
        let (arrived, sent, lost) =
            before.map_or((0, 0, 0), |before| (before.arrived, before.sent, before.lost));
        let link = later.summary.links.iter().find(|link| link.device == device.device);
        DeviceInterval {
            name: device.device.clone(),
            arrived: rate(arrived, device.arrived),
            sent: rate(sent, device.sent),
            lost: rate(lost, device.lost),
            link: link.map(|link| link.state).filter(|state| *state != LinkWord::Up),
        }
    };
    later.devices.iter().map(device).collect()
}
