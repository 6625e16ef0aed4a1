//! The end of a visit of shards.

use std::ops::{Deref, DerefMut};

use super::ShardSet;

/// Shards of a lane while its service works on them. Whatever ends the work, a panic too, the joint ones that are here are left.
pub(crate) struct Visit<'a>(pub(crate) &'a mut ShardSet);

impl Deref for Visit<'_> {
    type Target = ShardSet;

    fn deref(&self) -> &ShardSet {
        self.0
    }
}

impl DerefMut for Visit<'_> {
    fn deref_mut(&mut self) -> &mut ShardSet {
        self.0
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}
