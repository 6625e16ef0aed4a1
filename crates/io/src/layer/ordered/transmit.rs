//! The transmit queue of a lane whose packets leave in order.

use std::sync::Arc;

use rheostat_base::Time;
use rheostat_packet::{Burst, PoolCache};

use super::port::{Books, Port};
use super::{MOST_IN_A_TURN, OpenTurns};
use crate::device::{TxQueue, Unsent};

/// A transmit queue that puts packets into the turns of their claims.
pub(super) struct OrderedTx {
    /// The number of its device.
    pub(super) device: usize,
    pub(super) open: OpenTurns,
    pub(super) books: Arc<[Books]>,
    pub(super) ports: Arc<[Port]>,
    /// When it was last given packets.
    pub(super) latest: Time,
}

impl TxQueue for OrderedTx {
    /// Packets that belong to no open turn, such as those that a function made on its own or held back, leave at once.
    fn send(&mut self, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize {
        self.latest = now;
        let mut open = self.open.try_lock().expect("the lane's own");
        let room =
            open.iter().flatten().map(|turn| MOST_IN_A_TURN.saturating_sub(turn.packets.len()));
        let count = burst.len().min(room.min().unwrap_or(usize::MAX));
        self.books[self.device].wait(count as u64);
        for packet in burst.drain(..count) {
            match open.get_mut(packet.device().index()).and_then(Option::as_mut) {
                Some(turn) => turn.packets.push((self.device as u8, packet)),
                None => {
                    let packet = std::iter::once(packet);
                    let port = &self.ports[self.device];
                    port.send(self.device, packet, &self.books, (pool, now));
                }
            }
        }
        count
    }

    fn unsent(&mut self) -> Unsent {
        self.books[self.device].unsent()
    }

    fn finish(&mut self, pool: &mut PoolCache) {
        self.ports[self.device].finish(self.device, &self.books, pool, self.latest);
    }
}
