//! What passes between the migrator and a lane: commands one way, reports the other.

use std::sync::Arc;

use rheostat_base::sync::spsc::{self, Consumer, Producer};
use rheostat_base::{LaneId, ShardId, Time};
use rheostat_steer::policy::Load;

use crate::live_metrics::MetricsRequest;

/// What the migrator commands a lane to do. It takes effect at the start of the lane's next poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// The lane will own the shard: it holds what devices place here by the shard's buckets, and reports that it is
    /// ready.
    Expect {
        /// The shard.
        shard: ShardId,
        /// How many lanes will say that they have taken what its owner had handed to them.
        pending_acks: u16,
        /// When the command was given.
        sent: Time,
    },
    /// The shard will have another owner, or be the lane's own: the lane hands the shard's packets to it, or holds
    /// them all, and sends the present owner a control message.
    Redirect {
        /// The shard.
        shard: ShardId,
        /// Its present owner.
        from: LaneId,
        /// Its next owner.
        to: LaneId,
    },
    /// The lane, which owns the shard, gives it away once nothing of the shard is under way to it.
    Release {
        /// The shard.
        shard: ShardId,
        /// Its next owner.
        to: LaneId,
        /// How many lanes will say that they have redirected.
        redirects: u16,
    },
    /// Flows of the lane leave for this one, or all come home: see [`Lane::offload_to`](crate::Lane::offload_to).
    Offload {
        /// The offloading lane, if flows shall leave.
        to: Option<LaneId>,
        /// Hundredths of the packets that their flows may have.
        share: u8,
    },
    /// Flows leave so that about these parts of shards' work do: see [`Lane::offload_shares`](crate::Lane::offload_shares).
    OffloadShares {
        /// The offloading lane, if flows shall leave.
        to: Option<LaneId>,
        /// By shard, where [`Load::FULL`] stands for all of its work.
        shares: Vec<(ShardId, Load)>,
    },
    /// The service has a tick at once, to see what clients request of it.
    Tick,
    /// The lane adds its counts to the answer.
    Count(Arc<MetricsRequest>),
}

/// What a lane reports to the migrator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// The lane holds packets of this shard.
    Ready(ShardId),
    /// The shard is the lane's.
    Arrived(ShardId),
}

/// The lane's end.
#[derive(Debug)]
pub(crate) struct LaneMailbox {
    commands: Consumer<Command>,
    reports: Producer<Report>,
}

/// The migrator's end.
#[derive(Debug)]
pub(crate) struct MigratorMailbox {
    commands: Producer<Command>,
    reports: Consumer<Report>,
}

/// Connects the migrator and a lane of a run with `shards` shards. Neither ring can be full: a shard that
/// moves means one command to each lane, and a shard moves again only after its last report was read. A command
/// about offloading or metrics is given when no other waits.
pub(crate) fn mailbox(shards: usize) -> (MigratorMailbox, LaneMailbox) {
    let (commands_in, commands_out) = spsc::ring(shards + 1);
    let (reports_in, reports_out) = spsc::ring(shards);
    (
        MigratorMailbox { commands: commands_in, reports: reports_out },
        LaneMailbox { commands: commands_out, reports: reports_in },
    )
}

impl LaneMailbox {
    /// The next command.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Command> {
        self.commands.pop()
    }

    /// Whether no command waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Reports to the migrator.
    pub(crate) fn report(&mut self, report: Report) {
        assert!(
            self.reports.push(report).is_ok(),
            "the migrator reads a shard's reports before it moves on"
        );
    }
}

impl MigratorMailbox {
    /// Gives a command.
    pub(crate) fn send(&mut self, command: Command) {
        assert!(self.commands.push(command).is_ok(), "a shard moves once at a time");
    }

    /// Whether no command waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Gives a command if no other waits; `false` when one does.
    pub(crate) fn offer(&mut self, command: Command) -> bool {
        self.is_empty() && self.commands.push(command).is_ok()
    }

    /// The next report.
    pub(crate) fn next(&mut self) -> Option<Report> {
        self.reports.pop()
    }
}
