//! Words in order, which the processor fetches ahead.

use std::hint::black_box;

const WORD: usize = 8;

/// Reads `operations` words from `at` on, round the buffer, and returns where it stopped.
pub(super) fn run(memory: &[u8], at: u64, operations: u64) -> u64 {
    let end = memory.len() / WORD * WORD;
    let mut at = at as usize;
    for _ in 0..operations {
        let word = &memory[at..at + WORD];
        black_box(word.iter().fold(0_u64, |value, byte| value << 8 | u64::from(*byte)));
        at += WORD;
        if at == end {
            at = 0;
        }
    }
    at as u64
}
