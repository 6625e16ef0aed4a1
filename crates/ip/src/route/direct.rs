//! Longest prefix match for IPv4 by places: the first 12 bits of an address are the place of a page, the next 12 bits that of
//! an entry in it, and where prefixes of more than 24 bits lie, the last 8 bits that of a value in a block (after DIR-24-8:
//! Gupta, Lin and McKeown, "Routing Lookups in Hardware at Memory Access Speeds", INFOCOM 1998, whose first table is cut
//! into pages here). One look takes two loads, three below 24 bits, without a loop and without counting bits.
//!
//! Memory: 64 KiB, 16 KiB for each twelve bits in which there are longer prefixes, half a KiB for each 24 bits in which there
//! are longer ones, and 8 bytes for each prefix of more than 12 bits, by which pages are known again. So a few routes take
//! less than 200 KiB, and a full table of the internet, of a million prefixes of 24 bits at most, about 70 MiB.
//!
//! Tables do not change: other routes make another table, which shares the pages that they leave as they are with the one before.

use std::sync::Arc;

use super::lpm::{Level, LpmEntry};

/// Bits of the place of a page, and of that of an entry in it.
const STRIDE: u32 = 12;
/// Pages, and entries of one.
const PLACES: usize = 1 << STRIDE;
/// Bits of the place of a value in a block.
const BLOCK_STRIDE: u32 = 8;
/// Values of a block.
const BLOCK: usize = 1 << BLOCK_STRIDE;
/// Marks an entry that is the number of a block and not a value.
const IS_BLOCK: u32 = 1 << 31;

/// Values by prefixes of addresses of IPv4.
#[derive(Clone, Debug)]
pub struct DirectTable {
    pages: Box<[DirectSlot; PLACES]>,
}

/// What is at a place of the first table.
#[derive(Clone, Debug)]
enum DirectSlot {
    /// All addresses have this value.
    Value(u16),
    /// They differ.
    Page(Arc<Page>),
}

/// The addresses that share their first 12 bits.
#[derive(Debug)]
struct Page {
    entries: [u32; PLACES],
    blocks: Vec<[u16; BLOCK]>,
    /// What it was made of, to know whether other routes make another one.
    prefixes: Box<[LpmEntry<u32>]>,
    default: u16,
}

impl DirectTable {
    /// The table of these prefixes, as [`Lpm::new`](super::Lpm::new) has it. Pages that are the same are shared with `before`.
    ///
    /// # Panics
    /// When a length is more than 32.
    pub fn new(mut prefixes: Vec<(u32, u8, u16)>, before: Option<&DirectTable>) -> DirectTable {
        super::lpm::order(&mut prefixes);
        let level = Level::split(&prefixes, 0, STRIDE, 0);
        let mut pages: Vec<DirectSlot> =
            level.values.iter().map(|value| DirectSlot::Value(*value)).collect();
        for (place, within) in level.children {
            let default = level.values[place];
            let known = before.and_then(|before| match &before.pages[place] {
                DirectSlot::Page(page) if page.is_of(within, default) => Some(page.clone()),
                _ => None,
            });
            pages[place] =
                DirectSlot::Page(known.unwrap_or_else(|| Arc::new(Page::new(within, default))));
        }
        match pages.into_boxed_slice().try_into() {
            Ok(pages) => DirectTable { pages },
            Err(_) => unreachable!("a level has as many places as its bits say"),
        }
    }

    /// The value of the longest prefix that contains the address; 0 without one.
    #[inline(always)]
    pub fn lookup(&self, address: u32) -> u16 {
        match &self.pages[(address >> 20) as usize] {
            DirectSlot::Value(value) => *value,
            DirectSlot::Page(page) => page.lookup(address),
        }
    }

    /// Bytes of memory that the table takes, with what it shares with others.
    pub fn memory(&self) -> usize {
        let pages = self.pages.iter().map(|slot| match slot {
            DirectSlot::Value(_) => 0,
            DirectSlot::Page(page) => {
                size_of::<Page>()
                    + page.blocks.len() * size_of::<[u16; BLOCK]>()
                    + size_of_val(&*page.prefixes)
            }
        });
        size_of_val(&*self.pages) + pages.sum::<usize>()
    }

    /// How many of its pages are those of `other`.
    #[cfg(test)]
    fn shared_with(&self, other: &DirectTable) -> usize {
        let same = |(a, b): &(&DirectSlot, &DirectSlot)| matches!((a, b), (DirectSlot::Page(a), DirectSlot::Page(b)) if Arc::ptr_eq(a, b));
        self.pages.iter().zip(other.pages.iter()).filter(same).count()
    }
}

impl Page {
    /// The page of `prefixes`, which are longer than 12 bits and share so many. `default` is the value of what none of them
    /// contains.
    fn new(prefixes: &[LpmEntry<u32>], default: u16) -> Page {
        let level = Level::split(prefixes, STRIDE, STRIDE, default);
        let mut entries = [0; PLACES];
        for (entry, value) in entries.iter_mut().zip(&level.values) {
            *entry = u32::from(*value);
        }
        let mut blocks = Vec::with_capacity(level.children.len());
        for (place, within) in level.children {
            let values = Level::split(within, 2 * STRIDE, BLOCK_STRIDE, level.values[place]).values;
            entries[place] = IS_BLOCK | blocks.len() as u32;
            blocks.push(std::array::from_fn(|at| values[at]));
        }
        Page { entries, blocks, prefixes: prefixes.into(), default }
    }

    fn is_of(&self, prefixes: &[LpmEntry<u32>], default: u16) -> bool {
        *self.prefixes == *prefixes && self.default == default
    }

    #[inline(always)]
    fn lookup(&self, address: u32) -> u16 {
        let entry = self.entries[(address >> BLOCK_STRIDE) as usize % PLACES];
        if entry & IS_BLOCK == 0 {
            return entry as u16;
        }
        self.blocks[(entry & !IS_BLOCK) as usize][address as usize % BLOCK]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::lpm::tests::oracle;
    use super::*;

    fn prefix() -> impl Strategy<Value = (u32, u8, u16)> {
        // A few share their first bits, so that prefixes lie in one another, and in the same page.
        let near = any::<u32>().prop_map(|address| address & 0x0000_ffff | 0x0a01_0000);
        let address = prop_oneof![any::<u32>(), near.clone(), near];
        (address, 0_u8..=32, 1_u16..500)
    }

    /// Addresses near those of prefixes, where it matters.
    fn addresses(prefixes: &[(u32, u8, u16)]) -> Vec<u32> {
        let mut all = vec![0, u32::MAX, 0x0a01_0203];
        for (address, length, _) in prefixes {
            let host_bits = u32::MAX.checked_shr((*length).into()).unwrap_or(0);
            let (first, last) = (address & !host_bits, address | host_bits);
            all.extend([*address, first, last, first.wrapping_sub(1), last.wrapping_add(1)]);
        }
        all
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 200 }))]

        #[test]
        fn lookups_agree_with_the_definition(prefixes in prop::collection::vec(prefix(), 0..60)) {
            let table = DirectTable::new(prefixes.clone(), None);
            for address in addresses(&prefixes) {
                prop_assert_eq!(table.lookup(address), oracle(&prefixes, address), "{:08x}", address);
            }
        }

        /// Whatever was shared, the table is that of the routes that it was made for.
        #[test]
        fn a_table_after_another_is_that_of_its_own_routes(
            mut prefixes in prop::collection::vec(prefix(), 1..40),
            taken in any::<prop::sample::Index>(),
            given in prop::collection::vec(prefix(), 0..3),
        ) {
            let before = DirectTable::new(prefixes.clone(), None);
            let mut asked = addresses(&prefixes);
            prefixes.remove(taken.index(prefixes.len()));
            prefixes.extend(given);
            asked.extend(addresses(&prefixes));
            let after = DirectTable::new(prefixes.clone(), Some(&before));
            for address in asked {
                prop_assert_eq!(after.lookup(address), oracle(&prefixes, address), "{:08x}", address);
            }
        }
    }

    #[test]
    fn prefixes_of_more_than_24_bits_lie_within_one_another() {
        let net = 0x0a01_0200;
        let prefixes = vec![
            (net, 24, 1),
            (net, 25, 2),
            (net | 64, 26, 3),
            (net | 64, 28, 4),
            (net | 70, 32, 5),
            (net | 255, 32, 6),
            // A block beside it.
            (net + 256, 27, 7),
        ];
        let table = DirectTable::new(prefixes, None);
        let values: Vec<u16> = (net..net + 512).map(|address| table.lookup(address)).collect();
        let runs: Vec<_> = values.chunk_by(|a, b| a == b).map(|run| (run.len(), run[0])).collect();
        let first = [(64, 2), (6, 4), (1, 5), (9, 4), (48, 3), (127, 1), (1, 6)];
        assert_eq!(runs, [&first[..], &[(32, 7), (224, 0)]].concat());
    }

    #[test]
    fn a_route_more_makes_one_page_anew() {
        let mut prefixes: Vec<_> = (0..64_u32).map(|n| (n << 20 | 1 << 10, 24, 7)).collect();
        let before = DirectTable::new(prefixes.clone(), None);
        prefixes.push((5 << 20 | 3 << 8, 26, 9));
        let after = DirectTable::new(prefixes.clone(), Some(&before));
        assert_eq!(after.shared_with(&before), 63);
        assert_eq!([before.lookup(5 << 20 | 3 << 8), after.lookup(5 << 20 | 3 << 8)], [0, 9]);
        // One that contains pages changes those that it is the default of.
        prefixes.push((0, 10, 3));
        let wide = DirectTable::new(prefixes, Some(&after));
        assert_eq!(wide.shared_with(&after), 60);
        assert_eq!(wide.lookup(2 << 20), 3);
    }

    #[test]
    fn the_memory_is_what_is_stated() {
        let few = DirectTable::new(vec![(0x0a00_0000, 8, 1), (0xc612_0000, 15, 2)], None);
        assert!(few.memory() < 100 << 10, "{}", few.memory());
        // A value everywhere needs no page.
        assert_eq!(DirectTable::new(vec![(0, 0, 1)], None).memory(), 64 << 10);
        let hosts = (0..256_u32).map(|n| (0x0a00_0000 | n << 8 | 1, 32, 1)).collect();
        let hosts = DirectTable::new(hosts, None);
        assert!(hosts.memory() > (64 + 16 + 128) << 10 && hosts.memory() < 220 << 10);
        // By a longer prefix more, a page has its 8 bytes more.
        let more = |prefixes: u32| {
            let prefixes = (0..prefixes).map(|n| (0x0a00_0000 | n << 8, 24, 1)).collect();
            DirectTable::new(prefixes, None).memory()
        };
        assert_eq!(more(100) - more(99), 8);
    }
}
