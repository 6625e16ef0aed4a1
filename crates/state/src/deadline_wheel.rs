//! A hierarchical wheel for deadlines that are set often and rarely expire: one for each connection.
//!
//! Time is cut into ticks of 0.52 ms. A level has 64 slots: the first level's are ticks, a slot of the next covers a turn of the
//! one before. A member lies in the slot of the highest level in which its tick differs from the present one; when the present
//! reaches a slot of a higher level, its members move down. A bit for each slot that holds members finds the next one.
//!
//! ```text
//!  level 3   64 slots of 137 s       2.4 h in all; what lies beyond is looked at once in a turn
//!  level 2   64 slots of 2.1 s
//!  level 1   64 slots of 34 ms
//!  level 0   64 slots of 0.52 ms     what is due next
//!  due       what is over
//! ```
//!
//! **Moving a deadline later only stores it.** The member stays in its slot; when that comes up, it goes where its deadline now
//! lies. A retransmission timer that every acknowledgement starts anew costs a store, and a move for each timeout that would have
//! passed. Arming, moving and removing take constant time, expiry at most a move for each level, and looking for the next
//! deadline a look at each level's bits.

use rheostat_base::Time;
use rheostat_base::sync::prefetch::prefetch_for_write;

use crate::list::{Links, ListLink, Lists};

const LEVELS: usize = 4;
/// Bits of a tick that choose the slot of a level.
const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
/// A tick is 2^19 ns.
const TICK_SHIFT: u32 = 19;
/// The list of what is over.
const DUE: usize = LEVELS * SLOTS;
/// The slot of a member that is not in the wheel.
const UNARMED: u16 = u16::MAX;

/// How late [`DeadlineWheel::poll`] may find a deadline that has passed: a tick.
pub const RESOLUTION: std::time::Duration = std::time::Duration::from_nanos(1 << TICK_SHIFT);

#[derive(Clone, Copy, Debug)]
struct WheelEntry {
    link: ListLink,
    slot: u16,
    /// The tick after which the member is looked at.
    armed: u64,
    deadline: Time,
}

const NO_ENTRY: WheelEntry =
    WheelEntry { link: ListLink::NONE, slot: UNARMED, armed: 0, deadline: Time::NEVER };

#[derive(Debug)]
struct Entries(Vec<WheelEntry>);

impl Links for Entries {
    #[inline]
    fn link(&mut self, member: u32) -> &mut ListLink {
        &mut self.0[member as usize].link
    }
}

/// Members with a deadline each, by number. Takes 32 bytes for each number up to the highest armed, and 2 KiB.
#[derive(Debug)]
pub struct DeadlineWheel {
    /// The first tick that is not over.
    current: u64,
    occupied: [u64; LEVELS],
    lists: Lists,
    entries: Entries,
    armed: usize,
}

impl Default for DeadlineWheel {
    fn default() -> DeadlineWheel {
        DeadlineWheel::new()
    }
}

#[inline]
fn tick(time: Time) -> u64 {
    time.as_nanos() >> TICK_SHIFT
}

impl DeadlineWheel {
    /// A wheel without members, at time zero.
    pub fn new() -> DeadlineWheel {
        DeadlineWheel {
            current: 0,
            occupied: [0; LEVELS],
            lists: Lists::new(DUE + 1),
            entries: Entries(Vec::new()),
            armed: 0,
        }
    }

    /// Members in the wheel.
    pub fn len(&self) -> usize {
        self.armed
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.armed == 0
    }

    /// The deadline of a member; none if it has none.
    pub fn deadline(&self, member: u32) -> Option<Time> {
        let entry = self.entries.0.get(member as usize)?;
        Some(entry.deadline).filter(|deadline| entry.slot != UNARMED && *deadline != Time::NEVER)
    }

    /// Sets a member's deadline. [`Time::NEVER`] means none, and leaves the member in its slot until that comes up, which is
    /// cheap if there will be a deadline again.
    ///
    /// # Panics
    /// When the number is 2^31 or larger.
    #[inline]
    pub fn arm(&mut self, member: u32, deadline: Time) {
        if member as usize >= self.entries.0.len() {
            assert!(member < 1 << 31, "a number below 2^31");
            self.entries.0.resize(member as usize + 1, NO_ENTRY);
        }
        let entry = &mut self.entries.0[member as usize];
        entry.deadline = deadline;
        if entry.slot == UNARMED {
            if deadline != Time::NEVER {
                self.armed += 1;
                self.place(member);
            }
        } else if tick(deadline) < entry.armed {
            self.unlink(member);
            self.place(member);
        }
    }

    /// Asks for what [`DeadlineWheel::arm`] touches of a member.
    #[inline]
    pub fn prefetch(&self, member: u32) {
        if let Some(entry) = self.entries.0.get(member as usize) {
            prefetch_for_write(entry);
        }
    }

    /// Takes a member out of the wheel, if it is there.
    pub fn disarm(&mut self, member: u32) {
        if self.entries.0.get(member as usize).is_some_and(|entry| entry.slot != UNARMED) {
            self.unlink(member);
            self.entries.0[member as usize] = NO_ENTRY;
            self.armed -= 1;
        }
    }

    /// The next member whose deadline has passed; it is no longer in the wheel. Every deadline in a tick that is over at `now`
    /// is found, and none that is still to come. Their order is no promise. `now` does not go back.
    pub fn poll(&mut self, now: Time) -> Option<u32> {
        if self.armed == 0 {
            self.current = self.current.max(tick(now));
            return None;
        }
        self.turn(tick(now));
        while let Some(member) = self.lists.front(DUE) {
            self.unlink(member);
            let deadline = self.entries.0[member as usize].deadline;
            if deadline == Time::NEVER || tick(deadline) < self.current {
                self.entries.0[member as usize] = NO_ENTRY;
                self.armed -= 1;
                if deadline != Time::NEVER {
                    return Some(member);
                }
            } else {
                self.place(member);
            }
        }
        None
    }

    /// When to call [`DeadlineWheel::poll`] next: no deadline is found before. It may be early, for members to be moved or
    /// whose deadline is later by now.
    pub fn next_due(&self) -> Option<Time> {
        if self.lists.front(DUE).is_some() {
            return Some(Time::ZERO);
        }
        let (level, tick, _) = self.first_slot()?;
        Some(Time::from_nanos((tick + u64::from(level == 0)) << TICK_SHIFT))
    }

    /// The level, the first tick and the list of the slot that comes up next. What lies on a lower level comes first.
    #[inline]
    fn first_slot(&self) -> Option<(usize, u64, usize)> {
        (0..LEVELS).find_map(|level| {
            let shift = BITS * level as u32;
            let index = (self.current >> shift) as usize % SLOTS;
            let ahead = self.occupied[level] & (!0 << index);
            (ahead != 0).then(|| {
                let slot = ahead.trailing_zeros() as usize;
                let turn = self.current >> (shift + BITS) << (shift + BITS);
                (level, turn | (slot as u64) << shift, level * SLOTS + slot)
            })
        })
    }

    /// Lets ticks before `target` be over.
    fn turn(&mut self, target: u64) {
        while let Some((level, first, slot)) = self.first_slot() {
            if level == 0 && first < target {
                self.append_to_due(slot);
                self.current = first + 1;
            } else if level > 0 && first <= target {
                self.current = self.current.max(first);
                self.occupied[level] &= !(1 << (slot % SLOTS));
                while let Some(member) = self.lists.front(slot) {
                    self.lists.unlink(&mut self.entries, member);
                    self.place(member);
                }
            } else {
                break;
            }
        }
        self.current = self.current.max(target);
    }

    fn append_to_due(&mut self, slot: usize) {
        let mut next = self.lists.front(slot);
        while let Some(member) = next {
            self.entries.0[member as usize].slot = DUE as u16;
            next = self.lists.behind(&mut self.entries, member);
        }
        self.lists.append(&mut self.entries, slot, DUE);
        self.occupied[slot / SLOTS] &= !(1 << (slot % SLOTS));
    }

    /// Puts a member that is in no list where its deadline belongs.
    #[inline]
    fn place(&mut self, member: u32) {
        let deadline = tick(self.entries.0[member as usize].deadline);
        // No further than the last level's turn reaches.
        let armed = deadline.min(self.current | ((1 << (BITS * LEVELS as u32)) - 1));
        let list = if armed < self.current {
            DUE
        } else {
            let differing = (armed ^ self.current) | 1;
            let level = ((u64::BITS - 1 - differing.leading_zeros()) / BITS) as usize;
            let slot = (armed >> (BITS * level as u32)) as usize % SLOTS;
            self.occupied[level] |= 1 << slot;
            level * SLOTS + slot
        };
        let entry = &mut self.entries.0[member as usize];
        (entry.slot, entry.armed) = (list as u16, armed);
        self.lists.push_back(&mut self.entries, list, member);
    }

    fn unlink(&mut self, member: u32) {
        let list = usize::from(self.entries.0[member as usize].slot);
        self.lists.unlink(&mut self.entries, member);
        if list != DUE && self.lists.front(list).is_none() {
            self.occupied[list / SLOTS] &= !(1 << (list % SLOTS));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        /// Sets a member's deadline this far ahead.
        Arm(u32, Duration),
        ArmNever(u32),
        Disarm(u32),
        /// Time passes, and so many members are taken at most.
        Pass(Duration, usize),
        /// Time passes until the wheel wants to be called.
        PassUntilDue,
    }

    /// From within a tick to several turns of the last level.
    fn span() -> impl Strategy<Value = Duration> {
        prop_oneof![
            (0..3_000_u64).prop_map(Duration::from_micros),
            (0..500_u64).prop_map(Duration::from_millis),
            (0..300_u64).prop_map(Duration::from_secs),
            (0..20_u64).prop_map(|hours| Duration::from_secs(3_600 * hours)),
        ]
    }

    fn step() -> impl Strategy<Value = Step> {
        let member = 0..12_u32;
        let most = prop::sample::select(vec![0, 1, 3, usize::MAX]);
        prop_oneof![
            6 => (member.clone(), span()).prop_map(|(member, ahead)| Step::Arm(member, ahead)),
            1 => member.clone().prop_map(Step::ArmNever),
            1 => member.prop_map(Step::Disarm),
            4 => (span(), most).prop_map(|(pass, most)| Step::Pass(pass, most)),
            2 => Just(Step::PassUntilDue),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 8 } else { 1_000 }))]

        /// The model is an ordered map of deadlines.
        #[test]
        fn the_wheel_finds_what_an_ordered_map_does(
            start in 0..1_000_000_000_000_000_u64,
            steps in prop::collection::vec(step(), 1..80),
        ) {
            let mut wheel = DeadlineWheel::new();
            let mut model: BTreeMap<u32, Time> = BTreeMap::new();
            let mut now = Time::from_nanos(start);
            // Found in the model before the wheel was asked for all of them.
            for step in steps {
                let mut most = 0;
                match step {
                    Step::Arm(member, ahead) => {
                        wheel.arm(member, now + ahead);
                        model.insert(member, now + ahead);
                    }
                    Step::ArmNever(member) => {
                        wheel.arm(member, Time::NEVER);
                        model.remove(&member);
                    }
                    Step::Disarm(member) => {
                        wheel.disarm(member);
                        model.remove(&member);
                    }
                    Step::Pass(pass, take) => {
                        now += pass;
                        most = take;
                    }
                    Step::PassUntilDue => {
                        let earliest = model.values().min();
                        if let Some(due) = wheel.next_due() {
                            now = now.max(due);
                            most = usize::MAX;
                            let is_early = |at: &Time| tick(*at) + 1 >= tick(due);
                            prop_assert!(earliest.is_none_or(is_early), "{due} {earliest:?}");
                        } else {
                            prop_assert_eq!(earliest, None);
                        }
                    }
                }
                let mut found = BTreeSet::new();
                while found.len() < most && let Some(member) = wheel.poll(now) {
                    let deadline = model.remove(&member);
                    prop_assert!(deadline.is_some_and(|at| at <= now), "{member} {deadline:?}");
                    prop_assert!(found.insert(member));
                }
                if most == usize::MAX {
                    let overdue = model.values().find(|at| tick(**at) < tick(now));
                    prop_assert_eq!(overdue, None);
                }
                for member in 0..12 {
                    prop_assert_eq!(wheel.deadline(member), model.get(&member).copied());
                }
                prop_assert!(wheel.len() >= model.len());
            }
            // Everything comes to an end.
            while let Some(due) = wheel.next_due() {
                now = now.max(due);
                while let Some(member) = wheel.poll(now) {
                    prop_assert!(model.remove(&member).is_some_and(|at| at <= now));
                }
            }
            prop_assert!(wheel.is_empty() && model.is_empty());
        }
    }

    #[test]
    fn a_deadline_that_moves_later_costs_no_move() {
        let mut wheel = DeadlineWheel::new();
        wheel.arm(3, Time::from_millis(200));
        let slot = wheel.entries.0[3].slot;
        for ms in 0..150 {
            wheel.arm(3, Time::from_millis(ms + 200));
            assert_eq!((wheel.poll(Time::from_millis(ms)), wheel.entries.0[3].slot), (None, slot));
        }
        assert_eq!(wheel.poll(Time::from_millis(349)), None);
        assert_eq!(wheel.poll(Time::from_millis(350)), Some(3));
        assert!(wheel.is_empty());
    }

    #[test]
    fn what_expires_is_found_within_a_tick() {
        let mut wheel = DeadlineWheel::new();
        let deadlines = [1_u64, 600_000, 40_000_000, 3_000_000_000, 20_000_000_000_000];
        for (member, ns) in (0..).zip(deadlines) {
            wheel.arm(member, Time::from_nanos(ns));
        }
        for (member, ns) in (0..).zip(deadlines) {
            let at = Time::from_nanos(ns);
            assert_eq!(wheel.poll(at), None);
            assert_eq!(wheel.poll(at + RESOLUTION), Some(member));
        }
    }
}
