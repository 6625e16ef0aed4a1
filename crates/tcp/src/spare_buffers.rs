//! Send buffers that wait for connections that need one.
//!
//! A connection that has nothing to send needs no buffer, and a request is soon answered and acknowledged. So connections of one
//! shard share their first buffers: idle ones take no memory, and the next reply is written where one was a moment ago.

use std::sync::Arc;

use crate::connection::Connection;
use crate::memory::{Mark, MemoryBudget};

/// Buffers that are kept at most; others are freed.
const MOST: usize = 64;
/// Those that are kept while there is no connection.
const RESTING: usize = 4;

/// Send buffers of the first size, of connections that charge one budget.
#[derive(Debug)]
pub struct SpareBuffers {
    budget: Arc<MemoryBudget>,
    /// The budget stays charged with them.
    buffers: Vec<Box<[u8]>>,
    /// The budget is not charged with them.
    resting: Vec<Box<[u8]>>,
}

impl SpareBuffers {
    /// None yet, of connections that charge this budget.
    pub fn new(budget: Arc<MemoryBudget>) -> SpareBuffers {
        SpareBuffers { budget, buffers: Vec::new(), resting: Vec::new() }
    }

    /// Gives a connection a send buffer if it has none, so that it need not allocate one.
    #[inline]
    pub fn lend(&mut self, connection: &mut Connection) {
        let buffer = connection.send_buffer();
        if buffer.takes_spare(&self.budget)
            && let Some(bytes) = self.buffers.pop().or_else(|| self.wake())
        {
            buffer.put_spare(bytes);
        }
    }

    /// Takes the send buffer of a connection if nothing is in it, unless that has grown.
    #[inline]
    pub fn take_back(&mut self, connection: &mut Connection) {
        if let Some(bytes) = connection.send_buffer().take_spare(&self.budget) {
            if self.buffers.len() < MOST && !self.budget.is_under_pressure() {
                self.buffers.push(bytes);
            } else {
                self.budget.release(bytes.len());
            }
        }
    }

    /// There is no connection: the budget is charged with nothing, and a few buffers are kept for the next ones.
    pub fn rest(&mut self) {
        for bytes in self.buffers.drain(..) {
            self.budget.release(bytes.len());
            if self.resting.len() < RESTING {
                self.resting.push(bytes);
            }
        }
    }

    /// A buffer that rests, if the budget can be charged with it.
    fn wake(&mut self) -> Option<Box<[u8]>> {
        let bytes = self.resting.pop()?;
        self.budget.try_charge(bytes.len(), Mark::Pressure).then_some(bytes)
    }
}

impl Drop for SpareBuffers {
    fn drop(&mut self) {
        self.rest();
    }
}
