//! A line of the index: eight tags, compared at once, and the entries they stand for.

/// Keys a bucket has room for.
pub(super) const WAYS: usize = 8;

/// The bit above an entry's number that marks a detached flow: nothing is read of its entry.
pub(super) const DETACHED: u32 = 1 << 31;

/// One cache line of the index. All zero is an empty bucket.
#[repr(C, align(64))]
pub(super) struct Bucket {
    tags: [u16; WAYS],
    entries: [u32; WAYS],
    /// How many keys whose home is this bucket stand in their other one: a lookup goes on only then.
    pub(super) overflow: u32,
    /// One bit per way that holds a key.
    used: u8,
    /// One bit per way whose key has its home elsewhere.
    away: u8,
    spare: [u8; 10],
}

const _: () = assert!(size_of::<Bucket>() == 64);

/// The ways of a bucket that a search found, lowest first.
#[derive(Clone, Copy)]
pub(super) struct Ways(u32);

impl Iterator for Ways {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        let way = (self.0 != 0).then(|| self.0.trailing_zeros() as usize)?;
        self.0 &= self.0 - 1;
        Some(way)
    }
}

impl Bucket {
    /// The ways whose key has this tag.
    #[inline]
    pub(super) fn with_tag(&self, tag: u16) -> Ways {
        Ways(equal_tags(&self.tags, tag) & u32::from(self.used))
    }

    /// A way without a key.
    #[inline]
    pub(super) fn vacancy(&self) -> Option<usize> {
        Ways(u32::from(!self.used)).next()
    }

    /// The entry in `way`.
    #[inline]
    pub(super) fn entry(&self, way: usize) -> u32 {
        self.entries[way] & !DETACHED
    }

    /// What stands in `way` beside the tag: the entry and its mark.
    #[inline]
    pub(super) fn marked_entry(&self, way: usize) -> u32 {
        self.entries[way]
    }

    /// Marks the entry in `way` as detached, or as one that is not.
    pub(super) fn set_detached(&mut self, way: usize, detached: bool) {
        self.entries[way] = self.entry(way) | if detached { DETACHED } else { 0 };
    }

    /// The tag in `way`.
    pub(super) fn tag(&self, way: usize) -> u16 {
        self.tags[way]
    }

    /// Whether the key in `way` has its home elsewhere.
    pub(super) fn is_away(&self, way: usize) -> bool {
        self.away & 1 << way != 0
    }

    /// Fills the vacant `way`.
    #[inline]
    pub(super) fn fill(&mut self, way: usize, tag: u16, entry: u32, away: bool) {
        self.tags[way] = tag;
        self.entries[way] = entry;
        self.used |= 1 << way;
        self.away |= u8::from(away) << way;
    }

    /// Vacates `way`.
    #[inline]
    pub(super) fn vacate(&mut self, way: usize) {
        self.used &= !(1 << way);
        self.away &= !(1 << way);
    }
}

/// One bit per tag that equals `tag`.
#[cfg(target_arch = "x86_64")]
#[inline]
fn equal_tags(tags: &[u16; WAYS], tag: u16) -> u32 {
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi16, _mm_loadu_si128, _mm_movemask_epi8, _mm_packs_epi16,
        _mm_set1_epi16, _mm_setzero_si128,
    };
    // SAFETY: SSE2 is part of x86-64, the tags are 16 bytes, and the load needs no alignment.
    unsafe {
        let tags = _mm_loadu_si128(tags.as_ptr().cast::<__m128i>());
        let equal = _mm_cmpeq_epi16(tags, _mm_set1_epi16(tag as i16));
        _mm_movemask_epi8(_mm_packs_epi16(equal, _mm_setzero_si128())) as u32
    }
}

/// One bit per tag that equals `tag`.
#[cfg(any(test, not(target_arch = "x86_64")))]
#[inline]
fn equal_tags_portable(tags: &[u16; WAYS], tag: u16) -> u32 {
    tags.iter().enumerate().fold(0, |mask, (way, &other)| mask | u32::from(other == tag) << way)
}

#[cfg(not(target_arch = "x86_64"))]
use equal_tags_portable as equal_tags;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 16 } else { 256 }))]

        #[test]
        fn tags_compare_alike_with_and_without_simd(
            tags in prop::array::uniform8(prop::sample::select(vec![0, 1, 2, 0x7fff, 0x8000, 0xffff])),
            tag in prop::sample::select(vec![0, 1, 2, 0x7fff, 0x8000, 0xffff_u16]),
        ) {
            prop_assert_eq!(equal_tags(&tags, tag), equal_tags_portable(&tags, tag));
        }
    }

    #[test]
    fn a_tag_of_zero_is_not_found_in_an_empty_bucket() {
        // SAFETY: all zero is an empty bucket.
        let mut bucket: Bucket = unsafe { std::mem::zeroed() };
        assert_eq!(bucket.with_tag(0).next(), None);
        bucket.fill(7, 0, 5, true);
        assert_eq!(bucket.with_tag(0).next(), Some(7));
        bucket.vacate(7);
        assert_eq!(bucket.with_tag(0).next(), None);
    }
}
