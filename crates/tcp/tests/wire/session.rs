//! Runs two hosts until both are done, and watches what they send.

use std::time::Duration;

use rheostat_base::Time;
use rheostat_traffic::wire::{LinkConfig, Observer, Outcome, Passage, Side, Wire};

use super::frame;
use super::host::Host;
use super::transcript::Transcript;
use super::windows::Windows;

/// Instants of a session. More would mean that it never ends.
const MOST: u64 = 400_000;

/// What is noted about a session.
#[derive(Default)]
pub(crate) struct Watch {
    windows: Windows,
    pub(crate) transcript: Transcript,
}

fn place(side: Side) -> usize {
    usize::from(side == Side::Stack)
}

impl Observer for Watch {
    fn on_sent(&mut self, from: Side, _: usize, bytes: &[u8], passage: Passage, now: Time) {
        let segment = frame::parse(bytes).expect("hosts send whole segments");
        self.windows.on_sent(place(from), &segment);
        self.transcript.on_sent(place(from), &segment, passage, now);
    }

    fn on_delivered(&mut self, to: Side, _: usize, bytes: &[u8], now: Time) {
        if let Some(segment) = frame::parse(bytes) {
            self.windows.on_delivered(place(to), &segment);
            self.transcript.on_delivered(place(to), &segment, now);
        }
    }
}

/// Two hosts and what lies between them.
pub(crate) struct Session<'a> {
    wire: Wire<'a>,
    pub(crate) watch: Watch,
}

impl<'a> Session<'a> {
    pub(crate) fn new(
        [first, second]: [&'a mut dyn Host; 2],
        links: [LinkConfig; 2],
        seed: u64,
    ) -> Session<'a> {
        let mut wire = Wire::between(first, second, links, seed);
        wire.limit_instants(MOST);
        Session { wire, watch: Watch::default() }
    }

    pub(crate) fn now(&self) -> Time {
        self.wire.now()
    }

    /// Returns whether both hosts are done.
    ///
    /// # Panics
    /// When a window is not honoured, or a host sends without end or wants to be called at once without end.
    pub(crate) fn run(&mut self, limit: Duration) -> bool {
        let outcome = self.wire.run(limit, &mut self.watch);
        outcome.expect("hosts that come to rest") == Outcome::Done
    }
}
