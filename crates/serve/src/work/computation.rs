//! Work as operations that can be counted.

mod chase;
mod random;
mod roots;
mod stream;
mod strided;

use rheostat_base::sync::load_fence::wait_for_loads;

use super::kind::WorkKind;

/// Bytes of a cache line.
const LINE: usize = 64;

/// What a worker computes: it goes on where it stopped.
#[derive(Debug)]
pub struct Computation {
    kind: WorkKind,
    memory: Vec<u8>,
    /// Where the next operation starts: a place in memory, the state of a generator, or the next number.
    at: u64,
}

impl Computation {
    /// Work of a kind, on a buffer of so many bytes if it reads memory. Writes all of it.
    pub fn new(kind: WorkKind, buffer: usize, seed: u64) -> Computation {
        let memory = match kind {
            WorkKind::Null | WorkKind::Roots => Vec::new(),
            WorkKind::Chase => chase::cycle(buffer.max(LINE), seed),
            // Written, so that every page is there and is not the one page of zeros.
            _ => (0..buffer.max(LINE)).map(|at| at as u8 | 1).collect(),
        };
        // A generator of random numbers never gets away from zero.
        let at = if kind == WorkKind::Random { seed.max(1) } else { 0 };
        Computation { kind, memory, at }
    }

    /// Bytes of the buffer.
    pub fn buffer(&self) -> usize {
        self.memory.len()
    }

    /// Does so many operations, and waits for what they read.
    pub fn run(&mut self, operations: u64) {
        self.at = match self.kind {
            WorkKind::Null => 0,
            WorkKind::Roots => roots::run(self.at, operations),
            WorkKind::Strided => strided::run(&self.memory, self.at, operations),
            WorkKind::Random => random::run(&self.memory, self.at, operations),
            WorkKind::Stream => stream::run(&self.memory, self.at, operations),
            WorkKind::Chase => chase::run(&self.memory, self.at, operations),
        };
        wait_for_loads();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_go_on_where_they_stopped() {
        for kind in ["null", "roots", "strided", "random", "stream", "chase"] {
            let kind: WorkKind = kind.parse().unwrap();
            let mut whole = Computation::new(kind, 4_096, 3);
            let mut parts = Computation::new(kind, 4_096, 3);
            whole.run(1_000);
            for _ in 0..10 {
                parts.run(100);
            }
            assert_eq!(whole.at, parts.at, "{kind}");
            assert_eq!(whole.buffer(), if kind.reads_memory() { 4_096 } else { 0 });
        }
    }

    #[test]
    fn a_buffer_smaller_than_a_line_is_a_line() {
        for kind in [WorkKind::Strided, WorkKind::Random, WorkKind::Stream, WorkKind::Chase] {
            let mut computation = Computation::new(kind, 0, 0);
            computation.run(100);
            assert_eq!(computation.buffer(), LINE);
        }
    }
}
