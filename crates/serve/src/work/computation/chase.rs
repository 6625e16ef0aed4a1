//! Cache lines that name each other in a random order: a read waits for the one before.

use super::LINE;

/// A buffer of lines, each of which begins with the number of the next, in one cycle through all.
pub(super) fn cycle(bytes: usize, seed: u64) -> Vec<u8> {
    let lines = (bytes / LINE).max(1);
    let mut next: Vec<u32> = (0..lines as u32).collect();
    let mut state = seed ^ 0x9e37_79b9_7f4a_7c15;
    // Sattolo's algorithm: a permutation with one cycle.
    for last in (1..lines).rev() {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        next.swap(last, (((state >> 33) * last as u64) >> 31) as usize);
    }
    let mut memory = vec![0; bytes];
    for (line, next) in memory.chunks_exact_mut(LINE).zip(&next) {
        line[..4].copy_from_slice(&next.to_le_bytes());
    }
    memory
}

/// Follows `operations` lines from line `at` on, and returns the last.
pub(super) fn run(memory: &[u8], at: u64, operations: u64) -> u64 {
    let mut line = at as usize;
    for _ in 0..operations {
        let place = line * LINE;
        let mut number = [0; 4];
        number.copy_from_slice(&memory[place..place + 4]);
        line = u32::from_le_bytes(number) as usize;
    }
    std::hint::black_box(line) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read_once_in_a_cycle() {
        for lines in [1, 2, 3, 64, 1_000] {
            let memory = cycle(lines * LINE, 7);
            let mut seen = vec![false; lines];
            let mut at = 0;
            for _ in 0..lines {
                at = run(&memory, at, 1);
                assert!(!std::mem::replace(&mut seen[at as usize], true), "{lines} lines");
            }
            assert_eq!(at, 0, "{lines} lines");
        }
    }

    #[test]
    fn neighbours_seldom_follow_each_other() {
        let memory = cycle(10_000 * LINE, 1);
        let follows = (0..10_000).filter(|line| run(&memory, *line, 1) == line + 1).count();
        assert!(follows < 10, "{follows}");
    }
}
