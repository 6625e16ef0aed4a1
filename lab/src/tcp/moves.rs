//! `rheo bench tcp --moves`: moves shards while their connections are busy, and looks for bytes that are damaged.

use std::time::{Duration, Instant};
use std::{fmt, thread};

use rheostat_base::{LaneId, ShardId};
use rheostat_run::Move;
use rheostat_serve::ServeConfig;
use serde::{Deserialize, Serialize};

use super::applications::Repeat;
use super::row::RequestKind;
use super::testbed::TcpTestbed;
use super::{Load, adapted};
use crate::error::BenchError;
use crate::testbed::lanes::finish;
use crate::testbed::server::SHARDS;

/// Shards that are moved at a time at most.
const AT_ONCE: u64 = 8;

/// Moves shards.
#[derive(Clone, Copy, Debug)]
pub struct MovesBench {
    /// How many.
    pub moves: u64,
    /// Connections.
    pub connections: u32,
    /// Between so many lanes.
    pub lanes: usize,
    /// What is moved where is drawn from it.
    pub seed: u64,
    /// Give up after this long.
    pub limit: Duration,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moves {
    /// Shards moved.
    pub moves: u64,
    /// Connections that were busy meanwhile.
    pub streams: u64,
    /// Connections that came to another lane, each time counted.
    pub moved_connections: u64,
    /// Replies that clients got.
    pub replies: u64,
    /// Segments with bytes other than those that were due.
    pub damaged: u64,
    /// Connections that were reset.
    pub reset: u64,
    /// Segments that either end sent again.
    pub retransmitted: u64,
}

impl fmt::Display for Moves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Moves { moves, streams, moved_connections, replies, damaged, reset, retransmitted } =
            self;
        write!(
            f,
            "{moves} moves of shards, {moved_connections} of connections; {streams} streams, {replies} replies: \
             {damaged} segments damaged, {reset} connections reset, {retransmitted} segments sent again"
        )
    }
}

impl MovesBench {
    /// Moves shards, one after the other, each to a lane drawn at random.
    ///
    /// # Errors
    /// [`BenchError`] when it takes too long, or the run was not sound.
    pub fn run(&self) -> Result<Moves, BenchError> {
        let load = Load::new(RequestKind::Requests, self.connections, self.lanes);
        let testbed =
            TcpTestbed::new(self.lanes, self.connections, |config| adapted(&load, config))?;
        let limits =
            ServeConfig { connections: 2 * self.connections as usize, ..ServeConfig::default() };
        let running = testbed.start(Repeat, self.lanes, 0, limits)?;
        let begun = Instant::now();
        while !testbed.clients.are_open() && begun.elapsed() < self.limit {
            thread::sleep(Duration::from_millis(1));
        }
        let mut state = self.seed;
        let mut draw = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut asked = 0;
        while asked < self.moves && begun.elapsed() < self.limit {
            let now = running.runtime.view().now();
            let mut migrator = running.runtime.migrator();
            if (migrator.moving() as u64) < AT_ONCE {
                let shard = ShardId(draw(SHARDS as u64) as u16);
                let from = migrator.owners()[shard.index()];
                let to = LaneId(
                    ((u64::from(from.0) + 1 + draw(self.lanes as u64 - 1)) % self.lanes as u64)
                        as u16,
                );
                let may = !migrator.is_moving(shard);
                if may && migrator.start(&[Move { shard, from, to }], now).is_ok() {
                    asked += 1;
                }
            }
            drop(migrator);
            if !running.runtime.step_migrator() {
                thread::yield_now();
            }
        }
        while !running.runtime.migrator().is_idle() && begun.elapsed() < self.limit {
            running.runtime.step_migrator();
            thread::yield_now();
        }
        let moves = running.runtime.migrator().moved();
        // A round of everything after the last one.
        thread::sleep(Duration::from_millis(500));
        let clients = testbed.clients.totals();
        finish(running.runtime)?;
        if moves < self.moves {
            return Err(BenchError::Slow { done: moves, asked: self.moves, limit: self.limit });
        }
        let service = running.control.totals();
        Ok(Moves {
            moves,
            streams: service.accepted,
            moved_connections: service.moved_connections,
            replies: clients.replies,
            damaged: clients.damaged,
            reset: clients.reset + clients.finished_first,
            retransmitted: service.retransmitted + clients.sent_again,
        })
    }
}
