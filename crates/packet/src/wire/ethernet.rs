//! Ethernet (IEEE 802.3).

use super::field::{array_at, put_u16, u16_at};
use crate::malformed::{Layer, Malformed};

/// Bytes of the header.
pub const HEADER: usize = 14;

/// The smallest ethertype; smaller values are the length of an IEEE 802.3 frame.
pub const MIN_ETHERTYPE: u16 = 0x0600;
/// IPv4.
pub const IPV4: u16 = 0x0800;
/// ARP.
pub const ARP: u16 = 0x0806;
/// IPv6.
pub const IPV6: u16 = 0x86dd;
/// A customer VLAN tag (IEEE 802.1Q).
pub const VLAN: u16 = 0x8100;
/// A service VLAN tag (IEEE 802.1ad).
pub const SERVICE_VLAN: u16 = 0x88a8;
/// A service VLAN tag before it was standardised.
pub const OLD_SERVICE_VLAN: u16 = 0x9100;

/// Whether a VLAN tag follows the ethertype.
#[inline]
pub const fn is_vlan(ethertype: u16) -> bool {
    matches!(ethertype, VLAN | SERVICE_VLAN | OLD_SERVICE_VLAN)
}

/// A hardware address.
pub type MacAddress = [u8; 6];

const DESTINATION: usize = 0;
const SOURCE: usize = 6;
const ETHERTYPE: usize = 12;

/// An Ethernet frame.
#[derive(Clone, Copy, Debug)]
pub struct EthernetFrame<'a> {
    header: &'a [u8; HEADER],
    payload: &'a [u8],
}

impl<'a> EthernetFrame<'a> {
    /// The frame in `bytes`.
    ///
    /// # Errors
    /// [`Malformed::Truncated`] when the header is not whole.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<EthernetFrame<'a>, Malformed> {
        let (header, payload) =
            bytes.split_first_chunk().ok_or(Malformed::Truncated(Layer::Link))?;
        Ok(EthernetFrame { header, payload })
    }

    /// The address the frame goes to.
    #[inline]
    pub fn destination(&self) -> MacAddress {
        array_at(self.header, DESTINATION)
    }

    /// The address the frame comes from.
    #[inline]
    pub fn source(&self) -> MacAddress {
        array_at(self.header, SOURCE)
    }

    /// The type of what follows, or below [`MIN_ETHERTYPE`] its length.
    #[inline]
    pub fn ethertype(&self) -> u16 {
        u16_at(self.header, ETHERTYPE)
    }

    /// The bytes behind the header.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// An Ethernet header, to write.
#[derive(Debug)]
pub struct EthernetFrameMut<'a> {
    header: &'a mut [u8; HEADER],
}

impl<'a> EthernetFrameMut<'a> {
    /// The frame in `bytes`.
    ///
    /// # Errors
    /// [`Malformed::Truncated`] when the header is not whole.
    #[inline]
    pub fn new(bytes: &'a mut [u8]) -> Result<EthernetFrameMut<'a>, Malformed> {
        let header = bytes.first_chunk_mut().ok_or(Malformed::Truncated(Layer::Link))?;
        Ok(EthernetFrameMut { header })
    }

    /// Sets where the frame goes.
    #[inline]
    pub fn set_destination(&mut self, address: MacAddress) {
        self.header[DESTINATION..SOURCE].copy_from_slice(&address);
    }

    /// Sets where the frame comes from.
    #[inline]
    pub fn set_source(&mut self, address: MacAddress) {
        self.header[SOURCE..ETHERTYPE].copy_from_slice(&address);
    }

    /// Sets the type of what follows.
    #[inline]
    pub fn set_ethertype(&mut self, ethertype: u16) {
        put_u16(self.header, ETHERTYPE, ethertype);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_read_back_what_was_set() {
        let mut bytes = [0xee; 15];
        let mut frame = EthernetFrameMut::new(&mut bytes).unwrap();
        frame.set_destination([1, 2, 3, 4, 5, 6]);
        frame.set_source([7, 8, 9, 10, 11, 12]);
        frame.set_ethertype(IPV6);
        assert_eq!(bytes, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x86, 0xdd, 0xee]);
        let frame = EthernetFrame::new(&bytes).unwrap();
        assert_eq!(frame.destination(), [1, 2, 3, 4, 5, 6]);
        assert_eq!(frame.source(), [7, 8, 9, 10, 11, 12]);
        assert_eq!((frame.ethertype(), frame.payload()), (IPV6, &[0xee][..]));
        assert!(EthernetFrame::new(&bytes[..13]).is_err());
    }
}
