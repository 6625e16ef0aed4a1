//! Network functions and chains of them.
