//! The way of single packets through a run, put together from what the lanes noted.

mod path;
mod point;
mod segment;

pub use path::PacketPath;
pub use point::{Flow, TracePoint, What};
pub use segment::{DecisionLine, SegmentLine};

use rheostat_capture::trace::Event;

use crate::control::TraceRequest;

/// How many packets are traced by default.
const COUNT: u8 = 10;

/// Puts notes together to paths.
#[derive(Debug)]
pub struct TraceLog {
    devices: Vec<String>,
    count: usize,
    /// Packets under way, by their marks, in the order in which they were first noted.
    under_way: Vec<(u8, Vec<Event>)>,
    reported: u64,
}

impl TraceLog {
    /// A log of `count` packets in a run with these devices.
    pub fn new(devices: Vec<String>, count: u8) -> TraceLog {
        TraceLog { devices, count: count.into(), under_way: Vec::new(), reported: 0 }
    }

    /// Takes a note.
    pub fn add(&mut self, event: Event) {
        match self.under_way.iter_mut().find(|(mark, _)| *mark == event.packet) {
            Some((_, events)) => events.push(event),
            // A packet of an earlier trace may still be under way: its arrival was not noted here. But
            // that of one of ours may come from another lane's ring, later than what followed it.
            None => self.under_way.push((event.packet, vec![event])),
        }
    }

    /// Lets `add` add the notes of another round and returns the paths that were over before. Lanes
    /// note in order, but their rings are read one after the other: the round in which the last note of
    /// a packet comes may have missed earlier ones, which then come in the next.
    pub fn finished_after(&mut self, add: impl FnOnce(&mut TraceLog)) -> Vec<PacketPath> {
        let over = |events: &[Event]| events.iter().any(|event| event.step.is_last());
        let marks = self.under_way.iter().filter(|(_, events)| over(events)).map(|(mark, _)| *mark);
        let marks: Vec<_> = marks.collect();
        add(self);
        let (over, under_way) = std::mem::take(&mut self.under_way)
            .into_iter()
            .partition(|(mark, _)| marks.contains(mark));
        self.under_way = under_way;
        self.report(over)
    }

    /// The paths that are not over, when nothing more will be noted.
    pub fn unfinished(&mut self) -> Vec<PacketPath> {
        let rest = std::mem::take(&mut self.under_way);
        self.report(rest)
    }

    /// Whether as many paths were reported as were requested.
    pub fn is_complete(&self) -> bool {
        self.reported >= self.count as u64
    }

    /// How many paths were reported.
    pub fn reported(&self) -> u64 {
        self.reported
    }

    fn report(&mut self, packets: Vec<(u8, Vec<Event>)>) -> Vec<PacketPath> {
        let mut paths = Vec::new();
        for (_, events) in packets {
            if let Some(path) = PacketPath::of(self.reported + 1, events, &self.devices) {
                self.reported += 1;
                paths.push(path);
            }
        }
        paths
    }
}

impl TraceRequest {
    /// How many packets are to be traced.
    pub fn count(&self) -> u8 {
        self.count.unwrap_or(COUNT).max(1)
    }

    /// The expression that they match, or what is wrong with it.
    pub fn expression(&self) -> Result<Option<rheostat_capture::Expression>, String> {
        crate::capture::expression(self.filter.as_deref())
    }
}

#[cfg(test)]
mod tests;
