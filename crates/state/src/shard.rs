//! The unit of state with one owner.

use std::any::Any;

use rheostat_base::ShardId;

use crate::{FlowTable, FragmentTracker};

/// All state of the packets whose hash falls to this shard. It is a value: the lane that holds the
/// box owns the shard, and giving it away is the whole of a migration.
///
/// A shard is made with what its service keeps for it, of a type of the service's own, and passes through
/// lanes and rings without it: `Shard` is a shard of any service. The service alone names the type again, by [`Shard::local`]
/// and [`Shard::split`].
#[derive(Debug)]
pub struct Shard<L: ?Sized = dyn Any + Send> {
    /// Which shard this is.
    pub id: ShardId,
    /// The flows, with the states of the chain's functions.
    pub table: FlowTable,
    /// The datagrams that arrive in fragments.
    pub fragments: FragmentTracker,
    /// What the service keeps for the shard as a whole: limits, ports, random numbers.
    pub local: L,
}

impl Shard {
    /// What the service keeps for the shard as a whole.
    ///
    /// # Panics
    /// When the shard was made with something of another type.
    #[inline]
    pub fn local<L: Any>(&self) -> &L {
        self.local.downcast_ref().unwrap_or_else(|| wrong_type())
    }

    /// The flows, and what the service keeps for the shard as a whole, to change.
    ///
    /// # Panics
    /// When the shard was made with something of another type.
    #[inline]
    pub fn split<L: Any>(&mut self) -> (&mut FlowTable, &mut L) {
        (&mut self.table, self.local.downcast_mut().unwrap_or_else(|| wrong_type()))
    }
}

#[cold]
fn wrong_type() -> ! {
    panic!("a shard holds what another service keeps for it")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{FlowHasher, FragmentConfig, StateLayout, TableConfig};

    fn shard(local: u32) -> Box<Shard> {
        let table = TableConfig { capacity: 1, aliases: false };
        let hasher = FlowHasher::fixed();
        let table = FlowTable::new(table, Arc::new(StateLayout::new()), hasher).unwrap();
        let fragments = FragmentTracker::new(FragmentConfig::default());
        Box::new(Shard { id: ShardId(0), table, fragments, local })
    }

    #[test]
    fn a_shard_has_what_it_was_made_with() {
        let mut shard = shard(7);
        *shard.split::<u32>().1 += 1;
        assert_eq!(shard.local::<u32>(), &8);
    }

    #[test]
    #[should_panic(expected = "what another service keeps for it")]
    fn a_shard_of_another_service_is_noticed() {
        shard(7).local::<u64>();
    }
}
