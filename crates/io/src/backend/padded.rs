//! A value on cache lines of its own.

/// Keeps a value on two cache lines of its own, since the adjacent-line prefetcher pairs them.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Padded<T>(pub(super) T);
