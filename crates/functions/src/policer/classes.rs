//! Which meter is whose: by the longest prefix.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use rheostat_base::Time;
use rheostat_steer::Prefix;
use thiserror::Error;

use super::meter::{Bucket, Meter};

/// The meters there are, each for the addresses of some prefixes and one for all others. `None` in
/// place of a meter lets everything pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classes {
    /// The first is that of all others.
    meters: Vec<Option<Meter>>,
    /// The number of the first. Classes that take the place of others have other numbers than those.
    first: u16,
    /// The places of the meters of prefixes.
    by_prefix: HashMap<Prefix, u16>,
    /// The lengths of prefixes of IPv4 and IPv6, the longest first.
    lengths: [Vec<u8>; 2],
}

/// Names a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassId(u16);

/// Why a class was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ClassError {
    /// The prefix is in a class already.
    #[error("the prefix {0} is in two classes")]
    Repeated(Prefix),
    /// There are as many as there can be.
    #[error("there are more than {} classes", u16::MAX)]
    TooMany,
}

impl Classes {
    /// One class for all addresses.
    pub fn new(others: Option<Meter>) -> Classes {
        Classes {
            meters: vec![others],
            first: 0,
            by_prefix: HashMap::new(),
            lengths: [vec![], vec![]],
        }
    }

    /// The same classes with the numbers behind those of `running`, whose place they take: buckets show by their class that they
    /// were made by others.
    #[must_use]
    pub fn behind(self, running: &Classes) -> Classes {
        Classes { first: running.first.wrapping_add(running.meters.len() as u16), ..self }
    }

    /// Adds a class for the addresses of `prefixes`, each as far as no longer one is for it. The meter
    /// is not shared by them: each address of the class has buckets of its own.
    ///
    /// # Errors
    /// [`ClassError`]; then nothing is added.
    pub fn add(&mut self, prefixes: &[Prefix], meter: Option<Meter>) -> Result<(), ClassError> {
        let place = u16::try_from(self.meters.len()).map_err(|_| ClassError::TooMany)?;
        let repeated = |(at, prefix): (usize, &Prefix)| {
            self.by_prefix.contains_key(prefix) || prefixes[..at].contains(prefix)
        };
        if let Some(at) = (0..prefixes.len()).find(|&at| repeated((at, &prefixes[at]))) {
            return Err(ClassError::Repeated(prefixes[at]));
        }
        self.meters.push(meter);
        for prefix in prefixes {
            self.by_prefix.insert(*prefix, place);
            let lengths = &mut self.lengths[family(prefix.address())];
            if let Err(place) = lengths.binary_search_by(|length| prefix.length().cmp(length)) {
                lengths.insert(place, prefix.length());
            }
        }
        Ok(())
    }

    /// The class of an address.
    pub fn class_of(&self, address: IpAddr) -> ClassId {
        let lengths = self.lengths[family(address)].iter();
        let mut places =
            lengths.filter_map(|length| self.by_prefix.get(&Prefix::containing(address, *length)));
        ClassId(self.first.wrapping_add(places.next().copied().unwrap_or(0)))
    }

    /// The meter of a class.
    #[inline]
    pub fn meter(&self, class: ClassId) -> Option<&Meter> {
        self.meters.get(usize::from(class.0.wrapping_sub(self.first)))?.as_ref()
    }

    /// Whether a class is one of these.
    #[inline]
    pub fn has(&self, class: ClassId) -> bool {
        usize::from(class.0.wrapping_sub(self.first)) < self.meters.len()
    }

    /// The meter of addresses without a class.
    pub fn others(&self) -> Option<&Meter> {
        self.meter(ClassId(self.first))
    }

    /// The longest time in which an empty bucket of any class is full.
    pub(super) fn slowest(&self) -> Duration {
        let empty = Bucket::of_words([0; 3]);
        let full = |meter: &Meter| meter.full_at(&empty).since(Time::ZERO);
        self.meters.iter().flatten().map(full).max().unwrap_or_default()
    }

    /// How many classes there are besides that of all others.
    pub fn named(&self) -> usize {
        self.meters.len() - 1
    }
}

fn family(address: IpAddr) -> usize {
    usize::from(address.is_ipv6())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::quantity::{Burst, Rate};
    use super::*;

    fn meter(bits: u64) -> Option<Meter> {
        Some(Meter::plain(Rate::new(bits).unwrap(), Burst::new(1_500).unwrap()).unwrap())
    }

    #[test]
    fn the_longest_prefix_wins() {
        let mut classes = Classes::new(meter(1_000));
        let prefix = |text: &str| text.parse::<Prefix>().unwrap();
        classes.add(&[prefix("10.0.0.0/8"), prefix("fd00::/8")], meter(2_000)).unwrap();
        classes.add(&[prefix("10.1.2.0/24"), prefix("fd00:1::/32")], None).unwrap();
        classes.add(&[prefix("10.1.0.0/16")], meter(3_000)).unwrap();
        let of = |address: &str| {
            *classes.meters.get(usize::from(classes.class_of(address.parse().unwrap()).0)).unwrap()
        };
        assert_eq!(of("192.0.2.1"), meter(1_000));
        assert_eq!(of("10.2.0.1"), meter(2_000));
        assert_eq!(of("10.1.1.1"), meter(3_000));
        assert_eq!(of("10.1.2.1"), None);
        assert_eq!(of("fd00:2::1"), meter(2_000));
        assert_eq!(of("fd00:1::1"), None);
        assert_eq!(of("2001:db8::1"), meter(1_000));
        assert_eq!(classes.named(), 3);
    }

    #[test]
    fn a_prefix_is_in_one_class() {
        let mut classes = Classes::new(None);
        let prefix = |text: &str| text.parse::<Prefix>().unwrap();
        let twice = [prefix("10.0.0.0/8"), prefix("10.0.0.0/8")];
        let repeated = Err(ClassError::Repeated(twice[0]));
        assert_eq!(classes.add(&twice, None), repeated);
        assert_eq!((classes.add(&twice[..1], None), classes.named()), (Ok(()), 1));
        assert_eq!(classes.add(&twice[..1], meter(1_000)), repeated);
        assert_eq!(classes.named(), 1);
    }

    proptest! {
        /// As looking at every prefix does.
        #[test]
        fn agrees_with_a_search_of_all(
            prefixes in prop::collection::hash_set((any::<u8>(), 0_u8..=8), 0..20),
            address: u8,
        ) {
            let at = |bits: u8| IpAddr::from([bits, 0, 0, 0]);
            let prefixes = prefixes.into_iter().map(|(bits, length)| Prefix::containing(at(bits), length));
            let mut classes = Classes::new(None);
            let mut all: Vec<Prefix> = Vec::new();
            for prefix in prefixes {
                if classes.add(&[prefix], None).is_ok() {
                    all.push(prefix);
                }
            }
            let longest = (1_u16..)
                .zip(&all)
                .filter(|(_, prefix)| prefix.contains(at(address)))
                .max_by_key(|(_, prefix)| prefix.length())
                .map_or(0, |(class, _)| class);
            prop_assert_eq!(classes.class_of(at(address)), ClassId(longest));
        }
    }
}
