//! What replies say: latencies by class, from the moments at which requests were due.

use crate::latencies::Latencies;
use crate::protocol::Reply;
use crate::schedule::Window;

/// A request that was sent, until its reply is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// When it was due.
    pub due: u64,
    /// The class it was sent as.
    pub class: u8,
    /// Its number.
    pub number: u64,
}

/// What was measured of the requests of a window.
#[derive(Clone, Debug)]
pub struct Ledger {
    window: Window,
    /// Replies that came within the window, whenever their requests were due.
    pub within: u64,
    /// Replies that report an error of the server; among those measured.
    pub failed: u64,
    /// Requests whose connection ended before the reply.
    pub lost: u64,
    /// By class.
    pub classes: Vec<ClassLedger>,
}

/// What was measured of a class.
#[derive(Clone, Debug, Default)]
pub struct ClassLedger {
    /// Nanoseconds from the moment a request was due to its reply.
    pub latency: Latencies,
    /// Thousandths of latency ÷ service time, where that is known.
    pub slowdown: Latencies,
    /// The sum of the service times that are known, in nanoseconds.
    pub service: u64,
    /// The sum of what the server says that requests took, in nanoseconds.
    pub took: u64,
    /// Requests with a known service time.
    pub served: u64,
    /// The shortest and the longest service time that are known.
    pub bounds: Option<(u64, u64)>,
}

impl Ledger {
    /// Empty.
    pub fn new(window: Window) -> Ledger {
        Ledger { window, within: 0, failed: 0, lost: 0, classes: Vec::new() }
    }

    /// The window.
    pub fn window(&self) -> Window {
        self.window
    }

    /// Ends the window early.
    pub fn cut(&mut self, to: u64) {
        self.window.to = self.window.to.min(to).max(self.window.from);
    }

    /// A reply came at `at`.
    pub fn reply(&mut self, expected: &Expected, reply: &Reply, at: u64) {
        self.within += u64::from(self.window.has(at));
        if !self.window.has(expected.due) {
            return;
        }
        self.failed += u64::from(reply.is_error);
        let class = usize::from(reply.class.unwrap_or(expected.class));
        if self.classes.len() <= class {
            self.classes.resize_with(class + 1, ClassLedger::default);
        }
        let class = &mut self.classes[class];
        let latency = at.saturating_sub(expected.due);
        class.latency.record(latency);
        if let Some(service) = reply.service.filter(|service| service.target > 0) {
            class.slowdown.record((latency as f64 * 1e3 / service.target as f64) as u64);
            class.service += service.target;
            class.took += service.took;
            class.served += 1;
            let (least, most) = class.bounds.unwrap_or((service.target, service.target));
            class.bounds = Some((least.min(service.target), most.max(service.target)));
        }
    }

    /// A request will have no reply.
    pub fn lost(&mut self, expected: &Expected) {
        self.lost += u64::from(self.window.has(expected.due));
    }

    /// Replies to requests that were due in the window.
    pub fn answered(&self) -> u64 {
        self.classes.iter().map(|class| class.latency.count()).sum()
    }

    /// The latencies of all classes.
    pub fn latency(&self) -> Latencies {
        let mut all = Latencies::default();
        self.classes.iter().for_each(|class| all.add(&class.latency));
        all
    }
}

impl ClassLedger {
    pub(crate) fn add(&mut self, other: &ClassLedger) {
        self.latency.add(&other.latency);
        self.slowdown.add(&other.slowdown);
        self.service += other.service;
        self.took += other.took;
        self.served += other.served;
        self.bounds = match (self.bounds, other.bounds) {
            (Some(one), Some(two)) => Some((one.0.min(two.0), one.1.max(two.1))),
            (one, two) => one.or(two),
        };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::protocol::ServiceTime;

    /// The rank of the histogram's quantile, over a sorted list.
    fn exact(sorted: &[u64], share: f64) -> u64 {
        let rank = (sorted.len() as f64 * share).ceil() as usize;
        sorted[rank.clamp(1, sorted.len()) - 1]
    }

    proptest! {
        #[test]
        fn quantiles_and_counts_are_those_of_the_sorted_lists(
            replies in prop::collection::vec(
                (0..2_000_000_u64, 0..50_000_000_u64, 0..3_u8, 1..200_000_u64, any::<bool>()), 1..300
            ),
            from in 0..1_000_000_u64,
        ) {
            let window = Window { from, to: 1_500_000 };
            let mut ledger = Ledger::new(window);
            let mut latencies = vec![Vec::new(); 3];
            let mut slowdowns = vec![Vec::new(); 3];
            let (mut within, mut failed) = (0, 0);
            for (number, (due, latency, class, target, is_error)) in replies.into_iter().enumerate() {
                // The server's class counts, not the one it was sent as.
                let expected = Expected { due, class: 9, number: number as u64 };
                let service = Some(ServiceTime { target, took: target });
                ledger.reply(&expected, &Reply { class: Some(class), service, is_error, closes: false }, due + latency);
                within += u64::from(window.has(due + latency));
                if window.has(due) {
                    latencies[usize::from(class)].push(latency.max(1));
                    slowdowns[usize::from(class)].push(latency as f64 * 1e3 / target as f64);
                    failed += u64::from(is_error);
                }
            }
            prop_assert_eq!((ledger.within, ledger.failed), (within, failed));
            prop_assert_eq!(ledger.answered() as usize, latencies.iter().map(Vec::len).sum::<usize>());
            for (class, (latencies, slowdowns)) in latencies.iter_mut().zip(&mut slowdowns).enumerate() {
                let Some(measured) = ledger.classes.get(class) else {
                    prop_assert!(latencies.is_empty());
                    continue;
                };
                prop_assert_eq!(measured.latency.count() as usize, latencies.len());
                latencies.sort_unstable();
                slowdowns.sort_by(f64::total_cmp);
                for share in [0.5, 0.99, 0.999, 1.0] {
                    let Some(found) = measured.latency.quantile(share) else {
                        prop_assert!(latencies.is_empty());
                        continue;
                    };
                    let exact = exact(latencies, share);
                    prop_assert!(found.abs_diff(exact) <= exact / 500 + 1, "{} for {}", found, exact);
                }
                if let (Some(most), Some(exact)) = (measured.slowdown.most(), slowdowns.last()) {
                    prop_assert!((most as f64 - exact).abs() <= exact / 500.0 + 1.0);
                }
            }
        }
    }

    #[test]
    fn a_reply_counts_from_the_moment_its_request_was_due() {
        let mut ledger = Ledger::new(Window { from: 100, to: 200 });
        let reply = Reply { class: None, service: None, is_error: false, closes: false };
        let expected = |due| Expected { due, class: 0, number: 0 };
        ledger.reply(&expected(150), &reply, 900);
        ledger.reply(&expected(99), &reply, 150);
        ledger.lost(&expected(199));
        ledger.lost(&expected(200));
        assert_eq!((ledger.answered(), ledger.within, ledger.lost), (1, 1, 1));
        assert_eq!(ledger.latency().most(), Some(750));
        ledger.cut(140);
        assert_eq!(ledger.window(), Window { from: 100, to: 140 });
        ledger.cut(0);
        assert_eq!(ledger.window().seconds(), 0.0);
    }
}
