//! Sets of devices.

use rheostat_base::DeviceId;

/// Devices of a run, of which the first 32 can be in a set: few enough that a verdict with a set in it fits a
/// register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceSet(u32);

impl DeviceSet {
    /// As many devices as can be in a set.
    pub const MOST: usize = 32;
    /// No device.
    pub const EMPTY: DeviceSet = DeviceSet(0);

    /// The first `count` devices of a run.
    ///
    /// # Panics
    /// With more than [`DeviceSet::MOST`].
    pub const fn first(count: usize) -> DeviceSet {
        assert!(count <= DeviceSet::MOST, "a set has room for 32 devices");
        DeviceSet(((1_u64 << count) - 1) as u32)
    }

    /// The set with `device`, too.
    ///
    /// # Panics
    /// When the device is not one of the first [`DeviceSet::MOST`].
    #[must_use]
    pub const fn with(self, device: DeviceId) -> DeviceSet {
        assert!((device.0 as usize) < DeviceSet::MOST, "a set has room for 32 devices");
        DeviceSet(self.0 | 1 << device.0)
    }

    /// The set without `device`.
    #[must_use]
    pub const fn without(self, device: DeviceId) -> DeviceSet {
        if self.contains(device) { DeviceSet(self.0 ^ 1 << device.0) } else { self }
    }

    /// Whether `device` is in the set.
    pub const fn contains(self, device: DeviceId) -> bool {
        (device.0 as usize) < DeviceSet::MOST && self.0 >> device.0 & 1 == 1
    }

    /// How many devices are in the set.
    #[expect(clippy::len_without_is_empty, reason = "`DeviceSet::EMPTY` says it better")]
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// The devices in the order of their numbers.
    pub fn iter(self) -> impl Iterator<Item = DeviceId> {
        (0..DeviceSet::MOST as u8).map(DeviceId).filter(move |device| self.contains(*device))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_come_and_go_to_the_last() {
        let last = DeviceId(31);
        let all = DeviceSet::first(DeviceSet::MOST);
        assert_eq!((all.len(), all.iter().last()), (32, Some(last)));
        assert_eq!(all.without(last), DeviceSet::first(31));
        assert_eq!(DeviceSet::first(31).with(last), all);
        assert!(!all.contains(DeviceId(32)) && !DeviceSet::EMPTY.contains(DeviceId(0)));
        assert_eq!(DeviceSet::first(0), DeviceSet::EMPTY);
        let some = DeviceSet::EMPTY.with(DeviceId(3)).with(DeviceId(1));
        assert!(some.iter().eq([DeviceId(1), DeviceId(3)]));
        assert_eq!(some.without(DeviceId(200)), some);
    }
}
