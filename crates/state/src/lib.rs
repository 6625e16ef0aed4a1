//! Shards: flow tables, timers and the fragment tracker.
