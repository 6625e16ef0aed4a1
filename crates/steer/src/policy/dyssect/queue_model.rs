//! What lanes measured, as the queue that their waits are predicted with.

use std::time::Duration;

use rheostat_base::LaneId;

use super::super::{Class, ClassLoad, Load, LoadSnapshot, Objectives};
use super::correction::Corrections;
use super::{LaneLimit, WaitModel, WaitStatistic};

/// Lanes with less load than this, or nearly full, show nothing about the formula: what they wait is a poll, or overload.
const TELLING: std::ops::RangeInclusive<Load> = Load::from_percent(20)..=Load::from_percent(97);
/// A percentile is learned from so many packets beyond it, otherwise from the mean.
const BEYOND: f64 = 4.0;
/// As many samples make a mean.
const FEWEST: u64 = 5;
/// An objective that lanes could meet only with less load than this is out of reach.
const LEAST: Load = Load::from_percent(10);

/// CA², CS² and T of all packets of some lanes. A packet waits for all those before it, whatever their class, so classes
/// are taken together; how waits of a class differ is learned.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct QueueFigures {
    arrival_cv2: f64,
    service_cv2: f64,
    service: Duration,
}

impl QueueFigures {
    /// Of all packets of these lanes; `None` if they measured none.
    pub(super) fn of(
        load: &LoadSnapshot,
        lanes: impl Iterator<Item = LaneId>,
    ) -> Option<QueueFigures> {
        let classes = lanes.flat_map(|lane| Class::ALL.map(|class| load.class(lane, class)));
        let (mut packets, mut arrival, mut service, mut square) = (0.0, 0.0, 0.0, 0.0);
        for class in classes.flatten() {
            let ClassLoad { packets: count, arrival_cv2, service_cv2, service: time, .. } = *class;
            let (count, time) = (count as f64, time.as_secs_f64());
            packets += count;
            arrival += count * arrival_cv2;
            service += count * time;
            square += count * time * time * (1.0 + service_cv2);
        }
        if packets == 0.0 || service == 0.0 {
            return None;
        }
        let mean = service / packets;
        Some(QueueFigures {
            arrival_cv2: arrival / packets,
            service_cv2: (square / packets / (mean * mean) - 1.0).max(0.0),
            service: Duration::from_secs_f64(mean),
        })
    }

    /// The model of waits of a class that has an objective.
    pub(super) fn model(
        &self,
        objectives: &Objectives,
        class: Class,
        factor: f64,
    ) -> Option<WaitModel> {
        let QueueFigures { arrival_cv2, service_cv2, service } = *self;
        Some(WaitModel {
            arrival_cv2,
            service_cv2,
            service,
            objective: objectives.waiting_limit(class, service)?,
            statistic: WaitStatistic::Percentile(objectives.percentile),
            factor,
        })
    }
}

/// How much lanes of one role may have, by what they measured. Returns the class whose objective is out of reach beside it.
pub(super) fn limit(
    load: &LoadSnapshot,
    (objectives, corrections): (&Objectives, &Corrections),
    (lanes, classes): (&[LaneId], &[Class]),
    highest: Load,
) -> (LaneLimit, Option<Class>) {
    let mut limit = LaneLimit { wait: None, highest };
    let mut missed = None;
    let Some(figures) = QueueFigures::of(load, lanes.iter().copied()) else {
        return (limit, missed);
    };
    for &class in classes {
        // Lanes count by what they process.
        let (mut logs, mut packets) = (0.0, 0.0);
        for lane in lanes {
            let count = load.class(*lane, class).map_or(0.0, |class| class.packets as f64);
            logs += count * corrections.factor(lane.index(), class).ln();
            packets += count;
        }
        let factor = if packets > 0.0 { (logs / packets).exp() } else { 1.0 };
        let Some(model) = figures.model(objectives, class, factor) else { continue };
        let capacity = model.capacity();
        if capacity < LEAST {
            missed = Some(class);
        } else if limit.wait.is_none_or(|wait| capacity < wait.capacity()) {
            limit.wait = Some(model);
        }
    }
    (limit, missed)
}

/// Learns from what lanes measured, against the formula at the load they had.
pub(super) fn learn(
    corrections: &mut Corrections,
    load: &LoadSnapshot,
    objectives: &Objectives,
    rests: impl Fn(LaneId) -> bool,
) {
    corrections.age();
    for lane in load.active().chain(load.offloading()) {
        let u = load.load(lane);
        let figures = QueueFigures::of(load, std::iter::once(lane));
        let Some(figures) = figures.filter(|_| TELLING.contains(&u) && !rests(lane)) else {
            continue;
        };
        for class in Class::ALL {
            let waits = load.class(lane, class).and_then(|class| class.waits);
            let Some((waits, model)) = waits.zip(figures.model(objectives, class, 1.0)) else {
                continue;
            };
            let beyond = waits.samples as f64 * (1.0 - objectives.percentile);
            let (measured, predicted) = if beyond >= BEYOND {
                (waits.tail, model.wait(u))
            } else if waits.samples >= FEWEST {
                (waits.mean, WaitModel { statistic: WaitStatistic::Mean, ..model }.wait(u))
            } else {
                continue;
            };
            if predicted > 0.0 {
                let ratio = measured.as_secs_f64() / predicted;
                corrections.learn(lane.index(), class, ratio, waits.samples);
            }
        }
    }
}
