//! When arrivals of a source reach the queues.

use std::time::Duration;

use rheostat_base::Time;

use crate::device::Stamping;

/// Bytes a frame occupies on an Ethernet link beside those we see: preamble and start delimiter 8,
/// frame check sequence 4, gap 12 (IEEE 802.3).
const FRAMING: u64 = 24;

/// How the time of an arrival, as its source gives it, relates to the clock of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pacing {
    /// Open loop: what arrives at `t` on the source's clock arrives at `origin + t` on that of the
    /// run, whether or not a lane is ready for it, and is stamped so. `None`: the source starts with
    /// the first poll.
    OpenLoop {
        /// When the source's clock is at zero.
        origin: Option<Time>,
    },
    /// Open loop, but packets keep the source's time as their stamp: the first arrives with the first
    /// poll, the others at the source's distances divided by `speed`.
    Replay {
        /// 2 is twice as fast as recorded.
        speed: f64,
    },
    /// As fast as the lanes take them: a packet arrives once its queue has room and a buffer is free,
    /// so that nothing is dropped. Packets keep the source's time as their stamp.
    Lossless,
}

impl Pacing {
    /// What stamps packets.
    pub(super) fn stamping(self) -> Stamping<'static> {
        Stamping::by_device(matches!(self, Pacing::OpenLoop { .. }))
    }
}

/// When a packet may be delivered, and the time it is stamped with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) due: Time,
    pub(super) timestamp: Time,
}

/// Maps the times of a source to the clock of the run.
#[derive(Debug)]
pub(super) struct Schedule {
    pacing: Pacing,
    /// The first poll, and the first arrival on the source's clock.
    start: Option<(Time, Time)>,
    link: Option<Link>,
}

/// A link that carries one frame after the other.
#[derive(Debug)]
struct Link {
    bits_per_second: u64,
    free: Time,
    /// What was left when the time of earlier frames was cut down to whole nanoseconds, in bits ·
    /// 10^9 / rate.
    remainder: u128,
}

impl Schedule {
    pub(super) fn new(pacing: Pacing, bits_per_second: Option<u64>) -> Schedule {
        let link = bits_per_second.map(|bits_per_second| Link {
            bits_per_second,
            free: Time::ZERO,
            remainder: 0,
        });
        Schedule { pacing, start: None, link }
    }

    pub(super) fn is_lossless(&self) -> bool {
        self.pacing == Pacing::Lossless
    }

    /// Whether packets keep the source's time as their stamp.
    pub(super) fn keeps_stamps(&self) -> bool {
        !matches!(self.pacing, Pacing::OpenLoop { .. })
    }

    /// Places the next arrival of the source, of `wire_len` bytes at `time`, on the clock of the run,
    /// which is at `now`.
    pub(super) fn place(&mut self, time: Time, wire_len: u32, now: Time) -> Slot {
        let (start, first) = *self.start.get_or_insert((now, time));
        match self.pacing {
            Pacing::Lossless => Slot { due: Time::ZERO, timestamp: time },
            Pacing::OpenLoop { origin } => {
                let sent = origin.unwrap_or(start) + time.since(Time::ZERO);
                let due = self.carry(sent, wire_len);
                Slot { due, timestamp: due }
            }
            Pacing::Replay { speed } => {
                let gap = time.since(first).as_nanos() as f64 / speed;
                // A float beyond the range of an integer becomes its largest value.
                let sent = start + Duration::from_nanos(gap as u64);
                Slot { due: self.carry(sent, wire_len), timestamp: time }
            }
        }
    }

    /// When the last bit of a frame that is ready at `sent` has passed the link.
    fn carry(&mut self, sent: Time, wire_len: u32) -> Time {
        let Some(link) = &mut self.link else { return sent };
        if sent > link.free {
            link.free = sent;
            link.remainder = 0;
        }
        let bits =
            (u128::from(wire_len) + u128::from(FRAMING)) * 8 * 1_000_000_000 + link.remainder;
        let rate = u128::from(link.bits_per_second);
        link.remainder = bits % rate;
        link.free += Duration::from_nanos(u64::try_from(bits / rate).unwrap_or(u64::MAX));
        link.free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Time = Time::from_millis;

    fn place(schedule: &mut Schedule, time: Time, now: Time) -> Slot {
        schedule.place(time, 60, now)
    }

    #[test]
    fn an_open_loop_shifts_the_source_by_its_origin() {
        let mut fixed = Schedule::new(Pacing::OpenLoop { origin: Some(MS(5)) }, None);
        assert_eq!(place(&mut fixed, MS(3), MS(100)), Slot { due: MS(8), timestamp: MS(8) });
        let mut first_poll = Schedule::new(Pacing::OpenLoop { origin: None }, None);
        assert_eq!(place(&mut first_poll, MS(3), MS(100)).due, MS(103));
        assert_eq!(place(&mut first_poll, MS(4), MS(900)).due, MS(104));
    }

    #[test]
    fn a_replay_keeps_the_stamps_and_scales_the_distances() {
        let epoch = Time::from_secs(1_700_000_000);
        let second = epoch + Duration::from_millis(30);
        let mut replay = Schedule::new(Pacing::Replay { speed: 3.0 }, None);
        assert_eq!(place(&mut replay, epoch, MS(7)), Slot { due: MS(7), timestamp: epoch });
        assert_eq!(place(&mut replay, second, MS(8)), Slot { due: MS(17), timestamp: second });
        // A time stamp that goes back does not hold anything up.
        assert_eq!(place(&mut replay, Time::ZERO, MS(9)).due, MS(7));
        assert_eq!(place(&mut replay, Time::NEVER, MS(9)).timestamp, Time::NEVER);
    }

    #[test]
    fn a_link_spaces_frames_out_and_loses_no_fraction() {
        let open = Pacing::OpenLoop { origin: Some(Time::ZERO) };
        // 84 bytes at 100 Gb/s take 6.72 ns.
        let mut schedule = Schedule::new(open, Some(100_000_000_000));
        let last = (0..100).map(|_| place(&mut schedule, Time::ZERO, Time::ZERO).due).last();
        assert_eq!(last, Some(Time::from_nanos(672)));
        // After a pause the link is free at once.
        let due = place(&mut schedule, Time::from_nanos(10_000), Time::ZERO).due;
        assert_eq!(due, Time::from_nanos(10_006));
    }

    #[test]
    fn without_loss_time_gates_nothing() {
        let mut schedule = Schedule::new(Pacing::Lossless, Some(1));
        let slot = place(&mut schedule, MS(50), Time::ZERO);
        assert_eq!(slot, Slot { due: Time::ZERO, timestamp: MS(50) });
    }
}
