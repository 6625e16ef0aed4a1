//! Bytes at random. The place of a read does not depend on what was read before it, so that reads overlap.

use std::hint::black_box;

/// Reads `operations` bytes, and returns the state of the generator, which is never zero.
pub(super) fn run(memory: &[u8], mut state: u64, operations: u64) -> u64 {
    let len = memory.len() as u64;
    for _ in 0..operations {
        // Marsaglia's xorshift64; the upper half names the place.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        black_box(memory[(((state >> 32) * len) >> 32) as usize]);
    }
    state
}

#[cfg(test)]
mod tests {
    #[test]
    fn all_parts_of_the_buffer_are_read_alike() {
        let len = 1 << 20;
        let memory = vec![0; len];
        let (mut state, mut parts) = (1, [0_u32; 16]);
        for _ in 0..16_000 {
            state = super::run(&memory, state, 1);
            parts[(((state >> 32) * 16) >> 32) as usize] += 1;
        }
        assert!(parts.iter().all(|count| (850..1_150).contains(count)), "{parts:?}");
    }
}
