//! When lanes that own shards together have to look at deadlines in them.
//!
//! Each shard has a home, the lane that looks at its deadlines, and for which another lane may do so ([`ShardSet::homes`](crate::ShardSet::homes)). Another lane that arms an
//! earlier one tells the home. A deadline that is not the earliest of its shard costs one load.
//!
//! | word | written by | says |
//! |---|---|---|
//! | of a shard | the lane that has the shard | no deadline in the shard is earlier |
//! | of a lane | any lane: it only gets earlier, but for one that begins anew before it looks at the shards | no word of a shard whose home it is, is earlier |

use rheostat_base::sync::atomic::{AtomicU64, Ordering};
use rheostat_base::{LaneId, ShardId, Time};

/// The earliest deadlines of shards, and of the shards whose home each lane is.
#[derive(Debug)]
pub struct HomeDeadlines {
    lanes: Box<[LaneWord]>,
    shards: Box<[AtomicU64]>,
}

#[derive(Debug)]
#[repr(align(128))]
struct LaneWord(AtomicU64);

const NEVER: u64 = Time::NEVER.as_nanos();

impl HomeDeadlines {
    /// Of so many lanes and shards, in which nothing is due.
    pub fn new(lanes: usize, shards: usize) -> HomeDeadlines {
        HomeDeadlines {
            lanes: (0..lanes).map(|_| LaneWord(AtomicU64::new(NEVER))).collect(),
            shards: (0..shards).map(|_| AtomicU64::new(NEVER)).collect(),
        }
    }

    /// A deadline has been armed in a shard that the caller has. Returns whether `home` has to look earlier than it knew.
    #[inline]
    pub fn note(&self, shard: ShardId, home: LaneId, due: Time) -> bool {
        let due = due.as_nanos();
        let word = &self.shards[shard.index()];
        // Relaxed: the shard's cell orders the lanes that have it.
        if due >= word.load(Ordering::Relaxed) {
            return false;
        }
        word.store(due, Ordering::Relaxed);
        // Release: pairs with the Acquire in `begin`; the shard's word is seen with it.
        self.lanes[home.index()].0.fetch_min(due, Ordering::Release) > due
    }

    /// When a lane has to look at the shards whose home it is.
    #[inline]
    pub fn of_lane(&self, lane: LaneId) -> Time {
        // Relaxed: a hint, which `begin` makes sure of.
        Time::from_nanos(self.lanes[lane.index()].0.load(Ordering::Relaxed))
    }

    /// The caller begins to look at the shards whose home `lane` is: what others note from now on counts anew.
    pub fn begin(&self, lane: LaneId) {
        // Acquire: pairs with the Release in `note`.
        self.lanes[lane.index()].0.swap(NEVER, Ordering::Acquire);
    }

    /// When a shard has to be looked at, behind `begin`.
    pub fn of_shard(&self, shard: ShardId) -> Time {
        Time::from_nanos(self.shards[shard.index()].load(Ordering::Relaxed))
    }

    /// What was due in a shard, which the caller has, is done: the next is at `due`.
    pub fn end_shard(&self, shard: ShardId, due: Time) {
        self.shards[shard.index()].store(due.as_nanos(), Ordering::Relaxed);
    }

    /// The caller has looked at the shards of `lane`: the next time is at `due`, or what others have noted meanwhile.
    pub fn end(&self, lane: LaneId, due: Time) {
        // Relaxed: the shards' words say no more than they did behind `begin`.
        self.lanes[lane.index()].0.fetch_min(due.as_nanos(), Ordering::Relaxed);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_told_of_the_earliest_deadline_and_only_of_that() {
        let due = HomeDeadlines::new(2, 3);
        let (home, at) = (LaneId(1), Time::from_nanos);
        assert!(due.note(ShardId(0), home, at(50)), "it knew of none");
        assert!(due.note(ShardId(2), home, at(30)) && !due.note(ShardId(2), home, at(40)));
        assert!(!due.note(ShardId(0), home, at(35)), "it looks by then");
        assert_eq!((due.of_lane(home), due.of_lane(LaneId(0))), (at(30), Time::NEVER));
        due.begin(home);
        assert_eq!([0, 1, 2].map(|id| due.of_shard(ShardId(id))), [at(35), Time::NEVER, at(30)]);
        due.end_shard(ShardId(2), at(90));
        due.end(home, at(35));
        assert_eq!((due.of_lane(home), due.of_shard(ShardId(2))), (at(35), at(90)));
    }
}

#[cfg(all(test, loom))]
mod models {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    /// The home, or a lane in its place, looks at its shard, which it does not enter.
    fn look(due: &HomeDeadlines) {
        due.begin(LaneId(0));
        let seen = due.of_shard(ShardId(0));
        due.end(LaneId(0), seen);
    }

    /// Two lanes look at a shard, in which a third arms a deadline: it is not forgotten. Fails as the next model does.
    #[test]
    fn no_deadline_is_forgotten_when_two_look() {
        loom::model(|| {
            let due = Arc::new(HomeDeadlines::new(1, 1));
            let (armed, looked) = (due.clone(), due.clone());
            let arms =
                thread::spawn(move || armed.note(ShardId(0), LaneId(0), Time::from_nanos(7)));
            let looks = thread::spawn(move || look(&looked));
            look(&due);
            looks.join().unwrap();
            arms.join().unwrap();
            assert_eq!(due.of_lane(LaneId(0)), Time::from_nanos(7));
        });
    }

    /// However the home and a lane that arms a deadline take turns, the home has seen the deadline in the end, or knows when to look
    /// again. Fails when the minimum in `note` is relaxed, and when the exchange in `begin` is.
    #[test]
    fn no_deadline_is_forgotten() {
        loom::model(|| {
            let due = Arc::new(HomeDeadlines::new(1, 1));
            let (shard, home) = (ShardId(0), LaneId(0));
            let armed = due.clone();
            let other = thread::spawn(move || armed.note(shard, home, Time::from_nanos(7)));
            look(&due);
            other.join().unwrap();
            assert_eq!(due.of_lane(home), Time::from_nanos(7));
        });
    }
}
