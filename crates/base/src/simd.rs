//! Thirty-two words that are compared at once: with AVX2 or SSE2 on x86-64, and one by one elsewhere.
#![allow(unsafe_code)]

/// Words in a [`Column`].
pub const COLUMN: usize = 32;

/// Thirty-two words of 32 bits. What is asked of all of them is answered with a bit each: the first word's is the lowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Column([u32; COLUMN]);

impl Column {
    /// All words zero.
    pub const ZERO: Column = Column([0; COLUMN]);

    /// These words.
    pub const fn new(words: [u32; COLUMN]) -> Column {
        Column(words)
    }

    /// Which words have these `bits` under `mask`.
    #[inline]
    pub fn equal(&self, mask: u32, bits: u32) -> u32 {
        self.either_equal(self, mask, bits)
    }

    /// In which places this column or `other` has these `bits` under `mask`.
    #[inline]
    pub fn either_equal(&self, other: &Column, mask: u32, bits: u32) -> u32 {
        kernel::either_equal(&self.0, &other.0, mask, bits)
    }

    /// Of which words the lower or the upper half is `low` or one of the `span` numbers that follow it.
    #[inline]
    pub fn half_within(&self, low: u16, span: u16) -> u32 {
        kernel::half_within(&self.0, low, span)
    }
}

/// Writes the four words of four rows to the places from `4 * group` on in four columns: the lower half of a row's first number
/// goes to the first column, its upper half to the second, and so on.
///
/// # Panics
/// When columns have no such group: there are eight.
#[inline]
pub fn set_rows(columns: &mut [Column; 4], group: usize, rows: [[u64; 2]; 4]) {
    let [a, b, c, d] = kernel::transpose(rows);
    let [first, second, third, fourth] = columns;
    for (column, words) in [(first, a), (second, b), (third, c), (fourth, d)] {
        column.0.as_chunks_mut::<4>().0[group] = words;
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m128i, __m256i, _mm_and_si128, _mm_cmpeq_epi16, _mm_cmpeq_epi32, _mm_loadu_si128,
        _mm_movemask_epi8, _mm_or_si128, _mm_packs_epi16, _mm_packs_epi32, _mm_set1_epi16,
        _mm_set1_epi32, _mm_setzero_si128, _mm_storeu_si128, _mm_sub_epi16, _mm_subs_epu16,
        _mm_unpackhi_epi32, _mm_unpackhi_epi64, _mm_unpacklo_epi32, _mm_unpacklo_epi64,
        _mm256_and_si256, _mm256_castsi256_ps, _mm256_cmpeq_epi16, _mm256_cmpeq_epi32,
        _mm256_loadu_si256, _mm256_movemask_ps, _mm256_or_si256, _mm256_set1_epi16,
        _mm256_set1_epi32, _mm256_setzero_si256, _mm256_sub_epi16, _mm256_subs_epu16,
    };

    use super::COLUMN;

    #[inline]
    pub(super) fn either_equal(
        words: &[u32; COLUMN],
        others: &[u32; COLUMN],
        mask: u32,
        expected: u32,
    ) -> u32 {
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2.
            unsafe { either_equal_avx2(words, others, mask, expected) }
        } else {
            either_equal_sse2(words, others, mask, expected)
        }
    }

    #[inline]
    pub(super) fn half_within(words: &[u32; COLUMN], low: u16, span: u16) -> u32 {
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2.
            unsafe { half_within_avx2(words, low, span) }
        } else {
            half_within_sse2(words, low, span)
        }
    }

    /// Eight words from `8 * group` on.
    #[target_feature(enable = "avx2")]
    fn load_eight(words: &[u32; COLUMN], group: usize) -> __m256i {
        let group = &words.as_chunks::<8>().0[group];
        // SAFETY: the group is 32 bytes, and the load needs no alignment.
        unsafe { _mm256_loadu_si256(group.as_ptr().cast::<__m256i>()) }
    }

    /// A bit for each word of four groups, each of which has no or all bits set.
    #[target_feature(enable = "avx2")]
    fn bits_of_eights(groups: [__m256i; 4]) -> u32 {
        let [a, b, c, d] =
            groups.map(|group| _mm256_movemask_ps(_mm256_castsi256_ps(group)) as u32);
        a | b << 8 | c << 16 | d << 24
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn either_equal_avx2(
        words: &[u32; COLUMN],
        others: &[u32; COLUMN],
        mask: u32,
        expected: u32,
    ) -> u32 {
        let (mask, expected) = (_mm256_set1_epi32(mask as i32), _mm256_set1_epi32(expected as i32));
        bits_of_eights([0, 1, 2, 3].map(|group| {
            let first = _mm256_and_si256(load_eight(words, group), mask);
            let second = _mm256_and_si256(load_eight(others, group), mask);
            let first = _mm256_cmpeq_epi32(first, expected);
            _mm256_or_si256(first, _mm256_cmpeq_epi32(second, expected))
        }))
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn half_within_avx2(words: &[u32; COLUMN], low: u16, span: u16) -> u32 {
        let (low, span) = (_mm256_set1_epi16(low as i16), _mm256_set1_epi16(span as i16));
        let zero = _mm256_setzero_si256();
        !bits_of_eights([0, 1, 2, 3].map(|group| {
            let beyond = _mm256_subs_epu16(_mm256_sub_epi16(load_eight(words, group), low), span);
            let within = _mm256_cmpeq_epi16(beyond, zero);
            _mm256_cmpeq_epi32(within, zero)
        }))
    }

    /// Four words from `4 * group` on.
    #[inline(always)]
    fn load(words: &[u32; COLUMN], group: usize) -> __m128i {
        let group = &words.as_chunks::<4>().0[group];
        // SAFETY: SSE2 is part of x86-64, the group is 16 bytes, and the load needs no alignment.
        unsafe { _mm_loadu_si128(group.as_ptr().cast::<__m128i>()) }
    }

    /// A bit for each word of eight groups, each of which has no or all bits set.
    #[inline(always)]
    fn bits(group: impl Fn(usize) -> __m128i) -> u32 {
        let half = |from: usize| {
            let groups = [0, 1, 2, 3].map(|next| group(from + next));
            // SAFETY: SSE2 is part of x86-64. Saturation leaves no and all bits what they are.
            unsafe {
                let low = _mm_packs_epi32(groups[0], groups[1]);
                let high = _mm_packs_epi32(groups[2], groups[3]);
                _mm_movemask_epi8(_mm_packs_epi16(low, high)) as u32
            }
        };
        half(0) | half(4) << 16
    }

    #[inline(never)]
    pub(super) fn either_equal_sse2(
        words: &[u32; COLUMN],
        others: &[u32; COLUMN],
        mask: u32,
        expected: u32,
    ) -> u32 {
        // SAFETY: SSE2 is part of x86-64.
        let (mask, expected) =
            unsafe { (_mm_set1_epi32(mask as i32), _mm_set1_epi32(expected as i32)) };
        bits(|group| {
            // SAFETY: SSE2 is part of x86-64.
            unsafe {
                let first = _mm_cmpeq_epi32(_mm_and_si128(load(words, group), mask), expected);
                let second = _mm_cmpeq_epi32(_mm_and_si128(load(others, group), mask), expected);
                _mm_or_si128(first, second)
            }
        })
    }

    #[inline(never)]
    pub(super) fn half_within_sse2(words: &[u32; COLUMN], low: u16, span: u16) -> u32 {
        // SAFETY: SSE2 is part of x86-64.
        let (low, span, zero) = unsafe {
            (_mm_set1_epi16(low as i16), _mm_set1_epi16(span as i16), _mm_setzero_si128())
        };
        let neither = bits(|group| {
            // SAFETY: SSE2 is part of x86-64.
            unsafe {
                let beyond = _mm_subs_epu16(_mm_sub_epi16(load(words, group), low), span);
                let within = _mm_cmpeq_epi16(beyond, zero);
                _mm_cmpeq_epi32(within, zero)
            }
        });
        !neither
    }

    #[inline(always)]
    pub(super) fn transpose(rows: [[u64; 2]; 4]) -> [[u32; 4]; 4] {
        let mut columns = [[0; 4]; 4];
        // SAFETY: SSE2 is part of x86-64. Each row and each column is 16 bytes, and neither loads nor stores need alignment.
        unsafe {
            let [a, b, c, d] = rows.map(|row| _mm_loadu_si128(row.as_ptr().cast::<__m128i>()));
            let (low, high) = (_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b));
            let (lower, upper) = (_mm_unpacklo_epi32(c, d), _mm_unpackhi_epi32(c, d));
            let found = [
                _mm_unpacklo_epi64(low, lower),
                _mm_unpackhi_epi64(low, lower),
                _mm_unpacklo_epi64(high, upper),
                _mm_unpackhi_epi64(high, upper),
            ];
            for (column, words) in columns.iter_mut().zip(found) {
                _mm_storeu_si128(column.as_mut_ptr().cast::<__m128i>(), words);
            }
        }
        columns
    }
}

#[cfg(any(test, not(target_arch = "x86_64")))]
mod portable {
    use super::COLUMN;

    fn bits(holds: impl Fn(usize) -> bool) -> u32 {
        (0..COLUMN).fold(0, |bits, place| bits | u32::from(holds(place)) << place)
    }

    pub(super) fn either_equal(
        words: &[u32; COLUMN],
        others: &[u32; COLUMN],
        mask: u32,
        expected: u32,
    ) -> u32 {
        bits(|place| [words, others].iter().any(|words| words[place] & mask == expected))
    }

    pub(super) fn half_within(words: &[u32; COLUMN], low: u16, span: u16) -> u32 {
        let within = |half: u16| half.wrapping_sub(low) <= span;
        bits(|place| within(words[place] as u16) || within((words[place] >> 16) as u16))
    }

    pub(super) fn transpose(rows: [[u64; 2]; 4]) -> [[u32; 4]; 4] {
        let word = |row: [u64; 2], column: usize| (row[column / 2] >> (column % 2 * 32)) as u32;
        std::array::from_fn(|column| rows.map(|row| word(row, column)))
    }
}

#[cfg(not(target_arch = "x86_64"))]
use portable as kernel;
#[cfg(target_arch = "x86_64")]
use x86 as kernel;

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that collide often, with both ends of the range of each half.
    fn words(state: &mut u64) -> [u32; COLUMN] {
        std::array::from_fn(|_| {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let halves = [0, 1, 2, 3, 0x7fff, 0x8000, 0x8001, 0xffff_u32];
            halves[(*state >> 33) as usize % 8] | halves[(*state >> 43) as usize % 8] << 16
        })
    }

    #[test]
    fn comparisons_are_alike_with_each_instruction_set() {
        let mut state = 3;
        let rounds = if cfg!(miri) { 4 } else { 500 };
        for _ in 0..rounds {
            let (first, second) = (words(&mut state), words(&mut state));
            let [mask, bits, ..] = words(&mut state);
            for bits in [bits, bits & mask] {
                let expected = portable::either_equal(&first, &second, mask, bits);
                let found = Column::new(first).either_equal(&Column::new(second), mask, bits);
                assert_eq!(found, expected);
                let expected = portable::either_equal(&first, &first, mask, bits);
                assert_eq!(Column::new(first).equal(mask, bits), expected);
                #[cfg(target_arch = "x86_64")]
                {
                    assert_eq!(x86::either_equal_sse2(&first, &first, mask, bits), expected);
                }
            }
            for (low, span) in
                [(bits as u16, (mask >> 16) as u16), (0, 0), (0xffff, 0), (0, 0xffff)]
            {
                let expected = portable::half_within(&first, low, span);
                assert_eq!(Column::new(first).half_within(low, span), expected, "{low} {span}");
                #[cfg(target_arch = "x86_64")]
                {
                    assert_eq!(x86::half_within_sse2(&first, low, span), expected);
                }
            }
        }
    }

    #[test]
    fn rows_become_columns_at_their_places() {
        let row = |place: u64| [(place << 32) | (place * 3), ((place * 7) << 32) | (place * 5)];
        let mut columns = [Column::ZERO; 4];
        for group in 0..8 {
            let rows = [0, 1, 2, 3].map(|next| row(4 * group + next));
            assert_eq!(kernel::transpose(rows), portable::transpose(rows));
            set_rows(&mut columns, group as usize, rows);
        }
        for (column, factor) in columns.iter().zip([3, 1, 5, 7]) {
            let words: [u32; COLUMN] = std::array::from_fn(|place| place as u32 * factor);
            assert_eq!(*column, Column::new(words));
        }
    }
}
