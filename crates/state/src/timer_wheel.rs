//! The wheel that finds flows past their deadline.
//!
//! Time is cut into ticks, and a slot holds the members to be looked at when its tick is over. The
//! wheel never decides that a member has expired: it returns members, and the caller reads the
//! true deadline, ends the member or arms it anew. So a deadline that moves *later* costs nothing
//! until the slot comes up; one that moves *earlier* than the armed slot must be armed at once. With
//! that rule, advancing the wheel to a tick brings up every member whose deadline lies in an earlier
//! tick, whatever steps it was advanced in before.

use rheostat_base::Time;

use crate::list::{Links, Lists};

/// How many slots there are. With [`TICK_SHIFT`] the wheel spans 274 s, so that a transitory time-out
/// of 4 minutes (RFC 5382) is armed once; longer ones are looked at once in a turn.
const SLOTS: u64 = 512;

/// A tick is 2^29 ns, about half a second.
const TICK_SHIFT: u32 = 29;

/// The list of members to be looked at as soon as the wheel is advanced: those of slots whose tick is
/// over, and those armed for a tick that was over already.
const OVERDUE: u16 = SLOTS as u16;

/// The slot of a member that is not in the wheel.
pub(crate) const UNARMED: u16 = u16::MAX;

/// The tick `time` lies in.
#[inline]
pub(crate) fn tick(time: Time) -> u64 {
    time.as_nanos() >> TICK_SHIFT
}

/// A wheel of one level. Members' links and slots are kept by the caller.
pub(crate) struct TimerWheel {
    /// The first tick whose slot was not emptied yet.
    current: u64,
    armed: u32,
    lists: Lists,
}

impl TimerWheel {
    /// A wheel at tick zero.
    pub(crate) fn new() -> TimerWheel {
        TimerWheel { current: 0, armed: 0, lists: Lists::new(SLOTS as usize + 1) }
    }

    /// Turns a wheel without members to `tick` at once; later ones are then armed where they belong.
    #[inline]
    pub(crate) fn turn_if_idle(&mut self, tick: u64) {
        if self.armed == 0 && tick > self.current {
            self.current = tick;
        }
    }

    /// The tick after which a member in `slot` is looked at: a deadline in an earlier tick needs it to
    /// be armed anew.
    #[inline]
    pub(crate) fn armed_tick(&self, slot: u16) -> u64 {
        match slot {
            UNARMED => u64::MAX,
            OVERDUE => 0,
            slot => self.current + (u64::from(slot).wrapping_sub(self.current) & (SLOTS - 1)),
        }
    }

    /// Puts `member`, which is not in the wheel, where it will be looked at once `tick` is over, or
    /// sooner. Returns its slot.
    pub(crate) fn arm(&mut self, links: &mut impl Links, member: u32, tick: u64) -> u16 {
        let slot = if tick < self.current { OVERDUE } else { (tick & (SLOTS - 1)) as u16 };
        self.lists.push_back(links, slot.into(), member);
        self.armed += 1;
        slot
    }

    /// Takes `member` out of the wheel.
    pub(crate) fn disarm(&mut self, links: &mut impl Links, member: u32) {
        self.lists.unlink(links, member);
        self.armed -= 1;
    }

    /// The tick that advancing to `now` reaches: time does not go back.
    pub(crate) fn reach(&self, now: Time) -> u64 {
        tick(now).max(self.current)
    }

    /// The next member to look at on the way to tick `target`, or `None` when the wheel has got
    /// there. The member stays in the wheel: disarm it before asking again.
    pub(crate) fn next(&mut self, links: &mut impl Links, target: u64) -> Option<u32> {
        self.turn_if_idle(target);
        // After one turn every slot was emptied, so the ticks before it need no look.
        self.current = self.current.max(target.saturating_sub(SLOTS));
        loop {
            if let Some(member) = self.lists.front(OVERDUE.into()) {
                return Some(member);
            }
            if self.current >= target {
                return None;
            }
            let slot = self.current & (SLOTS - 1);
            self.lists.append(links, slot as usize, OVERDUE.into());
            // Moved on first, so that what is armed from now on cannot land in the slot just emptied
            // and be mistaken for due.
            self.current += 1;
        }
    }

    /// The member to be looked at after `member`, if it is known already.
    pub(crate) fn behind(&self, links: &mut impl Links, member: u32) -> Option<u32> {
        self.lists.behind(links, member)
    }

    /// Whether advancing to `now` may bring up a member. Takes a look at each tick since the wheel was last advanced, and none
    /// further ahead.
    #[inline]
    pub(crate) fn has_due(&self, now: Time) -> bool {
        if self.armed == 0 {
            return false;
        }
        let over = self.current..tick(now).min(self.current + SLOTS);
        let is_armed = |tick: u64| self.lists.front((tick & (SLOTS - 1)) as usize).is_some();
        self.lists.front(OVERDUE.into()).is_some() || over.into_iter().any(is_armed)
    }

    /// The earliest time at which advancing may bring up a member; `None` without members. Takes a look at each tick before that.
    pub(crate) fn next_due(&self) -> Option<Time> {
        if self.armed == 0 {
            return None;
        }
        if self.lists.front(OVERDUE.into()).is_some() {
            return Some(Time::ZERO);
        }
        let armed = |&tick: &u64| self.lists.front((tick & (SLOTS - 1)) as usize).is_some();
        let tick = (self.current..self.current + SLOTS).find(armed)?;
        Some(Time::from_nanos((tick + 1) << TICK_SHIFT))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::list::ListLink;

    const MEMBERS: u32 = 12;

    struct Members(Vec<ListLink>);

    impl Links for Members {
        fn link(&mut self, member: u32) -> &mut ListLink {
            &mut self.0[member as usize]
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        /// Sets a member's deadline this far ahead.
        Set(u32, Duration),
        Remove(u32),
        /// Lets time pass and advances the wheel, looking at this many members at most.
        Advance(Duration, usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        // From nothing to several turns of the wheel.
        let span = prop_oneof![
            (0..2_000_u64).prop_map(Duration::from_millis),
            (0..400_u64).prop_map(Duration::from_secs),
            (0..100_u64).prop_map(|minutes| Duration::from_secs(60 * minutes)),
        ];
        prop_oneof![
            4 => (0..MEMBERS, span.clone()).prop_map(|(member, ahead)| Step::Set(member, ahead)),
            1 => (0..MEMBERS).prop_map(Step::Remove),
            4 => (span, prop::sample::select(vec![0, 1, 3, usize::MAX]))
                .prop_map(|(pass, budget)| Step::Advance(pass, budget)),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 8 } else { 512 }))]

        /// The model is a list of deadlines. Whenever the wheel got to a tick, it has brought up
        /// exactly the members whose deadline lies in an earlier one.
        #[test]
        fn the_wheel_brings_up_what_a_list_of_deadlines_does(
            start in 0..2_000_000_000_u64,
            steps in prop::collection::vec(step(), 1..60),
        ) {
            let mut links = Members(vec![ListLink::default(); MEMBERS as usize]);
            let mut slots = [UNARMED; MEMBERS as usize];
            let mut wheel = TimerWheel::new();
            let mut model: Vec<(Time, u32)> = Vec::new();
            let mut now = Time::from_secs(start);
            wheel.turn_if_idle(tick(now));
            for step in steps {
                match step {
                    Step::Set(member, ahead) => {
                        let deadline = now + ahead;
                        model.retain(|&(_, other)| other != member);
                        model.push((deadline, member));
                        let slot = &mut slots[member as usize];
                        if tick(deadline) < wheel.armed_tick(*slot) {
                            if *slot != UNARMED {
                                wheel.disarm(&mut links, member);
                            }
                            *slot = wheel.arm(&mut links, member, tick(deadline));
                        }
                    }
                    Step::Remove(member) => {
                        model.retain(|&(_, other)| other != member);
                        let slot = std::mem::replace(&mut slots[member as usize], UNARMED);
                        if slot != UNARMED {
                            wheel.disarm(&mut links, member);
                        }
                    }
                    Step::Advance(pass, budget) => {
                        now += pass;
                        let target = wheel.reach(now);
                        let mut looked_at = 0;
                        while let Some(member) = wheel.next(&mut links, target) {
                            if looked_at == budget {
                                break;
                            }
                            looked_at += 1;
                            wheel.disarm(&mut links, member);
                            slots[member as usize] = UNARMED;
                            let at = model.iter().position(|&(_, other)| other == member);
                            let at = at.expect("the wheel has a member that was removed");
                            let due = tick(model[at].0);
                            if due < target {
                                model.remove(at);
                            } else {
                                slots[member as usize] = wheel.arm(&mut links, member, due);
                            }
                        }
                        if looked_at < budget {
                            model.sort_unstable();
                            prop_assert!(model.iter().all(|&(due, _)| tick(due) >= target));
                        }
                    }
                }
                // A caller that waits until `next_due` misses nothing; where the wheel stopped half way, that is now.
                let earliest = model.iter().map(|&(due, _)| tick(due)).min();
                prop_assert_eq!(wheel.next_due().is_some(), earliest.is_some());
                for later in [0, 1, 1 << TICK_SHIFT, 40 << TICK_SHIFT, 600 << TICK_SHIFT, 1 << 50] {
                    let then = now + Duration::from_nanos(later);
                    let expected = wheel.next_due().is_some_and(|due| due <= then);
                    prop_assert_eq!(wheel.has_due(then), expected, "{} ns ahead", later);
                }
                if let (Some(due), Some(earliest)) = (wheel.next_due(), earliest) {
                    prop_assert!(tick(due) <= tick(now).max(earliest + 1));
                }
            }
        }
    }

    #[test]
    fn a_deadline_that_never_comes_is_looked_at_once_a_turn() {
        let mut links = Members(vec![ListLink::default()]);
        let mut wheel = TimerWheel::new();
        wheel.arm(&mut links, 0, tick(Time::NEVER));
        let mut looks = 0;
        for now in 0..=4 * SLOTS {
            while let Some(member) = wheel.next(&mut links, now) {
                looks += 1;
                wheel.disarm(&mut links, member);
                wheel.arm(&mut links, member, tick(Time::NEVER));
            }
        }
        assert_eq!(looks, 4);
    }
}
