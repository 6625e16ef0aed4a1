//! A lane's part: which requests are timed, and what came of them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex, PoisonError};

use rheostat_base::{Histogram, Time};

use super::{RequestStage, Stamps, TimesConfig};

/// A request that takes longer, in nanoseconds, lets those behind it be timed.
const LONG: u32 = 10_000;
/// So many of them.
const EXPECTED: u32 = 64;

/// Boxes kept for requests to come: where lanes share connections, one may find requests that another one notes.
const SPARES: usize = 64;

/// A lane times one request in so many nanoseconds beside those that are sampled: five readings of the clock are less than 1 % of it.
const EACH: u64 = 20_000;
/// So many one behind the other, after a time in which few were timed.
const SAVED: u32 = 4_096;
/// So many of these are kept for requests that are late when they are found, and so are known to be slow.
const FOR_LATE: u32 = SAVED / 2;

/// Times requests on a lane.
pub(crate) struct TimesMeter {
    config: TimesConfig,
    record: Arc<Mutex<TimesRecord>>,
    /// When the segment at hand arrived, and was received.
    arrived: Time,
    received: Time,
    /// Requests until the next that is sampled.
    left: u32,
    /// Requests that are timed because one before took long.
    expected: u32,
    /// Requests beside those that are sampled which may still be timed.
    allowance: u32,
    /// Until when the allowance is counted.
    counted: Time,
    /// What the slowest requests took at least, in nanoseconds.
    slow: u32,
    /// Requests whose replies are about to be sent.
    #[expect(clippy::vec_box, reason = "a request that is timed keeps its box until it is noted")]
    leaving: Vec<Box<Timed>>,
    /// Boxes for those to come.
    #[expect(clippy::vec_box, reason = "as above")]
    spares: Vec<Box<Timed>>,
}

/// A request that is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timed {
    pub(crate) stamps: Stamps,
    /// Whether it was picked as one in so many.
    is_sampled: bool,
    /// Whether the application has begun to handle it.
    is_begun: bool,
}

/// What a lane has found out.
#[derive(Debug, Default)]
pub(crate) struct TimesRecord {
    /// Nanoseconds of each stage, and of all, of sampled requests.
    pub(crate) stages: [Histogram; RequestStage::COUNT],
    pub(crate) total: Histogram,
    /// Sums of the same, for means.
    pub(crate) sums: [u64; RequestStage::COUNT],
    /// The slowest requests that were timed, with what each took; the least slow one first.
    slowest: BinaryHeap<Reverse<(u32, Stamps)>>,
}

impl Timed {
    /// Another thread has handled the request, or a part of it, meanwhile.
    pub(crate) fn handled(&mut self, began: Time, ended: Time) {
        if !self.is_begun {
            self.is_begun = true;
            self.stamps.end(RequestStage::Queue, began);
        }
        self.stamps.end(RequestStage::Application, ended);
    }
}

impl TimesMeter {
    pub(crate) fn new(config: TimesConfig, record: Arc<Mutex<TimesRecord>>) -> TimesMeter {
        let left = config.one_in;
        TimesMeter {
            config,
            record,
            arrived: Time::ZERO,
            received: Time::ZERO,
            left,
            expected: 0,
            allowance: SAVED,
            counted: Time::ZERO,
            slow: 0,
            leaving: Vec::new(),
            spares: Vec::new(),
        }
    }

    /// A segment is at hand that the device stamped with `stamp`, and that was received at `received`.
    #[inline]
    pub(crate) fn begin(&mut self, stamp: Time, received: Time) {
        self.arrived = if self.config.has_arrivals { stamp.min(received) } else { received };
        self.received = received;
    }

    /// A request was found in the segment at hand: to be timed, or not.
    #[inline]
    pub(crate) fn find(&mut self, class: u8) -> Option<Box<Timed>> {
        self.left = self.left.saturating_sub(1);
        let is_sampled = self.left == 0;
        if is_sampled {
            self.left = self.config.one_in;
        } else if !self.may_be_slow() {
            return None;
        }
        let mut stamps = Stamps::new(self.arrived, class);
        stamps.end(RequestStage::ReceiveQueue, self.received);
        stamps.end(RequestStage::TcpIn, self.config.clock.now());
        let timed = Timed { stamps, is_sampled, is_begun: false };
        match self.spares.pop() {
            Some(mut place) => {
                *place = timed;
                Some(place)
            }
            None => Some(Box::new(timed)),
        }
    }

    /// Whether the request at hand may be among the slowest, and may be timed.
    #[inline]
    fn may_be_slow(&mut self) -> bool {
        let waited = self.received.since(self.arrived).as_nanos() as u64;
        let is_late = waited > u64::from(self.slow / 2);
        if !is_late && self.expected == 0 {
            return false;
        }
        self.expected = self.expected.saturating_sub(1);
        let earned = self.received.since(self.counted).as_nanos() as u64 / EACH;
        if earned > 0 {
            let earned = u32::try_from(earned).unwrap_or(SAVED);
            self.allowance = self.allowance.saturating_add(earned).min(SAVED);
            self.counted = self.received;
        }
        let is_allowed = self.allowance > if is_late { 0 } else { FOR_LATE };
        self.allowance -= u32::from(is_allowed);
        is_allowed
    }

    /// A stage of a request has ended.
    pub(crate) fn end(&self, timed: &mut Option<Box<Timed>>, stage: RequestStage) {
        if let Some(timed) = timed {
            timed.stamps.end(stage, self.config.clock.now());
        }
    }

    /// The application begins to handle a request, or goes on with it.
    pub(crate) fn handle(&self, timed: &mut Option<Box<Timed>>) {
        if let Some(timed) = timed.as_mut().filter(|timed| !timed.is_begun) {
            timed.is_begun = true;
            timed.stamps.end(RequestStage::Queue, self.config.clock.now());
        }
    }

    /// The reply to a request is encoded.
    #[inline]
    pub(crate) fn encoded(&mut self, timed: Option<Box<Timed>>) {
        self.leaving.extend(timed);
    }

    /// What was encoded is sent.
    #[inline]
    pub(crate) fn sent(&mut self) {
        if !self.leaving.is_empty() {
            self.note_sent();
        }
    }

    #[cold]
    fn note_sent(&mut self) {
        let now = self.config.clock.now();
        let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        for mut timed in self.leaving.drain(..) {
            timed.stamps.end(RequestStage::TcpOut, now);
            if timed.stamps.total() > LONG {
                self.expected = EXPECTED;
            }
            if timed.is_sampled {
                record.sample(&timed.stamps);
            }
            self.slow = record.rank(timed.stamps, self.config.slowest);
            if self.spares.len() < SPARES {
                self.spares.push(timed);
            }
        }
    }
}

impl TimesRecord {
    fn sample(&mut self, stamps: &Stamps) {
        for ((histogram, sum), nanos) in self.stages.iter().zip(&mut self.sums).zip(stamps.stages())
        {
            histogram.record(nanos.into());
            *sum += u64::from(nanos);
        }
        self.total.record(stamps.total().into());
    }

    /// Keeps a request if it is among the slowest `most`; returns what these took at least.
    fn rank(&mut self, stamps: Stamps, most: usize) -> u32 {
        // Of requests that took as long, the later one is kept.
        let total = stamps.total();
        if self.slowest.len() < most {
            self.slowest.push(Reverse((total, stamps)));
            return 0;
        }
        if self.slowest.peek().is_some_and(|Reverse((least, _))| total >= *least) {
            self.slowest.pop();
            self.slowest.push(Reverse((total, stamps)));
        }
        self.slowest.peek().map_or(u32::MAX, |Reverse((least, _))| *least)
    }

    /// The slowest requests, in no order.
    pub(crate) fn slowest(&self) -> impl Iterator<Item = &Stamps> {
        self.slowest.iter().map(|Reverse((_, stamps))| stamps)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rheostat_base::VirtualClock;

    use super::*;

    /// Requests that take these nanoseconds, each of which is handled at once, with what was found out.
    fn timed(took: &[u64], one_in: u32, slowest: usize) -> TimesRecord {
        let clock = Arc::new(VirtualClock::new());
        let config = TimesConfig { one_in, slowest, ..TimesConfig::new(clock.clone()) };
        let record = Arc::new(Mutex::new(TimesRecord::default()));
        let mut meter = TimesMeter::new(config, record.clone());
        let mut now = Time::from_secs(1);
        for took in took {
            clock.advance_to(now);
            meter.begin(Time::ZERO, now);
            let mut timed = meter.find(0);
            now += Duration::from_nanos(*took);
            clock.advance_to(now);
            meter.end(&mut timed, RequestStage::Application);
            meter.encoded(timed);
            meter.sent();
        }
        drop(meter);
        Arc::try_unwrap(record).unwrap().into_inner().unwrap()
    }

    #[test]
    fn one_request_in_so_many_is_sampled() {
        let record = timed(&[50; 1_000], 10, 0);
        assert_eq!(record.total.count(), 100);
        let application = &record.stages[RequestStage::Application as usize];
        assert_eq!((application.count(), application.quantile(0.5)), (100, Some(50)));
        assert_eq!(record.sums[RequestStage::Application as usize], 5_000);
    }

    #[test]
    fn behind_a_long_request_others_are_timed_and_the_slowest_kept() {
        // The first is timed since nothing is known; from then on, each is long.
        let took: Vec<_> = (0..200).map(|n| 20_000 + n).collect();
        let record = timed(&took, 1, 3);
        let mut slowest: Vec<_> = record.slowest().map(Stamps::total).collect();
        slowest.sort_unstable();
        assert_eq!(slowest, [20_197, 20_198, 20_199]);
        // Where few are sampled as well.
        let record = timed(&took, 100, 3);
        let mut slowest: Vec<_> = record.slowest().map(Stamps::total).collect();
        slowest.sort_unstable();
        assert_eq!(slowest, [20_197, 20_198, 20_199]);
        assert_eq!(
            record.total.count(),
            2,
            "those that are timed for another reason are no sample"
        );
    }

    #[test]
    fn timing_is_bounded_where_all_requests_are_late() {
        let clock = Arc::new(VirtualClock::new());
        let config = TimesConfig {
            one_in: u32::MAX,
            slowest: 10,
            has_arrivals: true,
            ..TimesConfig::new(clock.clone())
        };
        let record = Arc::new(Mutex::new(TimesRecord::default()));
        let mut meter = TimesMeter::new(config, record.clone());
        // Each waited for longer than those before, and a request is found each microsecond.
        let mut timed_of = |from: Time, requests: u64, late: u64| {
            let find = |n: u64| {
                let received = from + Duration::from_micros(n);
                clock.advance_to(received);
                meter.begin(received - Duration::from_nanos(late + 2 * n), received);
                let timed = meter.find(0);
                let is_timed = timed.is_some();
                meter.encoded(timed);
                meter.sent();
                u64::from(is_timed)
            };
            (0..requests).map(find).sum::<u64>()
        };
        let timed = timed_of(Time::from_secs(1), 100_000, 10_000);
        let (saved, earned) = (u64::from(SAVED), 100_000_000 / EACH);
        assert!((saved + earned - 1..=saved + earned).contains(&timed), "{timed}");
        // After a time without requests there is room for a burst of late ones.
        assert_eq!(timed_of(Time::from_secs(2), 3_000, 10_000_000), 3_000);
        let slowest = record.lock().unwrap().slowest().map(Stamps::total).min();
        assert_eq!(slowest, Some(10_000_000 + 2 * 2_990));
    }

    #[test]
    fn requests_that_are_late_when_they_are_found_are_timed() {
        let clock = Arc::new(VirtualClock::new());
        let config = TimesConfig {
            one_in: u32::MAX,
            slowest: 1,
            has_arrivals: true,
            ..TimesConfig::new(clock.clone())
        };
        let record = Arc::new(Mutex::new(TimesRecord::default()));
        let mut meter = TimesMeter::new(config, record.clone());
        let now = Time::from_secs(1);
        clock.advance_to(now);
        for waited in [100, 300, 200, 900] {
            meter.begin(now - Duration::from_nanos(waited), now);
            let timed = meter.find(0);
            meter.encoded(timed);
            meter.sent();
        }
        let record = record.lock().unwrap();
        assert_eq!(
            record.slowest().map(Stamps::stages).collect::<Vec<_>>(),
            [[900, 0, 0, 0, 0, 0]]
        );
    }
}
