//! Toeplitz hashing, packet sets and indirection tables.
