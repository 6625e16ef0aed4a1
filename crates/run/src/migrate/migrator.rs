//! Moves shards: sends lanes commands, rewrites tables, and waits for what must be waited for. It
//! never blocks: [`Migrator::step`] does what can be done now.

use std::sync::Arc;
use std::time::Duration;

use rheostat_base::{Histogram, LaneId, ShardId, Time};
use rheostat_steer::policy::Load;
use rheostat_steer::{Fence, IndirectionTable};
use thiserror::Error;

use super::{Command, MigratorMailbox, Report, mailbox};
use crate::crew::LaneNotifier;
use crate::lane::Lane;
use crate::live_metrics::MetricsRequest;
use crate::queue_map::QueueMap;

/// A shard that is to change lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Move {
    /// The shard.
    pub shard: ShardId,
    /// The lane that owns it.
    pub from: LaneId,
    /// The lane that shall own it.
    pub to: LaneId,
}

/// Why shards are not moved. None of those that were requested together is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MoveError {
    /// There is no such shard.
    #[error("there is no {0}: the run has fewer")]
    UnknownShard(ShardId),
    /// There is no such lane.
    #[error("there is no {0}: the run has fewer")]
    UnknownLane(LaneId),
    /// Lanes own the shards together.
    #[error(
        "{0} belongs to all lanes of its receive queue: no shard moves where lanes share queues"
    )]
    Joint(ShardId),
    /// The shard is where it should go.
    #[error("{shard} is on {lane} already: leave it out of the plan")]
    AtHome {
        /// The shard.
        shard: ShardId,
        /// Its owner.
        lane: LaneId,
    },
    /// The shard has another owner: the plan is older than the last moves.
    #[error("{shard} is on {owner}, not on {from}: plan again with the present owners")]
    NotOwner {
        /// The shard.
        shard: ShardId,
        /// The lane that was said to own it.
        from: LaneId,
        /// The lane that owns it.
        owner: LaneId,
    },
    /// The shard is moving, or is named twice.
    #[error("{0} is moving already: try again when it has arrived")]
    UnderWay(ShardId),
}

/// Moves shards between the lanes of a run. By default, of one without lanes.
#[derive(Debug, Default)]
pub struct Migrator {
    lanes: Vec<MigratorMailbox>,
    /// One per lane; none where no worker sleeps.
    notifiers: Vec<LaneNotifier>,
    tables: Vec<Table>,
    queues: QueueMap,
    /// Where each shard is, or goes.
    owners: Vec<LaneId>,
    /// Where the tables lead each shard's packets.
    placed: Vec<LaneId>,
    /// Per shard, whether it is moving.
    moving: Vec<bool>,
    /// Per shard, how many moves have begun.
    moves: Vec<u32>,
    batches: Vec<Batch>,
    moved: u64,
    durations: Histogram,
    /// Whether lanes own shards together, so that none moves.
    is_joint: bool,
    /// Commands about offloading that wait until their lane has read all others.
    offloads: Vec<(LaneId, Command)>,
    /// What the last rewriting of the tables took, until no packet could be placed by the old ones.
    rewrite: Option<Duration>,
}

struct Table(Arc<dyn IndirectionTable>);

/// Shards that move together.
#[derive(Debug)]
struct Batch {
    moves: Vec<Move>,
    stage: Stage,
    started: Time,
}

/// What a batch waits for.
#[derive(Debug)]
enum Stage {
    /// So many shards' next owners are not yet ready to hold packets.
    Ready(usize),
    /// Packets may still be placed by the tables as they were before this time.
    Fenced(Arc<[Fence]>, Time),
    /// So many shards have not yet arrived.
    Arrived(usize),
}

impl Migrator {
    /// Connects a migrator to the lanes of a run, before any of them was polled, and to the tables of its
    /// devices, which lead to the shards' owners.
    pub fn new(lanes: &mut [Lane], tables: Vec<Arc<dyn IndirectionTable>>) -> Migrator {
        let owners = lanes.first().map_or_else(Vec::new, |lane| lane.owners().to_vec());
        let is_joint = lanes.iter().any(Lane::has_joint_shards);
        let connect = |lane: &mut Lane| {
            let (mine, theirs) = mailbox(owners.len());
            lane.take_orders_from(theirs);
            mine
        };
        Migrator {
            lanes: lanes.iter_mut().map(connect).collect(),
            notifiers: Vec::new(),
            tables: tables.into_iter().map(Table).collect(),
            queues: QueueMap::default(),
            placed: owners.clone(),
            moving: vec![false; owners.len()],
            moves: vec![0; owners.len()],
            owners,
            batches: Vec::new(),
            moved: 0,
            durations: Histogram::new(),
            is_joint,
            offloads: Vec::new(),
            rewrite: None,
        }
    }

    /// Leads packets to lanes by the queues that these poll, where lane n does not poll queue n.
    pub fn route_by(&mut self, queues: QueueMap) {
        self.queues = queues;
    }

    /// Lets the migrator wake workers for lanes; `notifiers` has one per lane.
    pub(crate) fn wake_by(&mut self, notifiers: Vec<LaneNotifier>) {
        self.notifiers = notifiers;
    }

    /// The owner of each shard, or of one that is moving, its next.
    pub fn owners(&self) -> &[LaneId] {
        &self.owners
    }

    /// Whether a shard is moving.
    pub fn is_moving(&self, shard: ShardId) -> bool {
        self.moving.get(shard.index()).copied().unwrap_or(false)
    }

    /// Whether no shard is moving, and no command waits to be given.
    pub fn is_idle(&self) -> bool {
        self.batches.is_empty() && self.offloads.is_empty()
    }

    /// What the last rewriting of the tables took, until no packet could be placed by the old ones.
    pub fn rewrite(&self) -> Option<Duration> {
        self.rewrite
    }

    /// How many shards are moving.
    pub fn moving(&self) -> usize {
        self.moving.iter().filter(|moving| **moving).count()
    }

    /// Shards that have been moved so far.
    pub fn moved(&self) -> u64 {
        self.moved
    }

    /// How many times each shard was moved, counted from the start of each move.
    pub fn moves(&self) -> &[u32] {
        &self.moves
    }

    /// Nanoseconds from the start of a move to the shard's arrival.
    pub fn durations(&self) -> &Histogram {
        &self.durations
    }

    /// Begins to move shards, all together: the tables are rewritten once. Other moves may be under
    /// way.
    ///
    /// # Errors
    /// [`MoveError`], and nothing is moved.
    pub fn start(&mut self, moves: &[Move], now: Time) -> Result<(), MoveError> {
        for (index, one) in moves.iter().enumerate() {
            self.check(one)?;
            if moves[..index].iter().any(|earlier| earlier.shard == one.shard) {
                return Err(MoveError::UnderWay(one.shard));
            }
        }
        if moves.is_empty() {
            return Ok(());
        }
        let pending_acks = self.lanes.len() as u16 - 2;
        for &Move { shard, to, .. } in moves {
            self.owners[shard.index()] = to;
            self.moving[shard.index()] = true;
            self.moves[shard.index()] += 1;
            self.send(to, Command::Expect { shard, pending_acks, sent: now });
        }
        let stage = Stage::Ready(moves.len());
        self.batches.push(Batch { moves: moves.to_vec(), stage, started: now });
        Ok(())
    }

    /// Lets flows of lane `from` leave for lane `to` so that they have up to `share` hundredths of its packets; for none, takes all
    /// home. Takes effect at the lane's next poll, and once all flows that are with another lane are home. `false`, and nothing is
    /// changed, when the lane has yet to read an earlier command, or there are no such lanes.
    pub fn offload(&mut self, from: LaneId, to: Option<LaneId>, share: u8) -> bool {
        let known = |lane: LaneId| lane.index() < self.lanes.len();
        if !known(from) || !to.is_none_or(|to| known(to) && to != from) {
            return false;
        }
        let is_given = self.lanes[from.index()].offer(Command::Offload { to, share });
        if let Some(notifier) = self.notifiers.get(from.index()).filter(|_| is_given) {
            notifier.wake();
        }
        is_given
    }

    /// Lets these parts of shards' work leave lane `from` for lane `to`, and nothing else of it; for no lane, takes all home. The
    /// command is given by this or a later [`Migrator::step`], once the lane has read all others, in place of one that was not
    /// given yet. Nothing if there are no such lanes.
    pub fn offload_shares(
        &mut self,
        from: LaneId,
        to: Option<LaneId>,
        shares: Vec<(ShardId, Load)>,
    ) {
        let known = |lane: LaneId| lane.index() < self.lanes.len();
        if known(from) && to.is_none_or(|to| known(to) && to != from) {
            self.offloads.retain(|(lane, _)| *lane != from);
            self.offloads.push((from, Command::OffloadShares { to, shares }));
        }
    }

    /// Has lanes add their counts to the answer of `request`, those that have to and that have read all earlier commands.
    pub(crate) fn request_metrics(&mut self, request: &Arc<MetricsRequest>) {
        for lane in request.lanes_to_ask() {
            if !self.lanes[lane.index()].is_empty() {
                continue;
            }
            // Before the command, which the lane may answer at once.
            request.note_asked(lane);
            self.send(lane, Command::Count(request.clone()));
        }
    }

    /// Lets the service of each lane have a tick at the lane's next poll, so that it sees what clients request of it; lanes that
    /// sleep wake. Not those that have yet to read a command: their services see it at their next regular tick.
    pub fn call_services(&mut self) {
        for lane in (0..self.lanes.len()).map(|lane| LaneId(lane as u16)) {
            if self.lanes[lane.index()].is_empty() {
                self.send(lane, Command::Tick);
            }
        }
    }

    /// Gives the commands about offloading whose lanes have read all others.
    fn give_offloads(&mut self) {
        let lanes = &self.lanes;
        let ready = |(lane, _): &mut (LaneId, Command)| lanes[lane.index()].is_empty();
        let ready: Vec<_> = self.offloads.extract_if(.., ready).collect();
        ready.into_iter().for_each(|(lane, command)| self.send(lane, command));
    }

    fn check(&self, &Move { shard, from, to }: &Move) -> Result<(), MoveError> {
        let owner = *self.owners.get(shard.index()).ok_or(MoveError::UnknownShard(shard))?;
        if let Some(lane) = [from, to].into_iter().find(|lane| lane.index() >= self.lanes.len()) {
            return Err(MoveError::UnknownLane(lane));
        }
        if self.is_joint {
            return Err(MoveError::Joint(shard));
        }
        if self.moving[shard.index()] {
            return Err(MoveError::UnderWay(shard));
        }
        if owner != from {
            return Err(MoveError::NotOwner { shard, from, owner });
        }
        if from == to {
            return Err(MoveError::AtHome { shard, lane: to });
        }
        Ok(())
    }

    /// Does what can be done now: reads what lanes report, rewrites tables, and gives the commands that
    /// are due. To be called again and again while a shard is moving.
    pub fn step(&mut self, now: Time) {
        for lane in 0..self.lanes.len() {
            while let Some(report) = self.lanes[lane].next() {
                self.hear(report, now);
            }
        }
        self.batches.retain(|batch| !matches!(batch.stage, Stage::Arrived(0)));
        self.rewrite_tables(now);
        self.switch_fenced(now);
        self.give_offloads();
    }

    fn hear(&mut self, report: Report, now: Time) {
        let (Report::Ready(shard) | Report::Arrived(shard)) = report;
        let has_shard = |batch: &&mut Batch| batch.moves.iter().any(|one| one.shard == shard);
        // The youngest: a shard may move again before all that it once moved with have arrived.
        let batch =
            self.batches.iter_mut().rfind(has_shard).expect("a shard that is reported is moving");
        match (report, &mut batch.stage) {
            (Report::Ready(_), Stage::Ready(missing)) => *missing -= 1,
            (Report::Arrived(_), Stage::Arrived(missing)) => {
                *missing -= 1;
                self.moving[shard.index()] = false;
                self.moved += 1;
                self.durations.record(now.since(batch.started).as_nanos() as u64);
            }
            (report, stage) => unreachable!("{report:?} in {stage:?}"),
        }
    }

    /// Leads the packets of all shards whose next owners are ready to these.
    fn rewrite_tables(&mut self, now: Time) {
        let is_ready = |batch: &Batch| matches!(batch.stage, Stage::Ready(0));
        if !self.batches.iter().any(is_ready) {
            return;
        }
        for one in self.batches.iter().filter(|batch| is_ready(batch)).flat_map(|b| &b.moves) {
            self.placed[one.shard.index()] = one.to;
        }
        let fences: Arc<[Fence]> =
            self.tables.iter().map(|table| table.lead_to(&self.placed, &self.queues)).collect();
        for batch in self.batches.iter_mut().filter(|batch| is_ready(batch)) {
            batch.stage = Stage::Fenced(fences.clone(), now);
        }
    }

    /// Lets shards go whose packets no table leads to their owners any more.
    fn switch_fenced(&mut self, now: Time) {
        let mut batches = std::mem::take(&mut self.batches);
        for batch in &mut batches {
            let Stage::Fenced(fences, since) = &batch.stage else { continue };
            if fences.iter().all(Fence::passed) {
                self.rewrite = Some(now.since(*since));
                batch.moves.iter().for_each(|one| self.redirect(one));
                batch.stage = Stage::Arrived(batch.moves.len());
            }
        }
        self.batches = batches;
    }

    fn redirect(&mut self, &Move { shard, from, to }: &Move) {
        let lanes = self.lanes.len() as u16;
        for lane in (0..lanes).map(LaneId).filter(|lane| *lane != from) {
            self.send(lane, Command::Redirect { shard, from, to });
        }
        // All lanes but the owner.
        self.send(from, Command::Release { shard, to, redirects: lanes - 1 });
    }

    fn send(&mut self, lane: LaneId, command: Command) {
        self.lanes[lane.index()].send(command);
        if let Some(notifier) = self.notifiers.get(lane.index()) {
            notifier.wake();
        }
    }
}

impl Table {
    /// Rewrites the table so that it leads each shard's packets to the queue of this lane.
    fn lead_to(&self, lanes: &[LaneId], queues: &QueueMap) -> Fence {
        let queue = |bucket: usize| queues.queue_of(lanes[bucket % lanes.len()]);
        let entries: Vec<_> = (0..self.0.len()).map(queue).collect();
        self.0.rewrite(&entries).expect("a table that took one entry per bucket takes another")
    }
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Table").field(&self.0.len()).finish()
    }
}
