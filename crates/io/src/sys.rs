//! What only the operating system can do, and no safe wrapper offers.

pub(crate) mod membarrier;
