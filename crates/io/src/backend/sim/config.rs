//! What a simulated NIC is made from.

use std::sync::Arc;

use rheostat_base::{ClockSource, DeviceId};
use rheostat_steer::{HashOptions, Steering};

use super::Pacing;
use crate::OpenError;

/// Most descriptors of one ring.
const MAX_DESCRIPTORS: u32 = 1 << 20;

/// What makes packets arrive.
#[derive(Clone)]
pub enum Driver {
    /// Needs no core of its own. In an open loop, packets arrive when they are due, whichever lane polls and however late:
    /// what a queue holds and drops depends on when packets are due, tables are rewritten and descriptors given back,
    /// and on nothing else. Each lane writes its own packets into buffers as it takes them. With
    /// [`Pacing::Lossless`], and for sources that are fed while they run, the lane that polls a queue first enqueues what
    /// is due, for all queues, unless another lane is just doing so.
    Pumped(Drawing),
    /// A thread of the device, which reads this clock. It needs buffers of its own to lie ready, so
    /// give the pool a few hundred more than the lanes need.
    Threaded(Arc<dyn ClockSource>),
    /// A [`super::Stepper`] that a test or a simulator calls.
    Stepped,
}

/// When packets are drawn from the source of a pumped NIC.
#[derive(Clone)]
pub enum Drawing {
    /// The lane that needs them as it polls, for all lanes: it does what is not its work. Tables that are rewritten hold
    /// from the latest poll on. Repeatable under virtual time.
    AsPolled,
    /// A thread of the device, a second ahead in up to 64 MiB of memory; what it does not come to in time is drawn as
    /// polled, and counted as late. Tables that are rewritten hold from then on by this clock, which is the one that
    /// lanes go by.
    Ahead(Arc<dyn ClockSource>),
}

/// What a simulated NIC is made from.
#[derive(Clone)]
pub struct SimConfig {
    /// The device's name in the configuration.
    pub name: String,
    /// The number packets carry as the device they arrived on.
    pub device: DeviceId,
    /// How many lanes receive from the device: each has a queue pair.
    pub queues: u16,
    /// How many lanes receive from one ring of descriptors: 1, or a divisor of `queues`. Of several, the first so many
    /// share the first ring, and so on; a bucket that leads to one of them leads to their ring. Packets of a pumped device
    /// are then put into rings as with [`Pacing::Lossless`], by the lane that polls first.
    pub claimants: u16,
    /// Descriptors of each receive queue, rounded up to a power of two.
    pub descriptors: u32,
    /// Descriptors of each transmit queue; `None` for a queue that always has room.
    pub transmit_descriptors: Option<u32>,
    /// Rate of the link in bits per second; `None` for a link that takes no time.
    pub link_rate: Option<u64>,
    /// How packets are hashed, and over how many buckets.
    pub steering: Arc<Steering>,
    /// What the hash covers.
    pub hash: HashOptions,
    /// When packets arrive.
    pub pacing: Pacing,
    /// What makes them arrive.
    pub driver: Driver,
}

impl SimConfig {
    /// A pumped NIC with `queues` receive queues of 1024 descriptors, without limits on sending and
    /// without a link rate, in an open loop that starts with the first poll.
    pub fn new(name: impl Into<String>, queues: u16, steering: Arc<Steering>) -> SimConfig {
        SimConfig {
            name: name.into(),
            device: DeviceId(0),
            queues,
            claimants: 1,
            descriptors: 1_024,
            transmit_descriptors: None,
            link_rate: None,
            steering,
            hash: HashOptions::default(),
            pacing: Pacing::OpenLoop { origin: None },
            driver: Driver::Pumped(Drawing::AsPolled),
        }
    }

    /// How many rings the device has.
    pub(super) fn rings(&self) -> u16 {
        self.queues / self.claimants
    }

    pub(super) fn check(&self) -> Result<(), OpenError> {
        let device = || self.name.clone();
        if self.queues == 0 {
            return Err(OpenError::NoQueue { device: device() });
        }
        if self.claimants == 0 || !self.queues.is_multiple_of(self.claimants) {
            let (lanes, claimants) = (self.queues, self.claimants);
            return Err(OpenError::Claimants { device: device(), lanes, claimants });
        }
        for descriptors in [Some(self.descriptors), self.transmit_descriptors].into_iter().flatten()
        {
            if !(1..=MAX_DESCRIPTORS).contains(&descriptors) {
                return Err(OpenError::Descriptors { device: device(), descriptors });
            }
        }
        if self.link_rate == Some(0) {
            return Err(OpenError::NotPositive { device: device(), what: "the rate of its link" });
        }
        if let Pacing::Replay { speed } = self.pacing
            && !(speed.is_finite() && speed > 0.0)
        {
            return Err(OpenError::NotPositive {
                device: device(),
                what: "the speed of its replay",
            });
        }
        Ok(())
    }
}
