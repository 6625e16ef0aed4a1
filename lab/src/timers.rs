//! `rheo bench timers`: what deadlines of connections cost, in the wheel of [`DeadlineWheel`] and, beside it, in an ordered map.
//!
//! Members are visited in an order that is drawn before, as segments visit connections. Deadlines are those of retransmission
//! timers: 200 to 400 ms ahead. A figure is the median over rounds, each of which does everything once to every member.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rheostat_base::Time;
use rheostat_measure::quantiles::median;
use rheostat_measure::record::{Column, TableRow};
use rheostat_state::DeadlineWheel;
use serde::{Deserialize, Serialize};

/// Operations of each kind that a figure is taken over at least, but for the rounds of many members.
const OPERATIONS: usize = 2_000_000;
/// Rounds at least.
const ROUNDS: usize = 3;
/// How far time goes on between looks at what has expired.
const STEP: Duration = Duration::from_millis(1);

/// Measures.
#[derive(Clone, Debug)]
pub struct TimersBench {
    /// Numbers of members.
    pub sizes: Vec<u32>,
    /// What orders and deadlines are drawn from.
    pub seed: u64,
}

/// Nanoseconds per operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimerRow {
    /// `wheel`, or `map` for an ordered map of deadlines.
    pub structure: String,
    /// Members.
    pub timers: u32,
    /// Rounds.
    pub rounds: usize,
    /// To arm a member that has no deadline.
    pub arm_ns: f64,
    /// To move a deadline later.
    pub later_ns: f64,
    /// To move a deadline earlier.
    pub earlier_ns: f64,
    /// To take a member out.
    pub disarm_ns: f64,
    /// To find a member that has expired, moves between levels and looks in vain included.
    pub expire_ns: f64,
}

impl TableRow for TimerRow {
    const COLUMNS: &'static [Column<TimerRow>] = &[
        Column::name("structure", 9, |row| &row.structure),
        Column::count("timers", 9, |row| row.timers.into()),
        Column::count("rounds", 7, |row| row.rounds as u64),
        Column::number("arm ns", 8, 1, |row| row.arm_ns),
        Column::number("later ns", 8, 1, |row| row.later_ns),
        Column::number("earlier ns", 10, 1, |row| row.earlier_ns),
        Column::number("disarm ns", 9, 1, |row| row.disarm_ns),
        Column::number("expire ns", 9, 1, |row| row.expire_ns),
    ];
}

/// What holds deadlines.
trait Timers {
    const NAME: &'static str;
    fn new(members: u32) -> Self;
    fn arm(&mut self, member: u32, deadline: Time);
    fn disarm(&mut self, member: u32);
    fn poll(&mut self, now: Time) -> Option<u32>;
}

impl Timers for DeadlineWheel {
    const NAME: &'static str = "wheel";

    fn new(_: u32) -> DeadlineWheel {
        DeadlineWheel::new()
    }

    fn arm(&mut self, member: u32, deadline: Time) {
        DeadlineWheel::arm(self, member, deadline);
    }

    fn disarm(&mut self, member: u32) {
        DeadlineWheel::disarm(self, member);
    }

    fn poll(&mut self, now: Time) -> Option<u32> {
        DeadlineWheel::poll(self, now)
    }
}

/// Deadlines in order, and by member.
struct OrderedMap {
    order: BTreeSet<(Time, u32)>,
    deadlines: Vec<Time>,
}

impl Timers for OrderedMap {
    const NAME: &'static str = "map";

    fn new(members: u32) -> OrderedMap {
        OrderedMap { order: BTreeSet::new(), deadlines: vec![Time::NEVER; members as usize] }
    }

    fn arm(&mut self, member: u32, deadline: Time) {
        self.disarm(member);
        self.order.insert((deadline, member));
        self.deadlines[member as usize] = deadline;
    }

    fn disarm(&mut self, member: u32) {
        let deadline = std::mem::replace(&mut self.deadlines[member as usize], Time::NEVER);
        if deadline != Time::NEVER {
            self.order.remove(&(deadline, member));
        }
    }

    fn poll(&mut self, now: Time) -> Option<u32> {
        let (deadline, member) = *self.order.first()?;
        if deadline > now {
            return None;
        }
        self.order.pop_first();
        self.deadlines[member as usize] = Time::NEVER;
        Some(member)
    }
}

/// Members in the order in which they are visited, each with how far ahead its deadline is.
type Visits = Vec<(u32, Duration)>;

impl TimersBench {
    /// Measures each size; `done` gets the rows.
    pub fn run(&self, mut done: impl FnMut(&TimerRow)) {
        for &size in &self.sizes {
            let mut random = SmallRng::seed_from_u64(self.seed);
            let mut visits: Visits = (0..size)
                .map(|member| {
                    (member, Duration::from_micros(random.random_range(200_000..400_000)))
                })
                .collect();
            visits.shuffle(&mut random);
            done(&measure::<DeadlineWheel>(&visits));
            done(&measure::<OrderedMap>(&visits));
        }
    }
}

fn measure<T: Timers>(visits: &Visits) -> TimerRow {
    let members = visits.len();
    let rounds = (OPERATIONS / members.max(1)).max(ROUNDS);
    let mut timers = T::new(members as u32);
    let mut now = Time::from_secs(1);
    let mut taken: [Vec<f64>; 5] = Default::default();
    for round in 0..=rounds {
        let ns = self::round(&mut timers, visits, &mut now);
        // The first round allocates.
        for (all, ns) in taken.iter_mut().zip(ns).filter(|_| round > 0) {
            all.push(ns / members.max(1) as f64);
        }
    }
    let [arm_ns, later_ns, earlier_ns, disarm_ns, expire_ns] = taken.map(median);
    TimerRow {
        structure: T::NAME.into(),
        timers: members as u32,
        rounds,
        arm_ns,
        later_ns,
        earlier_ns,
        disarm_ns,
        expire_ns,
    }
}

/// Arms, moves later, moves earlier, removes, and arms again and lets expire.
fn round<T: Timers>(timers: &mut T, visits: &Visits, now: &mut Time) -> [f64; 5] {
    let start = *now;
    let each = |timers: &mut T, ahead: Duration| {
        let began = Instant::now();
        for &(member, by) in visits {
            timers.arm(member, start + ahead + by);
        }
        began.elapsed().as_nanos() as f64
    };
    let earlier = Duration::from_millis(50);
    let arm = each(timers, earlier);
    let later = each(timers, 2 * earlier);
    let sooner = each(timers, Duration::ZERO);
    let began = Instant::now();
    for &(member, _) in visits {
        timers.disarm(member);
    }
    let disarm = began.elapsed().as_nanos() as f64;
    each(timers, Duration::ZERO);
    let mut expired = 0;
    let began = Instant::now();
    while expired < visits.len() {
        *now += STEP;
        while timers.poll(*now).is_some() {
            expired += 1;
        }
        assert!(now.since(start) < Duration::from_secs(2), "{expired} have expired");
    }
    [arm, later, sooner, disarm, began.elapsed().as_nanos() as f64]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_size_has_a_row_of_each_structure() {
        let mut rows = Vec::new();
        TimersBench { sizes: vec![10, 1_000], seed: 1 }.run(|row| rows.push(row.clone()));
        let names: Vec<_> = rows.iter().map(|row| (row.structure.as_str(), row.timers)).collect();
        assert_eq!(names, [("wheel", 10), ("map", 10), ("wheel", 1_000), ("map", 1_000)]);
    }
}
