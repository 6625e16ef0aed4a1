//! Which mode a lane is in: busy, metronome, or interrupt.

use std::fmt;
use std::time::Duration;

use rheostat_base::Time;

/// How a lane is polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Without sleep: the target cannot be met otherwise.
    Busy,
    /// With sleeps between polls.
    Metronome,
    /// Not at all until a packet comes: the lane has been idle for long.
    Interrupt,
}

impl Mode {
    /// All modes.
    pub const ALL: [Mode; 3] = [Mode::Busy, Mode::Metronome, Mode::Interrupt];

    fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Busy => "busy",
            Mode::Metronome => "metronome",
            Mode::Interrupt => "interrupt",
        })
    }
}

/// When modes change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeRules {
    /// A lane without packets for so long goes to [`Mode::Interrupt`]; `None`: never.
    pub idle_after: Option<Duration>,
    /// Whether a lane that misses its target goes to [`Mode::Busy`].
    pub busy_on_miss: bool,
}

impl Default for ModeRules {
    fn default() -> ModeRules {
        ModeRules { idle_after: Some(ModeRules::IDLE_AFTER), busy_on_miss: true }
    }
}

impl ModeRules {
    /// Long beside every gap of traffic that is under way, and short beside the time for which a core counts as idle.
    pub const IDLE_AFTER: Duration = Duration::from_millis(100);
    /// Windows in a row that miss the target before the lane is polled without sleep: one may be an accident.
    const MISSES: u32 = 2;
    /// The first stay in [`Mode::Busy`], and how long a stay in [`Mode::Metronome`] forgives earlier misses.
    const HOLD: Duration = Duration::from_millis(100);
    /// The longest stay in [`Mode::Busy`]. Each stay is twice the one before, so that of all time at most two windows in
    /// 10 s are lost to trying.
    const HOLD_AT_MOST: Duration = Duration::from_secs(10);
}

/// The mode of one lane, how long it has been in each, and how it changes.
///
/// | from | to | when |
/// |---|---|---|
/// | metronome | busy | two windows in a row missed the target |
/// | busy | metronome | a hold is over, which doubles from 100 ms to 10 s with each return; a second in metronome resets it |
/// | metronome, busy | interrupt | no packet for `idle_after` |
/// | interrupt | metronome | a packet |
#[derive(Clone, Debug)]
pub struct ModeMachine {
    rules: ModeRules,
    mode: Mode,
    /// When the present mode began.
    since: Time,
    /// When the lane last had packets.
    last_packet: Time,
    misses: u32,
    /// How long the next stay in busy lasts.
    hold: Duration,
    spent: [Duration; 3],
    changes: u64,
}

impl ModeMachine {
    /// A lane that begins in [`Mode::Metronome`] at `now`.
    pub fn new(rules: ModeRules, now: Time) -> ModeMachine {
        ModeMachine {
            rules,
            mode: Mode::Metronome,
            since: now,
            last_packet: now,
            misses: 0,
            hold: ModeRules::HOLD,
            spent: [Duration::ZERO; 3],
            changes: 0,
        }
    }

    /// The present mode.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// How long the lane was in a mode, up to `now`.
    pub fn spent(&self, mode: Mode, now: Time) -> Duration {
        let present = if mode == self.mode { now.since(self.since) } else { Duration::ZERO };
        self.spent[mode.index()] + present
    }

    /// How often the mode changed.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// The lane was visited and had `packets` packets.
    pub fn on_visit(&mut self, now: Time, packets: u64) -> Mode {
        if packets > 0 {
            self.last_packet = now;
            if self.mode == Mode::Interrupt {
                self.enter(Mode::Metronome, now);
            }
        } else if self.mode != Mode::Interrupt
            && self.rules.idle_after.is_some_and(|after| now.since(self.last_packet) >= after)
        {
            self.enter(Mode::Interrupt, now);
        }
        if self.mode == Mode::Busy && now.since(self.since) >= self.hold {
            self.hold = (2 * self.hold).min(ModeRules::HOLD_AT_MOST);
            self.enter(Mode::Metronome, now);
        }
        self.mode
    }

    /// A window of vacations ended; `missed` is whether they were too long for the target.
    pub fn on_window(&mut self, now: Time, missed: bool) -> Mode {
        if self.mode != Mode::Metronome || !self.rules.busy_on_miss {
            return self.mode;
        }
        self.misses = if missed { self.misses + 1 } else { 0 };
        if self.misses >= ModeRules::MISSES {
            self.enter(Mode::Busy, now);
        } else if !missed && now.since(self.since) >= 10 * ModeRules::HOLD {
            self.hold = ModeRules::HOLD;
        }
        self.mode
    }

    fn enter(&mut self, mode: Mode, now: Time) {
        self.spent[self.mode.index()] += now.since(self.since);
        self.mode = mode;
        self.since = now;
        self.misses = 0;
        self.changes += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Time = Time::from_millis;

    fn machine() -> ModeMachine {
        ModeMachine::new(ModeRules::default(), Time::ZERO)
    }

    #[test]
    fn one_missed_window_is_an_accident_and_two_make_it_busy() {
        let mut modes = machine();
        assert_eq!(modes.on_window(MS(1), true), Mode::Metronome);
        assert_eq!(modes.on_window(MS(2), false), Mode::Metronome);
        assert_eq!(modes.on_window(MS(3), true), Mode::Metronome);
        assert_eq!(modes.on_window(MS(4), true), Mode::Busy);
        let rules = ModeRules { busy_on_miss: false, ..ModeRules::default() };
        let mut never = ModeMachine::new(rules, Time::ZERO);
        assert!((0..10).all(|ms| never.on_window(MS(ms), true) == Mode::Metronome));
    }

    #[test]
    fn stays_in_busy_double_until_the_target_is_met_for_a_second() {
        let mut modes = machine();
        let mut now = 0;
        let mut stay = |modes: &mut ModeMachine, first: u64| {
            now += first;
            modes.on_window(MS(now), true);
            assert_eq!(modes.on_window(MS(now), true), Mode::Busy);
            let start = now;
            while modes.on_visit(MS(now), 1) == Mode::Busy {
                now += 10;
            }
            now - start
        };
        let stays: Vec<_> = (0..9).map(|_| stay(&mut modes, 1)).collect();
        assert_eq!(stays, [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]);
        // `stay` misses at the end of a second, and only a met window forgives.
        assert_eq!(stay(&mut modes, 1_000), 10_000);
        let later = MS(1_000_000);
        modes.on_window(later, false);
        modes.on_window(later, true);
        modes.on_window(later, true);
        assert_eq!(modes.on_visit(later + Duration::from_millis(99), 1), Mode::Busy);
        assert_eq!(modes.on_visit(later + Duration::from_millis(100), 1), Mode::Metronome);
    }

    #[test]
    fn an_idle_lane_waits_for_an_interrupt_and_is_back_at_the_first_packet() {
        let mut modes = machine();
        assert_eq!(modes.on_visit(MS(50), 1), Mode::Metronome);
        assert_eq!(modes.on_visit(MS(149), 0), Mode::Metronome);
        assert_eq!(modes.on_visit(MS(150), 0), Mode::Interrupt);
        assert_eq!(modes.on_window(MS(151), true), Mode::Interrupt);
        assert_eq!(modes.on_visit(MS(900), 0), Mode::Interrupt);
        assert_eq!(modes.on_visit(MS(1_000), 1), Mode::Metronome);
        assert_eq!(modes.on_visit(MS(1_001), 0), Mode::Metronome);
        let spent = Mode::ALL.map(|mode| modes.spent(mode, MS(1_010)).as_millis());
        assert_eq!((spent, modes.changes()), ([0, 160, 850], 2));
    }

    #[test]
    fn a_busy_lane_without_packets_becomes_idle_too() {
        let mut modes = machine();
        modes.on_window(MS(0), true);
        modes.on_window(MS(1), true);
        assert_eq!(modes.on_visit(MS(99), 0), Mode::Busy);
        assert_eq!(modes.on_visit(MS(100), 0), Mode::Interrupt);
        let rules = ModeRules { idle_after: None, ..ModeRules::default() };
        let mut never = ModeMachine::new(rules, Time::ZERO);
        assert_eq!(never.on_visit(Time::from_secs(1_000), 0), Mode::Metronome);
    }

    #[test]
    fn a_clock_that_steps_back_changes_nothing() {
        let mut modes = ModeMachine::new(ModeRules::default(), MS(1_000));
        assert_eq!(modes.on_visit(MS(10), 0), Mode::Metronome);
        assert_eq!(modes.spent(Mode::Metronome, MS(10)), Duration::ZERO);
    }
}
