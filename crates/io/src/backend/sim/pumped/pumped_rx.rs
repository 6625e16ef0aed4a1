//! A receive queue of a pumped NIC.
use std::sync::Arc;

use rheostat_base::Time;
use rheostat_packet::{Burst, PoolCache};

use super::Pump;
use crate::device::{ArrivalOrder, Rest, RxQueue};

/// A receive queue.
pub(in crate::backend::sim) struct PumpedRx {
    pump: Arc<Pump>,
    queue: usize,
}

impl PumpedRx {
    pub(in crate::backend::sim) fn new(pump: Arc<Pump>, queue: usize) -> PumpedRx {
        PumpedRx { pump, queue }
    }
}

impl RxQueue for PumpedRx {
    fn recv(&mut self, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize {
        self.pump.poll(self.queue, burst, pool, now)
    }

    fn backlog(&self) -> usize {
        self.pump.backlog(self.queue)
    }

    fn order(&self) -> ArrivalOrder<'_> {
        ArrivalOrder { stamping: self.pump.stamping(), rings: None }
    }

    fn rest(&mut self, _pool: &mut PoolCache, now: Time) -> Rest {
        self.pump.look(self.queue, now)
    }
}
