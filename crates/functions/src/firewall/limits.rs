//! What the firewall keeps per shard.

use rheostat_base::Time;
use rheostat_ip::ShardLimit;

/// Half-open connections, and how often senders may be told that they are not let through.
#[derive(Debug)]
pub struct Limits {
    half_open: u32,
    answers: ShardLimit,
}

impl Limits {
    pub(super) fn new(answers: ShardLimit) -> Limits {
        Limits { half_open: 0, answers }
    }

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
