//! Why transactions conflict, in the terms of the objects, and what can be done about it (NFOS, sections 4.5 and
//! 4.6, tables 3 to 5).

use crate::txn::{Conflict, ObjectKind, Operation, Part};

use super::Recipe;

/// The reason of a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// Vector: both touch one element.
    SameElement,
    /// Map: both mean one key.
    SameKey,
    /// Map: two keys lie in one bucket.
    SameBucket,
    /// Allocator: a lane had no free resource left and took from another's pool, or its ended leases.
    PoolExhausted,
    /// Allocator: leases of one lane move in the order in which they end.
    LeasesMoved,
    /// Allocator: both touch one lease, and one of them prolongs it.
    LeaseRefreshed,
    /// Allocator: both touch one lease, and one of them ends or changes it.
    LeaseChanged,
    /// Distributed: what was merged was too old, so a read merged again what another lane changed.
    TooStale,
}

impl Cause {
    /// The cause of a conflict on an object of some kind.
    pub fn of(kind: ObjectKind, conflict: &Conflict) -> Cause {
        let either = |operation| {
            conflict.mine.operation == operation || conflict.theirs.operation == operation
        };
        match (kind, conflict.part) {
            (ObjectKind::Vector, _) => Cause::SameElement,
            (ObjectKind::Map, _) if conflict.same => Cause::SameKey,
            (ObjectKind::Map, _) => Cause::SameBucket,
            (ObjectKind::Distributed, _) => Cause::TooStale,
            (ObjectKind::Allocator, Part::Pool) => Cause::PoolExhausted,
            // A lane looks for ended leases of another only when it has no free resource itself. What it allocates is in its own
            // list, which other lanes read in no other case.
            (ObjectKind::Allocator, Part::List)
                if either(Operation::Expire)
                    && !either(Operation::Refresh)
                    && !either(Operation::Free) =>
            {
                Cause::PoolExhausted
            }
            (ObjectKind::Allocator, Part::Lease) if either(Operation::Refresh) => {
                Cause::LeaseRefreshed
            }
            (ObjectKind::Allocator, Part::Lease) => Cause::LeaseChanged,
            (ObjectKind::Allocator, _) => Cause::LeasesMoved,
        }
    }

    /// A sentence for people.
    pub const fn describe(self) -> &'static str {
        match self {
            Cause::SameElement => "two lanes touched the same element",
            Cause::SameKey => "two lanes touched the same key",
            Cause::SameBucket => "two keys lie in one bucket",
            Cause::PoolExhausted => "a lane had no free resource left and took from another lane's",
            Cause::LeasesMoved => "leases of one lane moved in the order in which they end",
            Cause::LeaseRefreshed => "a lease was refreshed while another lane used it",
            Cause::LeaseChanged => "a lease was taken or ended while another lane used it",
            Cause::TooStale => {
                "the merged value was older than the maximum staleness, so the read merged again"
            }
        }
    }

    /// What helps, best first.
    pub const fn recipes(self) -> &'static [Recipe] {
        match self {
            Cause::SameElement => &[Recipe::Distribute, Recipe::CoarserPacketSet],
            Cause::SameKey => &[Recipe::Distribute, Recipe::CoarserPacketSet],
            Cause::SameBucket => &[Recipe::EnlargeMap],
            Cause::PoolExhausted => &[Recipe::ProvisionMore],
            Cause::LeasesMoved => &[Recipe::RaiseRefreshInterval, Recipe::ProvisionMore],
            Cause::LeaseRefreshed => &[Recipe::RaiseRefreshInterval],
            Cause::LeaseChanged => &[Recipe::CoarserPacketSet],
            Cause::TooStale => &[Recipe::RaiseStaleness],
        }
    }
}
