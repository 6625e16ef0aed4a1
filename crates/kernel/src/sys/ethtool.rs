//! What a driver states about its interface (`linux/ethtool.h`, by `SIOCETHTOOL`): its name, queues, rings,
//! offloads, and the table by which it spreads packets. Reads only.
#![allow(unsafe_code)]

use std::ffi::c_char;
use std::io;

use super::interface::{Interface, Query};
use crate::netlink::text;

const GDRVINFO: u32 = 0x03;
const GRINGPARAM: u32 = 0x10;
const GSTRINGS: u32 = 0x1b;
const GSSET_INFO: u32 = 0x37;
const GFEATURES: u32 = 0x3a;
const GCHANNELS: u32 = 0x3c;
const GRSSH: u32 = 0x46;
/// The names of offloads, among the sets of strings.
const SS_FEATURES: u32 = 4;
/// `ETH_GSTRING_LEN`.
const NAME: usize = 32;
/// More offloads than any kernel has: what is beyond is not read.
const MOST_FEATURES: usize = 256;

/// Receive queues, now and at most; combined ones included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Channels {
    /// Now.
    pub now: u32,
    /// At most.
    pub most: u32,
}

/// Descriptors of each receive ring, now and at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rings {
    /// Now.
    pub now: u32,
    /// At most.
    pub most: u32,
}

/// How the interface spreads packets over its queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spreading {
    /// Entries of the indirection table.
    pub entries: u32,
    /// Bytes of the hash key.
    pub key: u32,
}

/// `struct ethtool_drvinfo`.
#[repr(C)]
struct DriverInfo {
    command: u32,
    driver: [c_char; 32],
    version: [c_char; 32],
    firmware: [c_char; 32],
    bus: [c_char; 32],
    expansion_rom: [c_char; 32],
    reserved: [c_char; 12],
    counts: [u32; 5],
}

/// `struct ethtool_sset_info` with room for one length.
#[repr(C)]
struct SetInfo {
    command: u32,
    reserved: u32,
    mask: u64,
    length: u32,
    padding: u32,
}

/// `struct ethtool_gstrings` with room for the names of offloads.
#[repr(C)]
struct OffloadNames {
    command: u32,
    set: u32,
    count: u32,
    names: [[u8; NAME]; MOST_FEATURES],
}

/// `struct ethtool_gfeatures`, with its blocks of `available`, `requested`, `active`, `never changed`.
#[repr(C)]
struct Features {
    command: u32,
    blocks: u32,
    masks: [[u32; 4]; MOST_FEATURES / 32],
}

// SAFETY: `struct ethtool_drvinfo` is 196 bytes of characters and integers.
unsafe impl Query for DriverInfo {}
const _: () = assert!(size_of::<DriverInfo>() == 196);
// SAFETY: the kernel writes a word for each bit set in `mask`; callers set one.
unsafe impl Query for SetInfo {}
// SAFETY: the kernel writes as many names as `count` states, unless the set has another number, when it
// fails; see `names`, which requests no more than there is room for.
unsafe impl Query for OffloadNames {}
// SAFETY: the kernel writes as many blocks as `blocks` states at most.
unsafe impl Query for Features {}
// SAFETY: `struct ethtool_channels` and `struct ethtool_ringparam` are nine words each.
unsafe impl Query for [u32; 9] {}
// SAFETY: `struct ethtool_rxfh` is seven words before its table, which is not written when both sizes
// given are zero.
unsafe impl Query for [u32; 7] {}

impl Interface {
    /// The driver's name.
    ///
    /// # Errors
    /// When there is no such interface, or its driver does not say. So for all others.
    pub fn driver(&self) -> io::Result<String> {
        // SAFETY: a structure of integers, for which zero is a value.
        let mut info: DriverInfo = unsafe { std::mem::zeroed() };
        info.command = GDRVINFO;
        self.ethtool(&mut info)?;
        // Of `c_char`, which is signed on some machines.
        let name: Vec<u8> = info.driver.iter().map(|byte| *byte as u8).chain([0]).collect();
        Ok(text(&name))
    }

    /// Its receive queues.
    ///
    /// # Errors
    /// As [`Interface::driver`].
    pub fn channels(&self) -> io::Result<Channels> {
        let mut words = [0_u32; 9];
        words[0] = GCHANNELS;
        self.ethtool(&mut words)?;
        // command, then at most and now: receive, transmit, other, combined.
        let sum = |a: u32, b: u32| a.saturating_add(b);
        Ok(Channels { now: sum(words[5], words[8]), most: sum(words[1], words[4]) })
    }

    /// Its receive rings.
    ///
    /// # Errors
    /// As [`Interface::driver`].
    pub fn rings(&self) -> io::Result<Rings> {
        let mut words = [0_u32; 9];
        words[0] = GRINGPARAM;
        self.ethtool(&mut words)?;
        // command, then at most and now: receive, mini, jumbo, transmit.
        Ok(Rings { now: words[5], most: words[1] })
    }

    /// Its indirection table and hash key.
    ///
    /// # Errors
    /// As [`Interface::driver`].
    pub fn spreading(&self) -> io::Result<Spreading> {
        let mut words = [0_u32; 7];
        words[0] = GRSSH;
        self.ethtool(&mut words)?;
        Ok(Spreading { entries: words[2], key: words[3] })
    }

    /// The offloads that are on, by the names that `ethtool -k` has for them inside the kernel, such as
    /// `rx-gro`.
    ///
    /// # Errors
    /// As [`Interface::driver`].
    pub fn offloads(&self) -> io::Result<Vec<String>> {
        let mask = 1 << SS_FEATURES;
        let mut info = SetInfo { command: GSSET_INFO, reserved: 0, mask, length: 0, padding: 0 };
        self.ethtool(&mut info)?;
        let count = info.length as usize;
        if info.mask == 0 || count > MOST_FEATURES {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let mut names = Box::new(OffloadNames {
            command: GSTRINGS,
            set: SS_FEATURES,
            count: count as u32,
            names: [[0; NAME]; MOST_FEATURES],
        });
        self.ethtool(&mut *names)?;
        let blocks = count.div_ceil(32) as u32;
        let masks = [[0; 4]; MOST_FEATURES / 32];
        let mut features = Features { command: GFEATURES, blocks, masks };
        self.ethtool(&mut features)?;
        let active = |number: &usize| features.masks[number / 32][2] >> (number % 32) & 1 == 1;
        Ok((0..count).filter(active).map(|number| text(&names.names[number])).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_has_offloads_and_no_driver_of_its_own() {
        let loopback = Interface::new("lo").unwrap();
        let offloads = loopback.offloads().unwrap();
        assert!(offloads.iter().any(|name| name == "rx-gro"), "{offloads:?}");
        assert!(offloads.iter().all(|name| name.is_ascii() && !name.is_empty()));
        assert!(loopback.channels().is_err() && loopback.spreading().is_err());
    }

    #[test]
    fn names_that_no_interface_has_are_errors() {
        for name in ["", "no-such-one", "a-name-that-is-too-long", "with\0zero"] {
            let driver = Interface::new(name).and_then(|interface| interface.driver());
            assert!(driver.is_err(), "{name:?}");
        }
    }
}
