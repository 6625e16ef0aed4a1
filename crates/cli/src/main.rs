//! The command `rheo`.

use std::alloc::System;
use std::process::ExitCode;

use rheostat_measure::allocation;
use stats_alloc::StatsAlloc;

/// Counts allocations, so that `rheo bench nf` can show that a packet costs none.
#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = allocation::COUNTING;

fn main() -> ExitCode {
    rheostat_app::main()
}
