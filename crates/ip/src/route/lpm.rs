//! Longest prefix match, by the structure of "Poptrie: A Compressed Trie with Population Count for Fast
//! and Scalable Software IP Routing Table Lookup" (Asai and Ohara, SIGCOMM 2015): a table that is indexed
//! by the first 16 bits, then nodes of 64 children each. A node has one bit per child that shows whether
//! it is a node, too, and one that shows whether its leaf differs from the one before; counting bits finds
//! a child's place in arrays without gaps. A node is 24 bytes, so that tables of a million routes lie in
//! the last-level cache.
//!
//! Tables do not change. For other routes, another table is built.

/// Bits that the first table is indexed by.
const DIRECT: u32 = 16;
/// Bits of each further step.
const STRIDE: u32 = 6;
/// Marks an entry of the first table that is a value and not a node.
const LEAF: u32 = 1 << 31;

/// An address as a number, its first bit the highest.
pub trait Address: Copy + Ord {
    /// Bits of an address.
    const BITS: u32;

    /// The `count` bits from bit `at` on, zeros behind the last one.
    fn bits(self, at: u32, count: u32) -> usize;

    /// The address with all but its first `length` bits zero.
    #[must_use]
    fn masked(self, length: u8) -> Self;
}

impl Address for u32 {
    const BITS: u32 = 32;

    #[inline(always)]
    fn bits(self, at: u32, count: u32) -> usize {
        ((u64::from(self) << 32 << at) >> (64 - count)) as usize
    }

    fn masked(self, length: u8) -> u32 {
        self & u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0)
    }
}

impl Address for u128 {
    const BITS: u32 = 128;

    #[inline(always)]
    fn bits(self, at: u32, count: u32) -> usize {
        ((self << at) >> (128 - count)) as usize
    }

    fn masked(self, length: u8) -> u128 {
        self & u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0)
    }
}

/// Values by prefixes of addresses.
#[derive(Clone, Debug)]
pub struct Lpm<A> {
    direct: Box<[u32]>,
    nodes: Vec<Node>,
    leaves: Vec<u16>,
    _address: std::marker::PhantomData<A>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    /// Which children are nodes.
    inner: u64,
    /// Which of the other children have another value than the one before.
    starts: u64,
    /// Where its first node is.
    nodes: u32,
    /// Where its first value is.
    leaves: u32,
}

const _: () = assert!(size_of::<Node>() == 24);

/// One prefix: its address, its length and its value.
pub(crate) type LpmEntry<A> = (A, u8, u16);

impl<A: Address> Lpm<A> {
    /// The table of these prefixes, each given as an address in it, its length, which is no longer than
    /// an address, and its value. An address that no prefix contains has the value 0. Of two entries for
    /// one prefix the later counts.
    ///
    /// # Panics
    /// When a length is longer than an address.
    pub fn new(mut entries: Vec<(A, u8, u16)>) -> Lpm<A> {
        order(&mut entries);
        let mut table = Lpm {
            direct: Box::default(),
            nodes: Vec::new(),
            leaves: Vec::new(),
            _address: std::marker::PhantomData,
        };
        let level = Level::split(&entries, 0, DIRECT, 0);
        let mut direct: Vec<u32> =
            level.values.iter().map(|value| LEAF | u32::from(*value)).collect();
        for (child, within) in level.children {
            direct[child] = table.nodes.len() as u32;
            table.nodes.push(Node::default());
            let at = direct[child] as usize;
            table.fill(at, within, DIRECT, level.values[child]);
        }
        table.direct = direct.into();
        table
    }

    /// The value of the longest prefix that contains the address; 0 without one.
    #[inline(always)]
    pub fn lookup(&self, address: A) -> u16 {
        let entry = self.direct[address.bits(0, DIRECT)];
        if entry & LEAF != 0 {
            return entry as u16;
        }
        self.descend(entry as usize, address)
    }

    #[inline]
    fn descend(&self, mut at: usize, address: A) -> u16 {
        let mut depth = DIRECT;
        loop {
            let node = &self.nodes[at];
            let child = address.bits(depth, STRIDE);
            let upto = u64::MAX >> (63 - child);
            if node.inner & 1 << child == 0 {
                // The first child always starts a value, unless it is a node: then there may be none.
                let place = (node.starts & upto).count_ones() - 1;
                return self.leaves[(node.leaves + place) as usize];
            }
            at = (node.nodes + (node.inner & upto).count_ones() - 1) as usize;
            depth += STRIDE;
        }
    }

    /// Makes the node at `at`, whose prefixes are `entries`, which are longer than `depth` bits and share
    /// so many. `default` is the value of what none of them contains.
    fn fill(&mut self, at: usize, entries: &[LpmEntry<A>], depth: u32, default: u16) {
        let level = Level::split(entries, depth, STRIDE, default);
        let mut node = Node {
            nodes: self.nodes.len() as u32,
            leaves: self.leaves.len() as u32,
            ..Node::default()
        };
        for (child, _) in &level.children {
            node.inner |= 1 << child;
        }
        let mut last = None;
        for (child, value) in level.values.iter().enumerate() {
            if node.inner & 1 << child == 0 && last != Some(*value) {
                node.starts |= 1 << child;
                self.leaves.push(*value);
                last = Some(*value);
            }
        }
        let first = self.nodes.len();
        self.nodes.resize(first + level.children.len(), Node::default());
        self.nodes[at] = node;
        for (place, (child, within)) in level.children.into_iter().enumerate() {
            self.fill(first + place, within, depth + STRIDE, level.values[child]);
        }
    }

    /// Bytes of memory that the table takes.
    pub fn memory(&self) -> usize {
        size_of_val(&*self.direct)
            + self.nodes.len() * size_of::<Node>()
            + self.leaves.len() * size_of::<u16>()
    }
}

/// Puts prefixes in the order in which tables are made of them: one stands before those inside it.
///
/// # Panics
/// When a length is longer than an address.
pub(super) fn order<A: Address>(entries: &mut [LpmEntry<A>]) {
    for (address, length, _) in &mut *entries {
        assert!(u32::from(*length) <= A::BITS, "a prefix is no longer than an address");
        *address = address.masked(*length);
    }
    entries.sort_by_key(|(address, length, _)| (*address, *length));
}

/// The children of a node or of the first table.
pub(super) struct Level<'a, A> {
    /// The value of each, where it is no node or nothing inside it states otherwise.
    pub(super) values: Vec<u16>,
    /// Those that are nodes, with the prefixes inside them.
    pub(super) children: Vec<(usize, &'a [LpmEntry<A>])>,
}

impl<'a, A: Address> Level<'a, A> {
    /// Sorts `entries`, which are in [`order`], into children by the `count` bits behind the first `depth`.
    pub(super) fn split(
        entries: &'a [LpmEntry<A>],
        depth: u32,
        count: u32,
        default: u16,
    ) -> Level<'a, A> {
        let mut values = vec![default; 1 << count];
        let mut children: Vec<(usize, &[LpmEntry<A>])> = Vec::new();
        let end = depth + count;
        let mut at = 0;
        while at < entries.len() {
            let (address, length, value) = entries[at];
            let child = address.bits(depth, count);
            if u32::from(length) <= end {
                // It is on top of those it lies in, which stand before it.
                let width = 1 << (end - u32::from(length));
                values[child..child + width].fill(value);
                at += 1;
                continue;
            }
            let inside = entries[at..].iter().take_while(|(address, length, _)| {
                u32::from(*length) > end && address.bits(depth, count) == child
            });
            let inside = inside.count();
            children.push((child, &entries[at..at + inside]));
            at += inside;
        }
        Level { values, children }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition.
    pub(in crate::route) fn oracle<A: Address>(entries: &[LpmEntry<A>], address: A) -> u16 {
        let contains = |base: A, length: u8| {
            (0..u32::from(length)).all(|bit| base.bits(bit, 1) == address.bits(bit, 1))
        };
        let mut best: Option<(u8, u16)> = None;
        for (base, length, value) in entries {
            if contains(*base, *length) && best.is_none_or(|(longest, _)| *length >= longest) {
                best = Some((*length, *value));
            }
        }
        best.map_or(0, |(_, value)| value)
    }

    #[test]
    fn a_table_without_prefixes_and_one_with_a_default() {
        assert_eq!(Lpm::<u32>::new(Vec::new()).lookup(0x0a00_0001), 0);
        let table = Lpm::<u128>::new(vec![(0, 0, 9)]);
        assert_eq!((table.lookup(0), table.lookup(u128::MAX)), (9, 9));
    }

    #[test]
    fn single_addresses_stand_out_of_their_network() {
        let entries = vec![
            (0, 0, 1),
            (0x0a00_0000_u32, 8, 2),
            (0x0a00_0000, 24, 3),
            (0x0a00_0001, 32, 4),
            (0x0a00_00ff, 32, 5),
            (0xffff_ffff, 32, 6),
        ];
        let table = Lpm::new(entries);
        for (address, value) in [
            (0x0900_0000, 1),
            (0x0a01_0000, 2),
            (0x0a00_0000, 3),
            (0x0a00_0001, 4),
            (0x0a00_0002, 3),
            (0x0a00_00ff, 5),
            (0x0a00_0100, 2),
            (0xffff_ffff, 6),
            (0xffff_fffe, 1),
        ] {
            assert_eq!(table.lookup(address), value, "{address:08x}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 400 }))]

        /// Addresses are drawn near the prefixes, where they matter, and near each other.
        #[test]
        fn lookups_agree_with_the_definition_v4(
            prefixes in prop::collection::vec((any::<u32>(), 0_u8..=32, 0_u8..4), 0..60),
            probes in prop::collection::vec((any::<prop::sample::Index>(), any::<u32>(), 0_u32..=32), 60),
        ) {
            let entries: Vec<LpmEntry<u32>> = (1..)
                .zip(&prefixes)
                .map(|(value, (address, length, near))| {
                    // A few share their first bits, so that prefixes lie in one another.
                    let address = if *near > 0 { address & 0x0000_ffff | 0x0a01_0000 } else { *address };
                    (address, *length, value)
                })
                .collect();
            let table = Lpm::new(entries.clone());
            for (near, other, keep) in &probes {
                let base = if entries.is_empty() { 0 } else { near.get(&entries).0 };
                let mask = if *keep == 0 { 0 } else { u32::MAX << (32 - keep) };
                let address = base & mask | other & !mask;
                prop_assert_eq!(table.lookup(address), oracle(&entries, address));
            }
        }

        #[test]
        fn lookups_agree_with_the_definition_v6(
            prefixes in prop::collection::vec((any::<u128>(), 0_u8..=128, 0_u32..128), 0..40),
            probes in prop::collection::vec((any::<prop::sample::Index>(), any::<u128>(), 0_u32..=128), 40),
        ) {
            let entries: Vec<LpmEntry<u128>> = (1..)
                .zip(&prefixes)
                .map(|(value, (address, length, keep))| {
                    let common = u128::MAX << (127 - keep) << 1;
                    let address = 0x2001_0db8_u128 << 96 & common | address & !common;
                    (address, *length, value)
                })
                .collect();
            let table = Lpm::new(entries.clone());
            for (near, other, keep) in &probes {
                let base = if entries.is_empty() { 0 } else { near.get(&entries).0 };
                let mask = if *keep == 0 { 0 } else { u128::MAX << (128 - keep) };
                let address = base & mask | other & !mask;
                prop_assert_eq!(table.lookup(address), oracle(&entries, address));
            }
        }
    }
}
