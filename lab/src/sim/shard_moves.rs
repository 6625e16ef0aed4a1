//! Moves the shards of a simulation, step by step as those of a run are moved: see `docs/migration.md`.

use std::sync::Arc;
use std::time::Duration;

use rheostat_base::{LaneId, ShardId, Time};
use rheostat_control::ShardMigrator;
use rheostat_run::{Move, MoveError};
use rheostat_steer::policy::{Load, Offloads};

/// A command to a lane.
#[derive(Clone, Debug)]
pub(super) enum MoveCommand {
    /// The shard will come: hold its packets.
    Expect(ShardId),
    /// The shard goes from a lane, not this one, to another, which may be this one.
    Redirect { shard: ShardId, from: LaneId, to: LaneId },
    /// Give the shard away when nothing of it is under way here any more.
    Release { shard: ShardId, to: LaneId },
    /// So much of each shard is to be at another lane, where [`Load::FULL`] stands for all of it; in place of what was before.
    Offload { to: Option<LaneId>, shares: Arc<[Load]> },
}

/// What a lane reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MoveReport {
    Ready(ShardId),
    Arrived(ShardId),
}

/// The migrator of a simulation.
#[derive(Debug)]
pub(super) struct ShardMoves {
    lanes: u16,
    /// Where each shard is, or goes.
    owners: Vec<LaneId>,
    /// Where the indirection table leads each shard's packets.
    placed: Vec<LaneId>,
    moving: Vec<Move>,
    stage: MoveStage,
    /// From the rewriting of the table until it is in force everywhere, in nanoseconds.
    fence: u64,
    /// What the last rewriting took.
    pub(super) rewrite: Option<Duration>,
    /// What lanes are to be told.
    pub(super) commands: Vec<(LaneId, MoveCommand)>,
    /// What they told.
    pub(super) reports: Vec<MoveReport>,
    /// Shards that have arrived.
    pub(super) arrived: u64,
}

/// What the shards that move together wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MoveStage {
    Idle,
    /// So many lanes that get one have yet to hold its packets.
    Ready(usize),
    /// Until then, packets may be placed by the old table.
    Fenced(u64),
    /// So many have yet to arrive.
    Arrived(usize),
}

impl ShardMoves {
    pub(super) fn new(lanes: u16, owners: Vec<LaneId>, fence: u64) -> ShardMoves {
        ShardMoves {
            lanes,
            placed: owners.clone(),
            owners,
            moving: Vec::new(),
            stage: MoveStage::Idle,
            fence,
            rewrite: None,
            commands: Vec::new(),
            reports: Vec::new(),
            arrived: 0,
        }
    }

    /// The lane to which the table leads a shard's packets.
    pub(super) fn lane_of(&self, shard: ShardId) -> LaneId {
        self.placed[shard.index()]
    }

    fn hear(&mut self, report: MoveReport) {
        match (report, &mut self.stage) {
            (MoveReport::Ready(_), MoveStage::Ready(missing)) => *missing -= 1,
            (MoveReport::Arrived(_), MoveStage::Arrived(missing)) => {
                *missing -= 1;
                self.arrived += 1;
            }
            (report, stage) => unreachable!("{report:?} in {stage:?}"),
        }
    }

    fn switch(&mut self) {
        for &Move { shard, from, to } in &self.moving {
            for lane in (0..self.lanes).map(LaneId).filter(|lane| *lane != from) {
                self.commands.push((lane, MoveCommand::Redirect { shard, from, to }));
            }
            self.commands.push((from, MoveCommand::Release { shard, to }));
        }
    }
}

impl ShardMigrator for ShardMoves {
    fn step(&mut self, now: Time) {
        for report in std::mem::take(&mut self.reports) {
            self.hear(report);
        }
        match self.stage {
            MoveStage::Ready(0) => {
                for one in &self.moving {
                    self.placed[one.shard.index()] = one.to;
                }
                self.stage = MoveStage::Fenced(now.as_nanos() + self.fence);
            }
            MoveStage::Fenced(until) if until <= now.as_nanos() => {
                self.switch();
                self.rewrite = Some(Duration::from_nanos(self.fence + now.as_nanos() - until));
                self.stage = MoveStage::Arrived(self.moving.len());
            }
            MoveStage::Arrived(0) => {
                self.moving.clear();
                self.stage = MoveStage::Idle;
            }
            _ => {}
        }
    }

    fn is_idle(&self) -> bool {
        self.stage == MoveStage::Idle
    }

    fn owners(&self) -> &[LaneId] {
        &self.owners
    }

    fn start(&mut self, moves: &[Move], _: Time) -> Result<(), MoveError> {
        for one in moves {
            let owner = self.owners[one.shard.index()];
            if !self.is_idle() {
                return Err(MoveError::UnderWay(one.shard));
            }
            if owner != one.from {
                return Err(MoveError::NotOwner { shard: one.shard, from: one.from, owner });
            }
        }
        for one in moves {
            self.owners[one.shard.index()] = one.to;
            self.commands.push((one.to, MoveCommand::Expect(one.shard)));
        }
        if !moves.is_empty() {
            self.moving = moves.to_vec();
            self.stage = MoveStage::Ready(moves.len());
        }
        Ok(())
    }

    fn offload(&mut self, offloads: &Offloads, shards: &[Load]) {
        let part = |(share, all): (&Load, &Load)| {
            Load::FULL.part(share.nanos_per_second(), all.nanos_per_second()).min(Load::FULL)
        };
        let shares: Arc<[Load]> = offloads.shares.iter().zip(shards).map(part).collect();
        for (lane, to) in (0..).map(LaneId).zip(&offloads.links) {
            self.commands.push((lane, MoveCommand::Offload { to: *to, shares: shares.clone() }));
        }
    }
}
