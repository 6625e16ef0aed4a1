//! One copy of a capture, played over and over.

use std::sync::Arc;
use std::time::Duration;

use rheostat_base::Time;

use super::{Names, Reel, ReplayConfig};
use crate::stamps::Stamps;
use rheostat_io::{Arrival, Source};

/// How long a reel is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measure {
    pub(super) packets: u64,
    /// From the first packet to the last.
    span: Time,
}

impl Measure {
    pub(super) fn of(reel: &dyn Reel, longest_gap: Duration) -> Measure {
        let mut measure = Measure { packets: 0, span: Time::ZERO };
        let mut stamps = Stamps::new(longest_gap);
        let mut playing = reel.play();
        let mut frame = Vec::new();
        while let Some(arrival) = playing.next(&mut frame) {
            measure.packets += 1;
            measure.span = stamps.read(arrival.time);
        }
        measure
    }

    /// A loop on the capture's clock: the last packet is followed by the first after a gap as long as the
    /// others are on average. Where all packets have one stamp, each counts as a nanosecond.
    fn ticks(&self) -> u128 {
        let span = u128::from(self.span.as_nanos());
        match self.packets {
            packets if span == 0 => packets.into(),
            packets => span + span.div_ceil(u128::from(packets.saturating_sub(1)).max(1)),
        }
    }
}

/// One of the copies that a replay plays.
pub(super) struct Track {
    reel: Arc<dyn Reel>,
    playing: Box<dyn Source>,
    measure: Measure,
    longest_gap: Duration,
    stamps: Stamps,
    /// The packet within the loop that comes next.
    index: u64,
    /// Loops that are over, the first of which began where the copy did.
    rounds: u64,
    /// The place on the capture's clock where the copy began, once its first packet is known.
    origin: Option<u128>,
    /// Packets still to be played.
    left: Option<u64>,
    /// Nanoseconds per tick of the capture's clock, as a fraction.
    scale: (u128, u128),
    copies: u64,
    copy: u64,
    seed: u64,
}

impl Track {
    /// The copy number `copy`, which starts that many parts of the capture behind its beginning.
    pub(super) fn new(
        reel: Arc<dyn Reel>,
        measure: Measure,
        config: &ReplayConfig,
        copy: u16,
    ) -> Track {
        let copies = u128::from(config.copies);
        let playing = reel.play();
        let mut track = Track {
            reel,
            playing,
            measure,
            longest_gap: config.longest_gap,
            stamps: Stamps::new(config.longest_gap),
            index: 0,
            rounds: 0,
            origin: None,
            left: config.loops.map(|loops| loops.saturating_mul(measure.packets)),
            scale: (
                u128::from(measure.packets) * copies * 1_000_000_000,
                u128::from(config.packets_per_second) * measure.ticks(),
            ),
            copies: config.copies.into(),
            copy: copy.into(),
            seed: config.seed,
        };
        let skipped = measure.packets * u64::from(copy) / u64::from(config.copies);
        let mut frame = Vec::new();
        for _ in 0..skipped {
            track.advance(&mut frame);
        }
        track
    }

    /// The next packet as it was captured, and when it comes on the capture's clock, loops counted on.
    fn advance(&mut self, frame: &mut Vec<u8>) -> Option<(Arrival, u128)> {
        let arrival = match self.playing.next(frame) {
            Some(arrival) => arrival,
            None => {
                self.playing = self.reel.play();
                self.stamps = Stamps::new(self.longest_gap);
                self.index = 0;
                self.rounds += 1;
                // A reel that has become empty ends the replay.
                self.playing.next(frame)?
            }
        };
        let read = u128::from(self.stamps.read(arrival.time).as_nanos());
        let within = if self.measure.span == Time::ZERO { self.index.into() } else { read };
        self.index += 1;
        Some((arrival, u128::from(self.rounds) * self.measure.ticks() + within))
    }
}

impl Source for Track {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        if self.left == Some(0) {
            return None;
        }
        let (arrival, tick) = self.advance(frame)?;
        self.left = self.left.map(|left| left - 1);
        let origin = *self.origin.get_or_insert(tick);
        let ns = (tick - origin).saturating_mul(self.scale.0) / self.scale.1;
        let time = Time::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX));
        // Number 0 would be the names of the capture.
        let number = 1 + self.rounds * self.copies + self.copy;
        Names::new(self.seed, number).rename(frame, arrival.wire_len, arrival.link);
        Some(Arrival { time, ..arrival })
    }
}
