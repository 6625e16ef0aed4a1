//! A packet's whole way.

use std::fmt;

use rheostat_capture::trace::Event;
use serde::{Deserialize, Serialize};

use super::point::{TracePoint, What};

/// A packet's way through a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PacketPath {
    /// The number of the packet in this trace, from 1.
    pub packet: u64,
    /// Whether it is over: sent, dropped or consumed.
    pub finished: bool,
    /// The points, in order.
    pub points: Vec<TracePoint>,
}

impl PacketPath {
    /// The way that these notes describe; `None` when its start is not among them: then it belongs to an earlier trace.
    pub(super) fn of(
        packet: u64,
        mut events: Vec<Event>,
        devices: &[String],
    ) -> Option<PacketPath> {
        // Stable: what a lane noted at one time stays in order.
        events.sort_by_key(|event| event.at);
        let start = events.iter().find(|event| event.step.is_first())?.at;
        let finished = events.iter().any(|event| event.step.is_last());
        let point = |event: Event| TracePoint {
            us: event.at.since(start).as_nanos() as f64 / 1e3,
            lane: event.lane.0,
            what: What::of(event.step, devices),
        };
        Some(PacketPath { packet, finished, points: events.into_iter().map(point).collect() })
    }
}

impl fmt::Display for PacketPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "packet {}", self.packet)?;
        for TracePoint { us, lane, what } in &self.points {
            write!(f, "\n  {us:>9.1} us  lane {lane:<2}  {what}")?;
        }
        if !self.finished {
            write!(f, "\n                        … still under way")?;
        }
        Ok(())
    }
}
