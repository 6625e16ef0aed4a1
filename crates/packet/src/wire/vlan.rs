//! VLAN tags (IEEE 802.1Q): what lies behind an ethertype for which [`super::ethernet::is_vlan`].

use super::field::u16_at;
use crate::malformed::{Layer, Malformed};

/// Bytes of a tag: its control information and the ethertype of what follows.
pub const TAG: usize = 4;

/// A VLAN tag.
#[derive(Clone, Copy, Debug)]
pub struct VlanTag<'a> {
    tag: &'a [u8; TAG],
    payload: &'a [u8],
}

impl<'a> VlanTag<'a> {
    /// The tag at the start of `bytes`.
    ///
    /// # Errors
    /// [`Malformed::Truncated`] when the tag is not whole.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<VlanTag<'a>, Malformed> {
        let (tag, payload) = bytes.split_first_chunk().ok_or(Malformed::Truncated(Layer::Vlan))?;
        Ok(VlanTag { tag, payload })
    }

    /// The VLAN's identifier, 12 bits; zero when the tag only carries a priority.
    #[inline]
    pub fn id(&self) -> u16 {
        u16_at(self.tag, 0) & 0xfff
    }

    /// The priority, 3 bits.
    #[inline]
    pub fn priority(&self) -> u8 {
        self.tag[0] >> 5
    }

    /// Whether the frame may be dropped first.
    #[inline]
    pub fn drop_eligible(&self) -> bool {
        self.tag[0] & 0x10 != 0
    }

    /// The type of what follows.
    #[inline]
    pub fn ethertype(&self) -> u16 {
        u16_at(self.tag, 2)
    }

    /// The bytes behind the tag.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_taken_apart() {
        let tag = VlanTag::new(&[0xb1, 0x23, 0x08, 0x00, 0x45]).unwrap();
        assert_eq!((tag.priority(), tag.drop_eligible(), tag.id()), (5, true, 0x123));
        assert_eq!((tag.ethertype(), tag.payload()), (0x0800, &[0x45][..]));
        assert_eq!(VlanTag::new(&[0; 3]).unwrap_err(), Malformed::Truncated(Layer::Vlan));
    }
}
