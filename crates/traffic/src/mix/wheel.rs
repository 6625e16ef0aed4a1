//! Which flow sends next: a wheel of virtual ticks with a list of flows in each.

/// No flow.
const END: u32 = u32::MAX;

/// A calendar queue over flow numbers; each is in it at most once.
#[derive(Debug)]
pub(super) struct Wheel {
    /// The first flow due at each tick.
    first: Vec<u32>,
    /// The next flow due at the same tick, by flow.
    next: Vec<u32>,
    now: usize,
}

impl Wheel {
    /// A wheel for flows `0..flows`, with about one of them due at each tick.
    pub(super) fn new(flows: u32) -> Wheel {
        let ticks = (flows as usize).next_power_of_two().clamp(16, 1 << 20);
        Wheel { first: vec![END; ticks], next: vec![END; flows as usize], now: 0 }
    }

    /// The longest a flow can be put off, in ticks.
    pub(super) fn span(&self) -> u32 {
        self.first.len() as u32 - 1
    }

    /// Makes `flow`, which is not in the wheel, due `pause` ticks from now, 1 to [`Wheel::span`].
    pub(super) fn schedule(&mut self, flow: u32, pause: u32) {
        debug_assert!((1..=self.span()).contains(&pause));
        let tick = (self.now + pause as usize) & (self.first.len() - 1);
        self.next[flow as usize] = self.first[tick];
        self.first[tick] = flow;
    }

    /// Takes the flow that is due next. The wheel must not be empty.
    pub(super) fn next(&mut self) -> u32 {
        while self.first[self.now] == END {
            self.now = (self.now + 1) & (self.first.len() - 1);
        }
        let flow = self.first[self.now];
        self.first[self.now] = self.next[flow as usize];
        flow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_come_back_when_they_are_due() {
        let mut wheel = Wheel::new(3);
        wheel.schedule(0, 5);
        wheel.schedule(1, 2);
        wheel.schedule(2, 15);
        assert_eq!(wheel.next(), 1);
        wheel.schedule(1, 4);
        assert_eq!([wheel.next(), wheel.next(), wheel.next()], [0, 1, 2]);
    }
}
