//! Payloads.

use crate::checksum::Sum;

/// What a packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload<'a> {
    /// These bytes.
    Bytes(&'a [u8]),
    /// This many bytes of a pattern, for when contents do not matter.
    Pattern(usize),
}

/// The pattern, as often as makes copying worth while.
static PATTERN: [u8; BLOCK] = {
    let mut block = [0; BLOCK];
    let mut at = 0;
    while at < BLOCK {
        block[at] = b"rheo"[at % 4];
        at += 1;
    }
    block
};
const BLOCK: usize = 256;

/// The pattern's two words as a sum.
const PATTERN_SUM: u32 = 0x7268 + 0x656f;

impl Payload<'_> {
    #[inline]
    pub(super) fn len(&self) -> usize {
        match self {
            Payload::Bytes(bytes) => bytes.len(),
            Payload::Pattern(len) => *len,
        }
    }

    /// Whether `bytes` are what [`Payload::Pattern`] writes.
    pub fn is_pattern(bytes: &[u8]) -> bool {
        bytes.chunks(BLOCK).all(|chunk| chunk == &PATTERN[..chunk.len()])
    }

    /// Writes the payload, which fills `out`.
    #[inline]
    pub fn write(&self, out: &mut [u8]) {
        match self {
            Payload::Bytes(bytes) => out.copy_from_slice(bytes),
            Payload::Pattern(_) => {
                for chunk in out.chunks_mut(BLOCK) {
                    chunk.copy_from_slice(&PATTERN[..chunk.len()]);
                }
            }
        }
    }

    /// The payload's sum. That of the pattern is known without reading it.
    #[inline]
    pub(super) fn sum(&self) -> Sum {
        let mut sum = Sum::default();
        match self {
            Payload::Bytes(bytes) => sum.add(bytes),
            Payload::Pattern(len) => {
                let repeated = (len / 4) as u64 * u64::from(PATTERN_SUM);
                sum.add_u32((repeated >> 32) as u32);
                sum.add_u32(repeated as u32);
                sum.add(&PATTERN[..len % 4]);
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum;

    #[test]
    fn the_sum_of_the_pattern_is_that_of_its_bytes() {
        for len in [0, 1, 2, 3, 4, 5, 255, 256, 257, 1_460, 65_535] {
            let mut bytes = vec![0; len];
            Payload::Pattern(len).write(&mut bytes);
            assert!(bytes.iter().zip(b"rheo".iter().cycle()).all(|(a, b)| a == b));
            assert!(Payload::is_pattern(&bytes));
            for change in [1, 0] {
                bytes.iter_mut().last().into_iter().for_each(|last| *last ^= 1);
                assert_eq!(Payload::is_pattern(&bytes), change == 0 || len == 0);
            }
            assert_eq!(Payload::Pattern(len).sum().checksum(), checksum::of(&bytes), "{len}");
        }
    }
}
