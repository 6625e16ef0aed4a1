//! Calls of the allocator, and bytes in use: a packet costs none, which rows show.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

/// The system's allocator, which counts. A program that reports allocations per packet, or checks the memory of functions before a
/// run, has it as its `#[global_allocator]`; without it, counts stay 0.
pub static COUNTING: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Calls of the allocator by this process so far, all threads together.
pub fn count() -> u64 {
    let stats = COUNTING.stats();
    (stats.allocations + stats.reallocations) as u64
}

/// Bytes that are allocated now.
pub fn live_bytes() -> u64 {
    let stats = COUNTING.stats();
    (stats.bytes_allocated as u64).saturating_sub(stats.bytes_deallocated as u64)
}
