//! Meters as the RFCs tell them, over fractions: bytes and seconds, no units of one's own, no rounding.

use super::super::Colour;

/// A fraction in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ratio {
    above: i128,
    below: i128,
}

impl Ratio {
    pub(super) fn new(above: i128, below: i128) -> Ratio {
        let divisor = common_divisor(above.abs(), below);
        Ratio { above: above / divisor, below: below / divisor }
    }

    fn whole(number: u64) -> Ratio {
        Ratio::new(number.into(), 1)
    }

    /// What stands above the line in both, over what then stands below it in both.
    fn over_one_line(self, other: Ratio) -> (i128, i128, i128) {
        let divisor = common_divisor(self.below, other.below);
        let (mine, theirs) = (other.below / divisor, self.below / divisor);
        (self.above * mine, other.above * theirs, self.below * mine)
    }

    fn plus(self, other: Ratio) -> Ratio {
        let (mine, theirs, below) = self.over_one_line(other);
        Ratio::new(mine + theirs, below)
    }

    fn minus(self, other: Ratio) -> Ratio {
        self.plus(Ratio { above: -other.above, ..other })
    }

    fn times(self, other: Ratio) -> Ratio {
        Ratio::new(self.above * other.above, self.below * other.below)
    }

    fn at_most(self, other: Ratio) -> bool {
        let (mine, theirs, _) = self.over_one_line(other);
        mine <= theirs
    }

    fn min(self, other: Ratio) -> Ratio {
        if self.at_most(other) { self } else { other }
    }
}

fn common_divisor(mut a: i128, mut b: i128) -> i128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// One bucket: its tokens in bytes.
#[derive(Clone, Copy, Debug)]
struct Tokens {
    held: Ratio,
    size: Ratio,
}

impl Tokens {
    fn full(bytes: u64) -> Tokens {
        Tokens { held: Ratio::whole(bytes), size: Ratio::whole(bytes) }
    }

    /// Adds tokens, and returns those that did not fit.
    fn add(&mut self, bytes: Ratio) -> Ratio {
        let kept = bytes.min(self.size.minus(self.held));
        self.held = self.held.plus(kept);
        bytes.minus(kept)
    }

    fn has(&self, bytes: u32) -> bool {
        Ratio::whole(bytes.into()).at_most(self.held)
    }

    fn pay(&mut self, bytes: u32) {
        self.held = self.held.minus(Ratio::whole(bytes.into()));
    }
}

/// A meter. Rates are in bits per second, bursts in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Oracle {
    rate: u64,
    /// Of RFC 2698 only.
    peak_rate: Option<u64>,
    committed: Tokens,
    second: Tokens,
    latest: u64,
}

impl Oracle {
    pub(super) fn new(
        rate: u64,
        committed: u64,
        second: u64,
        peak_rate: Option<u64>,
        now: u64,
    ) -> Oracle {
        let (committed, second) = (Tokens::full(committed), Tokens::full(second));
        Oracle { rate, peak_rate, committed, second, latest: now }
    }

    pub(super) fn colour(&mut self, now: u64, bytes: u32, before: Colour) -> Colour {
        let seconds = Ratio::new(now.saturating_sub(self.latest).into(), 1_000_000_000);
        self.latest = self.latest.max(now);
        let brought = |rate: u64| Ratio::new(rate.into(), 8).times(seconds);
        let spilt = self.committed.add(brought(self.rate));
        self.second.add(self.peak_rate.map_or(spilt, brought));
        match (before, self.peak_rate) {
            (Colour::Green, None) if self.committed.has(bytes) => {
                self.committed.pay(bytes);
                Colour::Green
            }
            (Colour::Green | Colour::Yellow, None) if self.second.has(bytes) => {
                self.second.pay(bytes);
                Colour::Yellow
            }
            (Colour::Green, Some(_)) if self.second.has(bytes) && self.committed.has(bytes) => {
                self.second.pay(bytes);
                self.committed.pay(bytes);
                Colour::Green
            }
            (Colour::Green | Colour::Yellow, Some(_)) if self.second.has(bytes) => {
                self.second.pay(bytes);
                Colour::Yellow
            }
            _ => Colour::Red,
        }
    }

    /// The tokens held, in bytes.
    pub(super) fn held(&self) -> [Ratio; 2] {
        [self.committed.held, self.second.held]
    }
}
