//! What the firewall keeps per shard.

use super::{Firewall, Track};
use rheostat_base::Time;
use rheostat_ip::ShardLimit;
use rheostat_nf::{ShardInfo, ShardState};
use rheostat_state::Handle;

/// Half-open connections, and how often senders may be told that they are not let through.
#[derive(Debug)]
pub struct Limits {
    half_open: u32,
    answers: ShardLimit,
}

impl ShardState<Firewall> for Limits {
    fn of(firewall: &Firewall, shard: ShardInfo, _: Handle<Track>) -> Limits {
        let rate = firewall.config.rejects_per_second;
        Limits { half_open: 0, answers: firewall.errors.of_shard(rate, shard.shards) }
    }

    fn follow(&mut self, firewall: &Firewall, _: &ShardInfo) {
        self.answers.set_own(firewall.config.rejects_per_second);
    }
}

impl Limits {
    /// Counts one more half-open connection, unless there are `most` already.
    pub(super) fn open_half(&mut self, most: u32) -> bool {
        let room = self.half_open < most;
        self.half_open += u32::from(room);
        room
    }

    /// A half-open connection was completed, or has ended.
    pub(super) fn close_half(&mut self) {
        debug_assert!(self.half_open > 0, "more half-open connections ended than were opened");
        self.half_open = self.half_open.saturating_sub(1);
    }

    pub(super) fn may_answer(&mut self, now: Time) -> bool {
        self.answers.allow(now)
    }
}
