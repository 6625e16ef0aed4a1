//! Connections against each other, and against another implementation.
