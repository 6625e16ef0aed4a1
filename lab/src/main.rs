//! The command `rheo-lab`.

use std::alloc::System;
use std::process::ExitCode;

use rheostat_measure::allocation;
use stats_alloc::StatsAlloc;

/// Counts allocations, so that its rows can show that a packet or a request costs none.
#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = allocation::COUNTING;

fn main() -> ExitCode {
    rheostat_lab::main()
}
