//! Packets one after another through a [`Harness`](super::Harness), each with its outcome.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rheostat_base::{DropReason, Time};
use rheostat_io::{Arrival, Collected, Collector, Source};
use rheostat_packet::LinkType;
use rheostat_run::{Lane, LaneSample};

use super::HarnessError;

/// A packet that without a time of its own arrives so long after the one before it, in nanoseconds.
const APART: u64 = 1_000;

/// A packet for [`Harness::packets`](super::Harness::packets): in the words of a case, or an Ethernet frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TestPacket {
    /// Such as `10.0.0.1:1000 > 198.51.100.1:80 tcp S seq 1`, with `at 5ms` in front where time matters.
    Words(String),
    /// The bytes of a frame.
    Frame(Vec<u8>),
}

impl From<&str> for TestPacket {
    fn from(words: &str) -> TestPacket {
        TestPacket::Words(words.to_owned())
    }
}

impl From<Vec<u8>> for TestPacket {
    fn from(frame: Vec<u8>) -> TestPacket {
        TestPacket::Frame(frame)
    }
}

/// Everything that came of one packet. Displayed, it is in the words of a case, such as
/// `sent 10.0.0.1:1000 > 198.51.100.1:80 tcp S seq 1` or `drop denied`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketOutcome {
    /// The packets that left, in order: this one, others that it set free, and replies to it.
    pub sent: Vec<Collected>,
    /// The reasons for which packets were dropped.
    pub dropped: Vec<DropReason>,
}

impl fmt::Display for PacketOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sent =
            self.sent.iter().map(|packet| format!("sent {}", rheostat_cases::words(&packet.bytes)));
        let dropped = self.dropped.iter().map(|reason| format!("drop {}", reason.name()));
        let all: Vec<_> = sent.chain(dropped).collect();
        f.write_str(if all.is_empty() { "nothing" } else { "" })?;
        f.write_str(&all.join(", "))
    }
}

/// A frame and the time at which it arrives.
type Timed = (Time, Vec<u8>);

/// Releases packets one by one, and notes the outcome of each.
pub(super) struct Feeder {
    waiting: VecDeque<Timed>,
    released: Released,
    collector: Collector,
    before: [u64; DropReason::COUNT],
    has_begun: bool,
    pub(super) outcomes: Vec<PacketOutcome>,
}

/// The source that the device reads: the packet that was released last.
#[derive(Clone, Default)]
pub(super) struct Released(Arc<Mutex<Option<Timed>>>);

impl Feeder {
    /// # Errors
    /// [`HarnessError::Packet`] with the first packet that cannot be made.
    pub(super) fn new(
        packets: impl IntoIterator<Item = TestPacket>,
        collector: Collector,
    ) -> Result<Feeder, HarnessError> {
        let mut waiting = VecDeque::new();
        let mut last = Time::ZERO;
        for (number, packet) in (1..).zip(packets) {
            let wrong = |problem: String| HarnessError::Packet { number, problem };
            let (at, frame) = match packet {
                TestPacket::Words(words) => rheostat_cases::frame(&words).map_err(wrong)?,
                TestPacket::Frame(frame) => (None, frame),
            };
            let time = at.unwrap_or(Time::from_nanos(last.as_nanos() + APART));
            if time < last {
                return Err(wrong("time goes back".to_owned()));
            }
            last = time;
            waiting.push_back((time, frame));
        }
        let (released, before) = (Released::default(), [0; DropReason::COUNT]);
        Ok(Feeder { waiting, released, collector, before, has_begun: false, outcomes: Vec::new() })
    }

    pub(super) fn source(&self) -> Released {
        self.released.clone()
    }

    /// Notes the outcome of the last packet, of which nothing is under way, and releases the next; `false` after the last.
    pub(super) fn advance(&mut self, lanes: &[Lane]) -> bool {
        let samples: Vec<_> = lanes.iter().map(|lane| lane.counters().sample()).collect();
        let after = LaneSample::sum(&samples).dropped;
        if std::mem::replace(&mut self.has_begun, true) {
            let before = self.before;
            let dropped = DropReason::all().flat_map(|reason| {
                let index = reason as usize;
                std::iter::repeat_n(reason, (after[index] - before[index]) as usize)
            });
            let dropped = dropped.collect();
            self.outcomes.push(PacketOutcome { sent: self.collector.drain(), dropped });
        }
        self.before = after;
        let next = self.waiting.pop_front();
        let is_released = next.is_some();
        *self.released.lock() = next;
        is_released
    }
}

impl Released {
    fn lock(&self) -> MutexGuard<'_, Option<Timed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source for Released {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        let (time, bytes) = self.lock().take()?;
        *frame = bytes;
        let len = frame.len();
        Some(Arrival { time, len, wire_len: len as u32, link: LinkType::Ethernet })
    }

    fn is_fed(&self) -> bool {
        true
    }
}
