//! Interfaces: a device with a link address and IP addresses of its own.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use rheostat_base::DeviceId;
use rheostat_packet::wire::MacAddress;
use rheostat_steer::{Prefix, PrefixError, PrefixList};

/// The link address of all stations.
pub(crate) const BROADCAST: MacAddress = [0xff; 6];

/// A device that takes part in IP: it has addresses, and hosts on its link find them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The device.
    pub device: DeviceId,
    /// Its name, for messages.
    pub name: String,
    /// Its link address, that of one station.
    pub mac: MacAddress,
    /// Bytes of the longest IP packet that its link carries.
    pub mtu: u16,
    /// The VLAN that all its frames are tagged with (IEEE 802.1Q), if they are.
    pub vlan: Option<u16>,
    /// Its addresses, each with the length of the prefix that is on its link. The link-local address of
    /// IPv6 is not among them: it follows from the link address.
    pub addresses: Vec<InterfaceAddress>,
    /// Addresses that it answers ARP and neighbour solicitations for besides its own, and whose packets
    /// are for the chain: a NAT's external addresses, a load balancer's virtual ones.
    pub proxied: PrefixList,
    /// Whether its frames are played to it, from a capture or a generator, and no host is on its link. It then takes frames to
    /// every station, and every neighbour is assumed to exist: one that the configuration does not name has a link address made
    /// of its IP address.
    pub is_played: bool,
}

/// The link address that a neighbour is assumed to have where no host can answer: administered locally, and ending in the last
/// four bytes of the IP address.
pub(crate) fn assumed_mac(address: IpAddr) -> MacAddress {
    let [.., a, b, c, d] = match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    };
    [2, 0, a, b, c, d]
}

/// An address of an interface, with how much of it is the same for all hosts on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// The address.
    pub address: IpAddr,
    /// Leading bits that name the link.
    pub length: u8,
}

impl InterfaceAddress {
    /// The addresses on the link.
    pub fn prefix(&self) -> Prefix {
        Prefix::containing(self.address, self.length)
    }
}

impl FromStr for InterfaceAddress {
    type Err = PrefixError;

    /// Reads `ADDRESS/LENGTH`, such as `192.168.77.1/24`; an address alone is alone on its link.
    fn from_str(text: &str) -> Result<InterfaceAddress, PrefixError> {
        match text.parse::<Prefix>() {
            Ok(prefix) => {
                Ok(InterfaceAddress { address: prefix.address(), length: prefix.length() })
            }
            // The usual case: a host on its network.
            Err(PrefixError::HostBits { prefix, .. }) => {
                let address = text.split('/').next().unwrap_or_default();
                let address =
                    address.parse().map_err(|_| PrefixError::Address(address.to_owned()))?;
                Ok(InterfaceAddress { address, length: prefix.length() })
            }
            Err(error) => Err(error),
        }
    }
}

impl fmt::Display for InterfaceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl Interface {
    /// An Ethernet interface without addresses, with the usual MTU of 1500.
    pub fn new(device: DeviceId, name: impl Into<String>, mac: MacAddress) -> Interface {
        Interface {
            device,
            name: name.into(),
            mac,
            mtu: 1_500,
            vlan: None,
            addresses: Vec::new(),
            proxied: PrefixList::default(),
            is_played: false,
        }
    }

    /// The link-local address (RFC 4291, section 2.5.6), from the modified EUI-64 of the link address
    /// (appendix A).
    pub fn link_local(&self) -> Ipv6Addr {
        let [a, b, c, d, e, f] = self.mac;
        Ipv6Addr::from([0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f])
    }

    /// Whether the address is the interface's own.
    pub fn owns(&self, address: IpAddr) -> bool {
        self.addresses.iter().any(|own| own.address == address) || address == self.link_local()
    }

    /// Whether the interface answers for the address when it is looked for on the link.
    pub fn answers_for(&self, address: IpAddr) -> bool {
        self.owns(address) || self.proxied.contains(address)
    }

    /// Whether the address is reached on the link without a router.
    pub fn is_on_link(&self, address: IpAddr) -> bool {
        let is_link_local = match address {
            IpAddr::V4(_) => false,
            IpAddr::V6(v6) => v6.is_unicast_link_local(),
        };
        is_link_local || self.addresses.iter().any(|own| own.prefix().contains(address))
    }

    /// The address from which the interface speaks to `peer`: one of the same network if there is one,
    /// else any of the family. `None` without an address of the family.
    pub fn address_towards(&self, peer: IpAddr) -> Option<IpAddr> {
        if let IpAddr::V6(v6) = peer
            && v6.is_unicast_link_local()
        {
            return Some(self.link_local().into());
        }
        let mut family =
            self.addresses.iter().filter(|own| own.address.is_ipv4() == peer.is_ipv4());
        let near = family.clone().find(|own| own.prefix().contains(peer));
        near.or_else(|| family.next()).map(|own| own.address)
    }
}

/// The group that hosts listen to which have an address with the same last 24 bits (RFC 4291, section
/// 2.7.1).
pub(crate) fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c])
}

/// The link address of a group (RFC 1112, section 6.4; RFC 2464, section 7).
pub(crate) fn group_mac(group: IpAddr) -> MacAddress {
    match group {
        IpAddr::V4(v4) => {
            let [_, b, c, d] = v4.octets();
            [1, 0, 0x5e, b & 0x7f, c, d]
        }
        IpAddr::V6(v6) => {
            let [.., a, b, c, d] = v6.octets();
            [0x33, 0x33, a, b, c, d]
        }
    }
}

/// Whether a packet may come from this address, wherever it comes from (RFC 1812, section 5.3.7; RFC
/// 4291, sections 2.5.2, 2.5.3 and 2.7).
#[inline]
pub(crate) fn may_be_source_v4(address: Ipv4Addr) -> bool {
    // 0/8, 127/8, and from 224/8 on groups, reserved addresses and the broadcast.
    let first = address.octets()[0];
    first != 0 && first != 127 && first < 224
}

/// As [`may_be_source_v4`].
#[inline]
pub(crate) fn may_be_source_v6(address: Ipv6Addr) -> bool {
    !(address.is_multicast() || address.is_loopback() || address.is_unspecified())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface() -> Interface {
        Interface {
            addresses: ["192.0.2.1/24", "198.51.100.1/24", "2001:db8::1/64"]
                .map(|text| text.parse().unwrap())
                .to_vec(),
            ..Interface::new(DeviceId(0), "lan", [0x02, 0, 0x5e, 0x10, 0, 0x09])
        }
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_is_read_with_its_network() {
        let own: InterfaceAddress = "192.168.77.1/24".parse().unwrap();
        assert_eq!((own.address, own.length), (ip("192.168.77.1"), 24));
        assert_eq!(own.prefix().to_string(), "192.168.77.0/24");
        assert_eq!(own.to_string(), "192.168.77.1/24");
        assert_eq!("fd00::/64".parse::<InterfaceAddress>().unwrap().address, ip("fd00::"));
        assert_eq!("10.0.0.1".parse::<InterfaceAddress>().unwrap().length, 32);
        assert!("10.0.0.1/33".parse::<InterfaceAddress>().is_err());
        assert!("lan/8".parse::<InterfaceAddress>().is_err());
    }

    #[test]
    fn the_link_local_address_is_that_of_the_link_address() {
        // RFC 4291, appendix A: the bit that states "universal" is inverted.
        assert_eq!(interface().link_local(), "fe80::5eff:fe10:9".parse::<Ipv6Addr>().unwrap());
    }

    #[test]
    fn groups_have_link_addresses() {
        // RFC 4291, section 2.7.1, has this example.
        let group = solicited_node("4037::01:800:200e:8c6c".parse().unwrap());
        assert_eq!(group, "ff02::1:ff0e:8c6c".parse::<Ipv6Addr>().unwrap());
        assert_eq!(group_mac(group.into()), [0x33, 0x33, 0xff, 0x0e, 0x8c, 0x6c]);
        assert_eq!(group_mac(ip("224.129.2.3")), [1, 0, 0x5e, 1, 2, 3]);
    }

    #[test]
    fn the_interface_speaks_from_the_network_of_its_peer() {
        let interface = interface();
        for (peer, own) in [
            ("198.51.100.7", "198.51.100.1"),
            ("203.0.113.1", "192.0.2.1"),
            ("2001:db8:9::1", "2001:db8::1"),
            ("fe80::1", "fe80::5eff:fe10:9"),
        ] {
            assert_eq!(interface.address_towards(ip(peer)), Some(ip(own)));
        }
        let bare = Interface::new(DeviceId(0), "wan", [2; 6]);
        assert_eq!(bare.address_towards(ip("192.0.2.1")), None);
    }
}
