//! Benchmark scenarios.
