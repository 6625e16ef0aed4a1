//! What an access to a cell is part of, so that two that conflict can be named.

use std::panic::Location;

use super::objects::ObjectId;
use super::site::SiteId;

/// An operation of a shared object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Operation {
    /// Reads an element of a vector, or the whole of a distributed object.
    Read = 0,
    /// Overwrites an element of a vector, or the value of a lease.
    Write,
    /// Changes an element of a vector, or a lane's part of a distributed object.
    Update,
    /// Looks a key up, or a lease.
    Get,
    /// Inserts or overwrites a key.
    Set,
    /// Removes a key.
    Remove,
    /// Takes a resource.
    Allocate,
    /// Gives a resource back.
    Free,
    /// Prolongs a lease.
    Refresh,
    /// Takes back a lease whose time is up.
    Expire,
}

impl Operation {
    const ALL: [Operation; 10] = [
        Operation::Read,
        Operation::Write,
        Operation::Update,
        Operation::Get,
        Operation::Set,
        Operation::Remove,
        Operation::Allocate,
        Operation::Free,
        Operation::Refresh,
        Operation::Expire,
    ];

    /// The name of the method that authors call.
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Update => "update",
            Operation::Get => "get",
            Operation::Set => "set",
            Operation::Remove => "remove",
            Operation::Allocate => "allocate",
            Operation::Free => "free",
            Operation::Refresh => "refresh",
            Operation::Expire => "expired",
        }
    }
}

/// What of an object a cell holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Part {
    /// An element of a vector.
    Element = 0,
    /// Some keys of a map.
    Bucket,
    /// The free resources of one lane.
    Pool,
    /// The leases of one lane, by the order in which they end.
    List,
    /// One lease.
    Lease,
    /// One lane's part of a distributed object.
    Share,
    /// The merged value of a distributed object.
    Merged,
}

impl Part {
    const ALL: [Part; 7] = [
        Part::Element,
        Part::Bucket,
        Part::Pool,
        Part::List,
        Part::Lease,
        Part::Share,
        Part::Merged,
    ];
}

/// An access to one cell. Two words, which travel in registers: written field by field and copied as a whole, each would
/// hold a read up until it has left the store buffer.
#[derive(Clone, Copy, Debug)]
pub struct Touch {
    /// Detail, object, part and operation, from above.
    what: u64,
    /// The author's line.
    pub(crate) site: &'static Location<'static>,
}

impl Touch {
    /// `detail` is what distinguishes accesses to one cell: for a map, bits of the key's hash.
    #[inline(always)]
    pub(crate) const fn new(
        object: ObjectId,
        operation: Operation,
        part: Part,
        detail: u32,
        site: &'static Location<'static>,
    ) -> Touch {
        let what = (detail as u64) << 32 | (object.0 as u64) << 16;
        Touch { what: what | (part as u64) << 8 | operation as u64, site }
    }

    /// The same of another part.
    #[inline(always)]
    pub(crate) fn of_part(self, part: Part) -> Touch {
        Touch { what: self.what & !0xff00 | (part as u64) << 8, ..self }
    }

    pub(crate) fn object(&self) -> ObjectId {
        ObjectId((self.what >> 16) as u16)
    }

    pub(crate) fn operation(&self) -> Operation {
        Operation::ALL[usize::from(self.what as u8)]
    }

    fn part(&self) -> u64 {
        self.what >> 8 & 0xff
    }

    fn detail(&self) -> u64 {
        self.what >> 32
    }
}

/// Bits of a touch's detail that are kept.
const DETAIL: u32 = 31;

/// A touch in the words of a cell, without its object, which the other side knows. Zero: there was none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct PackedTouch(u64);

impl PackedTouch {
    /// How many bits it takes.
    pub(super) const BITS: u32 = 1 + 4 + 3 + SiteId::BITS + DETAIL;

    pub(super) fn new(touch: &Touch, site: SiteId) -> PackedTouch {
        let packed = touch.detail() & ((1 << DETAIL) - 1);
        let packed = packed << SiteId::BITS | u64::from(site.0);
        let packed = packed << 3 | touch.part();
        PackedTouch((packed << 4 | touch.what & 0xff) << 1 | 1)
    }

    pub(super) fn raw(self) -> u64 {
        self.0
    }

    pub(super) fn of_raw(raw: u64) -> PackedTouch {
        PackedTouch(raw & ((1 << Self::BITS) - 1))
    }

    /// Operation, part, site and detail, unless there was no access.
    pub(super) fn unpack(self) -> Option<(Operation, Part, SiteId, u32)> {
        let operation = *Operation::ALL.get((self.0 >> 1 & 15) as usize)?;
        let part = *Part::ALL.get((self.0 >> 5 & 7) as usize)?;
        let site = SiteId((self.0 >> 8) as u16);
        (self.0 & 1 == 1).then_some((operation, part, site, (self.0 >> (8 + SiteId::BITS)) as u32))
    }
}

/// The detail of a hash, as it is compared.
pub(crate) const fn detail_of(hash: u64) -> u32 {
    (hash >> 33) as u32
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_out_again() {
        assert_eq!(PackedTouch::default().unpack(), None);
        let site = Location::caller();
        for operation in Operation::ALL {
            for part in Part::ALL {
                let detail = detail_of(u64::MAX);
                let touch = Touch::new(ObjectId(3), operation, part, detail, site);
                assert_eq!((touch.object(), touch.operation()), (ObjectId(3), operation));
                let packed = PackedTouch::new(&touch, SiteId(u16::MAX));
                assert!(packed.raw() >> PackedTouch::BITS == 0);
                let unpacked = PackedTouch::of_raw(packed.raw()).unpack();
                assert_eq!(unpacked, Some((operation, part, SiteId(u16::MAX), detail)));
            }
        }
    }
}
