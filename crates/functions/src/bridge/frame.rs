//! What a bridge reads of a frame: its addresses and its VLAN.

use bytemuck::{AnyBitPattern, NoUninit};
use rheostat_packet::LinkType;
use rheostat_packet::wire::{EthernetFrame, MacAddress, ethernet};

/// A station as a bridge knows it: an address, apart in each VLAN (IEEE 802.1Q calls it independent learning).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, NoUninit, AnyBitPattern)]
#[repr(C)]
pub struct Station {
    /// The station's address.
    pub mac: MacAddress,
    /// The VLAN; 0 without a tag, and in a tag that has only a priority.
    pub vlan: u16,
}

impl Station {
    /// Whether the address is a group's, which no single station has: its first bit on the wire is set
    /// (IEEE 802.3, 3.2.3).
    pub const fn is_group(&self) -> bool {
        self.mac[0] & 1 == 1
    }

    /// Whether a frame can come from this station.
    pub fn can_send(&self) -> bool {
        !self.is_group() && self.mac != [0; 6]
    }

    /// Whether frames for the address end at the next bridge, and are never forwarded: spanning tree, pause,
    /// link aggregation, authentication and their like (IEEE 802.1D, 7.12.6, table 7-10).
    pub const fn is_reserved(&self) -> bool {
        matches!(self.mac, [0x01, 0x80, 0xc2, 0x00, 0x00, 0x00..=0x0f])
    }
}

/// The two ends of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The station that sent it.
    pub from: Station,
    /// The station it is for.
    pub to: Station,
}

impl Ends {
    /// Those of the frame that starts with `data`; `None` when it has no Ethernet header. Of several tags the
    /// outer one counts.
    #[inline]
    pub fn of(data: &[u8], link: LinkType) -> Option<Ends> {
        if link != LinkType::Ethernet {
            return None;
        }
        let frame = EthernetFrame::new(data).ok()?;
        let vlan = match (frame.ethertype(), frame.payload()) {
            (tag, [high, low, ..]) if ethernet::is_vlan(tag) => {
                u16::from_be_bytes([*high, *low]) & 0xfff
            }
            _ => 0,
        };
        let end = |mac| Station { mac, vlan };
        Some(Ends { from: end(frame.source()), to: end(frame.destination()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn station(mac: MacAddress) -> Station {
        Station { mac, vlan: 0 }
    }

    #[test]
    fn the_outer_tag_names_the_vlan_of_both_ends() {
        let mut frame = vec![0x22; 6];
        frame.extend([0x44; 6]);
        let ends = |rest: &[u8]| {
            Ends::of(&[&frame[..], rest].concat(), LinkType::Ethernet).map(|ends| ends.to.vlan)
        };
        assert_eq!(ends(&[0x08, 0x00, 0x45, 0x00]), Some(0));
        // Priority 5, VLAN 7; then a service tag before it.
        assert_eq!(ends(&[0x81, 0x00, 0xa0, 0x07, 0x08, 0x00]), Some(7));
        assert_eq!(ends(&[0x88, 0xa8, 0x01, 0x2c, 0x81, 0x00, 0x00, 0x07]), Some(300));
        assert_eq!(ends(&[0x81, 0x00, 0xe0, 0x00, 0x08, 0x00]), Some(0), "only a priority");
        assert_eq!(ends(&[0x81, 0x00, 0xe0]), Some(0), "the tag is cut off");
        assert_eq!(ends(&[0x08]), None);
        frame.extend([0x08, 0x00]);
        let Some(Ends { from, to }) = Ends::of(&frame, LinkType::Ethernet) else { panic!() };
        assert_eq!((from.mac, to.mac), ([0x44; 6], [0x22; 6]));
        assert_eq!(Ends::of(&frame, LinkType::Raw), None);
    }

    #[test]
    fn addresses_that_are_no_stations() {
        assert!(station([0xff; 6]).is_group() && station([0x33, 0x33, 0, 0, 0, 1]).is_group());
        assert!(!station([0x02, 0, 0, 0, 0, 1]).is_group());
        assert!(!station([0; 6]).can_send() && !station([1; 6]).can_send());
        assert!(station([0x02, 0, 0, 0, 0, 1]).can_send());
        for last in 0..=0x0f {
            assert!(station([0x01, 0x80, 0xc2, 0, 0, last]).is_reserved());
        }
        assert!(!station([0x01, 0x80, 0xc2, 0, 0, 0x10]).is_reserved());
        assert!(!station([0x01, 0x80, 0xc2, 0, 1, 0]).is_reserved());
    }
}
