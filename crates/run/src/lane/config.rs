//! What a lane is made of, and what counts as time in it.

use std::sync::Arc;

use rheostat_base::{DeviceId, LaneId, Time};
use rheostat_io::QueuePair;
use rheostat_packet::{Mbuf, PoolCache};
use rheostat_state::FlowHasher;
use rheostat_steer::Steering;

use crate::classes::Classes;
use crate::handoff::Handoff;
use crate::load::LoadReporting;
use crate::service::Service;
use crate::shard_set::ShardSet;
use crate::stages::StageSwitch;

/// What counts as the time of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeSource {
    /// Its time stamp, or the latest before it ([`Mbuf::replay_time`]). For captures: the outcome depends neither on how fast
    /// they are read nor on which packets share a lane.
    Packet,
    /// The start of the poll that received it. For live devices.
    Poll,
}

impl TimeSource {
    /// What counts as the time of a packet received at `now`.
    #[inline]
    pub(super) fn of(self, packet: &Mbuf, now: Time) -> Time {
        match self {
            TimeSource::Packet => packet.replay_time(),
            TimeSource::Poll => now,
        }
    }
}

/// Where a forwarded packet leaves: per arriving device the device it goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routes(pub Vec<DeviceId>);

impl Routes {
    /// The device on which a packet that arrived on `device` leaves.
    #[inline]
    pub fn out_of(&self, device: DeviceId) -> DeviceId {
        self.0[device.index()]
    }
}

/// What a lane is made of.
pub struct LaneConfig {
    /// The lane's number.
    pub id: LaneId,
    /// The queues that it polls: a pair per device, in the order of device numbers.
    pub queues: Vec<QueuePair>,
    /// The shards the lane owns.
    pub shards: ShardSet,
    /// The owner of every shard of the run; of joint shards, the lane in which their fragments meet.
    pub owners: Vec<LaneId>,
    /// The lanes that own joint shards together with this one, itself included; none where each shard has one owner.
    pub claimants: Vec<LaneId>,
    /// Whether other lanes are kept from receiving until the lane has told packets apart ([`rheostat_io::SharedQueue::release`]).
    pub takes_turns: bool,
    /// Places packets in shards.
    pub steering: Arc<Steering>,
    /// Hashes keys for the flow tables.
    pub hasher: FlowHasher,
    /// The lane's ends of the links between lanes.
    pub handoff: Handoff,
    /// Packets of one shard that may wait until the shard comes.
    pub hold_capacity: usize,
    /// The lane's stock of buffers.
    pub pool: PoolCache,
    /// What the lane runs.
    pub service: Box<dyn Service>,
    /// What counts as time.
    pub time: TimeSource,
    /// What the lane tells of its load.
    pub reporting: LoadReporting,
    /// What is measured of classes of traffic, if anything is.
    pub classes: Option<Arc<Classes>>,
    /// Whether the lane notes how long each stage takes.
    pub stages: Option<StageSwitch>,
    /// Whether the lane notes how long packets take to it from the homes of their flows.
    pub hops: Option<StageSwitch>,
}
