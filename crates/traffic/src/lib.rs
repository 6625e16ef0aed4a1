//! Seeded flow and packet generators.
