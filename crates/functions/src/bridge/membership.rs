//! Which ports carry which VLANs.

use rheostat_base::DeviceId;

use rheostat_nf::DeviceSet;

/// VLAN numbers, with 0 for frames without a tag.
const VLANS: usize = 4_096;

/// The ports of a bridge by the VLANs they carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    ports: DeviceSet,
    /// By VLAN. Empty when every port carries all of them.
    members: Vec<DeviceSet>,
}

impl Membership {
    /// These ports, each for every VLAN.
    pub fn new(ports: DeviceSet) -> Membership {
        Membership { ports, members: Vec::new() }
    }

    /// Lets `port` carry `vlans` and no others. 0 stands for frames without a tag.
    ///
    /// # Panics
    /// When a number is no VLAN's.
    pub fn restrict(&mut self, port: DeviceId, vlans: impl IntoIterator<Item = u16>) {
        if self.members.is_empty() {
            self.members = vec![self.ports; VLANS];
        }
        self.members.iter_mut().for_each(|members| *members = members.without(port));
        for vlan in vlans {
            let members = &mut self.members[usize::from(vlan)];
            *members = members.with(port);
        }
    }

    /// All ports.
    pub fn ports(&self) -> DeviceSet {
        self.ports
    }

    /// The ports that carry a VLAN.
    #[inline]
    pub fn of(&self, vlan: u16) -> DeviceSet {
        self.members.get(usize::from(vlan)).copied().unwrap_or(self.ports)
    }

    /// Whether some port does not carry every VLAN.
    pub fn is_restricted(&self) -> bool {
        !self.members.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_carries_everything_until_it_is_told_what() {
        let (all, port) = (DeviceSet::first(3), DeviceId);
        let mut membership = Membership::new(all);
        assert_eq!((membership.of(0), membership.of(4_095)), (all, all));
        membership.restrict(port(1), [0, 7]);
        membership.restrict(port(2), [7, 8]);
        assert_eq!(membership.of(0), all.without(port(2)));
        assert_eq!(membership.of(7), all);
        assert_eq!(membership.of(8), all.without(port(1)));
        assert_eq!(membership.of(9), DeviceSet::first(1));
        assert_eq!(membership.ports(), all);
    }
}
