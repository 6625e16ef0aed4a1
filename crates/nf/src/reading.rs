//! The fast path of functions on shared objects: what they decide about most packets from what they read there.

use rheostat_base::DeviceId;
use rheostat_state::txn::Txn;

use crate::function::Ahead;
use crate::packet::Packet;
use crate::verdict::Outcome;

/// What a function decides about most packets of no flow by reading shared objects and changing none of them. Packets come here
/// three times, each time all of a burst before the first comes again: to name what will be read, to prefetch it, and to be
/// decided about, many of them in one transaction. A packet about which nothing is decided takes the general handlers.
///
/// Whatever is decided here, [`NetworkFunction::non_flow`](crate::NetworkFunction::non_flow) must decide, too: it would have
/// changed neither packet nor objects, asked for nothing, and said [`Verdict::Send`](crate::Verdict::Send).
pub trait Reading {
    /// Whether there is a packet about which anything is decided here.
    const EXISTS: bool = true;

    /// What the function has found out about a packet by itself: what it reads for it.
    type Clue: Copy;

    /// What will be read for a packet. `None` when the general handler has to see it.
    fn clue(&self, packet: &Packet<'_>) -> Option<Self::Clue>;

    /// Asks the processor to fetch what will be read (see [`NetworkFunction::prefetch`](crate::NetworkFunction::prefetch)).
    fn prefetch(&self, clue: &Self::Clue, what: Ahead);

    /// Where to send the packet that the clue is about. `None` when the general handler has to decide.
    ///
    /// # Errors
    /// [`Abort`](crate::Abort) on a conflict.
    fn decide(&self, txn: &mut Txn, clue: &Self::Clue) -> Outcome<Option<DeviceId>>;
}

/// For functions that have no fast path: every packet takes the general handlers.
#[derive(Clone, Copy, Debug)]
pub struct Unread;

impl Reading for Unread {
    const EXISTS: bool = false;

    type Clue = ();

    #[inline(always)]
    fn clue(&self, _: &Packet<'_>) -> Option<()> {
        None
    }

    #[inline(always)]
    fn prefetch(&self, (): &(), _: Ahead) {}

    #[inline(always)]
    fn decide(&self, _: &mut Txn, (): &()) -> Outcome<Option<DeviceId>> {
        Ok(None)
    }
}
