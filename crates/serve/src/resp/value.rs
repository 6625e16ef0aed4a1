//! Values as they are stored. Replies share the long ones with the store.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// From this length on, values are shared: a shorter one is copied faster.
const SHARED: usize = 1 << 10;

/// A stored value.
#[derive(Debug)]
pub(super) enum StoredValue {
    Short(Vec<u8>),
    Shared(SharedValue),
}

/// A value that the store and the replies which send it have in common. It does not change: its successor takes its place in the
/// store.
#[derive(Clone, Debug)]
pub(super) struct SharedValue(Arc<ChargedBytes>);

/// Bytes that the store is charged with for as long as they are in memory.
#[derive(Debug)]
struct ChargedBytes {
    bytes: Vec<u8>,
    charged: Arc<AtomicUsize>,
}

impl StoredValue {
    /// Keeps bytes, for which `charged` counts up until the last holder of the value lets go of it.
    pub(super) fn new(bytes: Vec<u8>, charged: &Arc<AtomicUsize>) -> StoredValue {
        charged.fetch_add(bytes.len(), Ordering::Relaxed);
        if bytes.len() < SHARED {
            return StoredValue::Short(bytes);
        }
        let charged = charged.clone();
        StoredValue::Shared(SharedValue(Arc::new(ChargedBytes { bytes, charged })))
    }

    /// The bytes of a value that is taken out of the store: as they are if no reply has them, too, otherwise a copy.
    pub(super) fn into_bytes(self, charged: &AtomicUsize) -> Vec<u8> {
        match self {
            StoredValue::Short(bytes) => {
                charged.fetch_sub(bytes.len(), Ordering::Relaxed);
                bytes
            }
            StoredValue::Shared(SharedValue(mut value)) => match Arc::get_mut(&mut value) {
                Some(ChargedBytes { bytes, .. }) => {
                    charged.fetch_sub(bytes.len(), Ordering::Relaxed);
                    std::mem::take(bytes)
                }
                None => value.bytes.clone(),
            },
        }
    }

    /// Bytes of memory that become free when the store removes the value: none where replies have it, too.
    pub(super) fn removable(&self) -> usize {
        match self {
            StoredValue::Shared(SharedValue(value)) if Arc::strong_count(value) > 1 => 0,
            value => value.len(),
        }
    }

    /// Removes the value from the store.
    pub(super) fn release(self, charged: &AtomicUsize) {
        if let StoredValue::Short(bytes) = self {
            charged.fetch_sub(bytes.len(), Ordering::Relaxed);
        }
    }
}

impl Drop for ChargedBytes {
    fn drop(&mut self) {
        self.charged.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
}

impl Deref for StoredValue {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            StoredValue::Short(bytes) => bytes,
            StoredValue::Shared(value) => value,
        }
    }
}

impl Deref for SharedValue {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0.bytes
    }
}
