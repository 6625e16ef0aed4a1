//! Bytes that lie 63 apart: one less than a cache line, so that 63 of 64 reads touch another line than the one before.

use std::hint::black_box;

const STRIDE: u64 = 63;

/// Reads `operations` bytes from `at` on, round the buffer, and returns where it stopped.
pub(super) fn run(memory: &[u8], mut at: u64, operations: u64) -> u64 {
    let len = memory.len() as u64;
    for _ in 0..operations {
        black_box(memory[at as usize]);
        at += STRIDE;
        if at >= len {
            at -= len;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    #[test]
    fn sixty_three_of_sixty_four_reads_touch_another_line() {
        let memory = vec![0; 1 << 16];
        let (mut at, mut same) = (0, 0);
        for _ in 0..6_400 {
            let next = super::run(&memory, at, 1);
            same += usize::from(at / 64 == next / 64);
            at = next;
        }
        assert!((95..=105).contains(&same), "{same} of 6400");
    }
}
