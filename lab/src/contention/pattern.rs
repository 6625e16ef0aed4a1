//! What a function does with shared objects.

use std::fmt;
use std::time::Duration;

use rheostat_base::Time;
use rheostat_state::txn::{Objects, Outcome, Txn};

/// The objects are laid out the same each time, so that simulated conflicts are, too.
pub(super) const SEED: u64 = 1;

/// A function's shared objects, and what a packet does with them.
///
/// Packets come to each lane at a constant rate and have its time, as from a capture: what depends on time comes out
/// alike on lanes of any speed. What a packet does follows from its lane and number alone, so that an attempt that
/// was undone is repeated as it was.
pub trait Pattern: fmt::Debug + Sync {
    /// The objects.
    fn objects(&self) -> &Objects;

    /// Between two packets of a lane.
    fn interval(&self) -> Duration;

    /// Packets of each lane until things are as they stay, from number 0.
    fn warm_up(&self) -> u64;

    /// What the packet of `txn`'s lane with this number does, in a transaction that has begun.
    ///
    /// # Errors
    /// [`Abort`](rheostat_state::txn::Abort) as the objects return it.
    fn packet(&self, txn: &mut Txn, number: u64) -> Outcome<()>;

    /// When the packet with this number comes.
    fn time(&self, number: u64) -> Time {
        let nanos = self.interval().as_nanos() as u64;
        // Not at 0, so that what was learnt before the run lies in the past.
        Time::from_secs(1) + Duration::from_nanos(nanos * number)
    }
}

/// A number that looks random and is the same for the same packet: SplitMix64 (Steele, Lea and Flood, "Fast
/// splittable pseudorandom number generators", OOPSLA 2014).
pub(super) fn drawn(txn: &Txn, number: u64) -> u64 {
    mixed(number ^ u64::from(txn.lane().0) << 48)
}

pub(super) fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}
