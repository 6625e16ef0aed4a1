//! Time and egress inside a batch: what a long request must not do to others.
//!
//! A flush is a system call on a live device, so replies gather; and a reply that gathers waits for work on other connections. Both
//! are bounded by the age of the oldest reply that has not left. Flushes are no part of the time that packets take.

use std::time::Duration;

use rheostat_base::Time;
use rheostat_run::Output;

/// A reply waits no longer than this for work on other packets, as far as that can be known beforehand.
const LONGEST_WAIT: Duration = Duration::from_micros(20);
/// A packet that takes longer is a long one: the time of later packets is not before its end.
const LONG: Duration = Duration::from_micros(5);
/// Replies leave behind a long packet if a flush takes no more than this part of the packet's time.
const CHEAP: u32 = 4;
/// Work that takes longer lets another lane look for packets: waking one takes some microseconds.
const LONG_WORK: Duration = Duration::from_micros(50);
/// The next packet is expected to take as long as the longest of about so many.
const REMEMBERED: u32 = 8;

/// How fast packets are handled, and when replies leave.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    /// The time that later packets have at least, and whatever else the lane does: that at the end of the last long one or of the
    /// last flush. What begins afterwards in the same poll is called with an older time.
    pub(super) now: Time,
    /// When the packet at hand was begun: at the end of the one before, or of the flush behind that.
    began: Time,
    /// How long the last packet or piece of work took.
    took: Duration,
    /// How long the next one is expected to take.
    expected: Duration,
    /// Packets until a shorter one is believed.
    remembered: u32,
    /// When the oldest reply was noticed that has not left.
    oldest: Option<Time>,
    /// How long the last flush took.
    flush: Duration,
    /// Whether the last work that was put off took long enough for another lane to look for packets.
    had_long_work: bool,
}

impl Pace {
    /// When the packet at hand was begun.
    #[inline]
    pub(super) fn began(&self) -> Time {
        self.began
    }

    /// A batch begins: when the poll did, or at the end of what came before in it. Lanes that share shards have waited for the
    /// queue and for a shard since then, which is no part of the time that packets take.
    pub(super) fn begin(&mut self, out: &Output, shares_shards: bool) {
        self.begin_at(if shares_shards { out.read_clock() } else { out.began() });
    }

    #[inline]
    fn begin_at(&mut self, time: Time) {
        self.began = self.began.max(time);
    }

    /// The time is no earlier than the end of the last long packet or flush.
    #[inline]
    pub(super) fn advance(&self, out: &mut Output) {
        out.set_now(out.now().max(self.now));
    }

    /// A packet is done. Replies leave if they would wait too long otherwise.
    #[inline]
    pub(super) fn end_packet(&mut self, out: &mut Output) {
        self.note_end(out.read_clock());
        self.flush_if_due(out);
    }

    /// Work that was put off is done; what is sent for it comes next.
    #[inline]
    pub(super) fn end_work(&mut self, out: &Output) {
        self.note_work_end(out.read_clock());
    }

    fn note_work_end(&mut self, now: Time) {
        self.note_end(now);
        self.had_long_work = self.took > LONG_WORK;
    }

    /// Whether the last work that was put off took long.
    #[inline]
    pub(super) fn had_long_work(&self) -> bool {
        self.had_long_work
    }

    /// What is sent for such work has been collected. Replies leave if they would wait too long otherwise.
    #[inline]
    pub(super) fn flush_if_due(&mut self, out: &mut Output) {
        if self.is_due(out.has_collected()) {
            out.flush();
            self.note_flush(out.read_clock());
        }
    }

    /// A packet or a piece of work is done at `now`.
    #[inline]
    fn note_end(&mut self, now: Time) {
        self.took = now.since(self.began);
        self.began = now;
        if self.took > LONG {
            self.now = now;
        }
        if self.took >= self.expected || self.remembered == 0 {
            (self.expected, self.remembered) = (self.took, REMEMBERED);
        } else {
            self.remembered -= 1;
        }
    }

    /// Whether replies are to leave, if any are `collected`, now that a packet is done.
    #[inline]
    fn is_due(&mut self, collected: bool) -> bool {
        if !collected {
            self.oldest = None;
            return false;
        }
        let now = self.began;
        let age = now.since(*self.oldest.get_or_insert(now));
        age + self.expected > LONGEST_WAIT || self.took > LONG && self.flush * CHEAP <= self.took
    }

    /// What was collected has left by `now`.
    #[inline]
    fn note_flush(&mut self, now: Time) {
        self.flush = now.since(self.began);
        (self.began, self.now, self.oldest) = (now, now, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MICROS: fn(u64) -> Time = |micros| Time::from_nanos(micros * 1_000);
    /// Packets of a batch.
    const BATCH: usize = 32;

    /// A device whose system call costs as on a virtual cable.
    fn system_call(replies: usize) -> Duration {
        Duration::from_nanos(4_000 + 600 * replies as u64)
    }

    /// A device in the memory of the process.
    fn memory(_: usize) -> Duration {
        Duration::from_nanos(200)
    }

    /// A lane in virtual time: each packet has a reply, and a flush takes as long as the device has it.
    struct LaneModel {
        pace: Pace,
        now: Time,
        flush: fn(usize) -> Duration,
        /// When the replies were made that have not left.
        collected: Vec<Time>,
        /// How long each reply waited for others.
        waits: Vec<Duration>,
        flushes: usize,
    }

    impl LaneModel {
        fn new(flush: fn(usize) -> Duration) -> LaneModel {
            let now = MICROS(100);
            let pace = Pace { began: now, ..Pace::default() };
            LaneModel { pace, now, flush, collected: Vec::new(), waits: Vec::new(), flushes: 0 }
        }

        /// Handles packets that take so long, a batch in each poll.
        fn handle(&mut self, packets: impl IntoIterator<Item = Duration>) {
            let packets: Vec<_> = packets.into_iter().collect();
            for batch in packets.chunks(BATCH) {
                self.pace.begin_at(self.now);
                for packet in batch {
                    self.now += *packet;
                    self.pace.note_end(self.now);
                    self.collected.push(self.now);
                    if self.pace.is_due(true) {
                        self.flush();
                        self.pace.note_flush(self.now);
                    }
                }
                // At the end of the poll: the service does not learn of it.
                if !self.collected.is_empty() {
                    self.flush();
                }
                assert!(!self.pace.is_due(false), "nothing is collected");
            }
        }

        fn flush(&mut self) {
            let now = self.now;
            self.now += (self.flush)(self.collected.len());
            self.waits.extend(self.collected.drain(..).map(|made| now.since(made)));
            self.flushes += 1;
        }
    }

    #[test]
    fn replies_gather_though_each_system_call_takes_longer_than_a_packet() {
        let mut lane = LaneModel::new(system_call);
        let packet = Duration::from_nanos(900);
        // As often as a busy machine takes the core away.
        let interrupted =
            |n: usize| if n % 500 == 77 { Duration::from_micros(300) } else { packet };
        lane.handle((0..32_000).map(interrupted));
        assert!(lane.flushes * 10 <= 32_000, "{} flushes of 32000 replies", lane.flushes);
    }

    #[test]
    fn no_reply_waits_longer_than_the_bound_for_packets_whose_time_is_known() {
        let constant =
            [100, 900, 3_000, 4_900, 5_100, 9_000, 10_000, 15_000, 19_900, 20_100, 90_000];
        let constant = constant.map(|nanos| vec![nanos]);
        let mixed = [vec![500, 12_000], vec![500, 500, 500, 500, 500, 500, 500, 40_000]];
        for period in constant.iter().chain(&mixed) {
            for flush in [system_call, memory] {
                let mut lane = LaneModel::new(flush);
                let packets = period.iter().cycle().map(|nanos| Duration::from_nanos(*nanos));
                lane.handle(packets.take(3_200));
                assert_eq!(lane.waits.len(), 3_200);
                let known = &lane.waits[period.len()..];
                let longest = known.iter().max().expect("replies");
                assert!(*longest <= LONGEST_WAIT, "{longest:?} with {period:?} ns");
            }
        }
    }

    #[test]
    fn behind_a_long_packet_replies_leave_at_once_where_that_is_cheap() {
        let packets = || [Duration::from_micros(10); 64];
        let mut lane = LaneModel::new(memory);
        lane.handle(packets());
        assert_eq!((lane.flushes, lane.waits), (64, vec![Duration::ZERO; 64]));
        let mut lane = LaneModel::new(system_call);
        lane.handle(packets());
        assert!(lane.flushes <= 32, "two at least leave by one system call: {}", lane.flushes);
    }

    #[test]
    fn time_goes_on_behind_a_long_packet_and_behind_a_flush() {
        let mut pace = Pace { began: MICROS(100), ..Pace::default() };
        pace.note_end(MICROS(104));
        pace.note_end(MICROS(109));
        assert_eq!(pace.now, Time::ZERO, "short ones go by the time at which they came");
        pace.note_end(MICROS(115));
        assert_eq!(pace.now, MICROS(115));
        pace.note_end(MICROS(116));
        assert_eq!(pace.now, MICROS(115));
        pace.note_flush(MICROS(123));
        assert_eq!((pace.now, pace.began()), (MICROS(123), MICROS(123)));
    }

    #[test]
    fn waiting_for_a_shard_does_not_make_the_next_packet_a_long_one() {
        let mut pace = Pace::default();
        for (began, is_due) in [(100, false), (110, false), (118, false), (121, true)] {
            pace.begin_at(MICROS(began));
            pace.note_end(MICROS(began + 1));
            assert_eq!(pace.is_due(true), is_due, "{began}");
        }
    }

    #[test]
    fn a_packet_without_a_reply_keeps_nothing_waiting() {
        let mut pace = Pace { began: MICROS(100), ..Pace::default() };
        for packet in 1..=100 {
            pace.note_end(MICROS(100 + 3 * packet));
            assert!(!pace.is_due(false), "{packet}");
        }
        assert!(!pace.is_due(true), "its age counts from now");
    }

    #[test]
    fn work_is_expected_to_take_as_long_as_the_last() {
        let mut pace = Pace { began: MICROS(100), ..Pace::default() };
        assert!(!pace.had_long_work());
        for (now, is_long) in [(160, true), (161, false), (240, true), (290, false)] {
            pace.note_work_end(MICROS(now));
            assert_eq!(pace.had_long_work(), is_long, "{now}");
        }
    }
}
