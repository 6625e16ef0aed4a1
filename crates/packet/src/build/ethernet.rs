//! Ethernet headers.

use super::FrameBuilder;
use crate::wire::ethernet::{HEADER, IPV4, IPV6, MacAddress, SERVICE_VLAN, VLAN};
use crate::wire::field::put_u16;
use crate::wire::vlan::TAG;

/// The shortest Ethernet frame, without its check sequence.
pub const MIN_FRAME: usize = 60;

/// The Ethernet header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ethernet {
    /// Where it comes from.
    pub source: MacAddress,
    /// Where it goes.
    pub destination: MacAddress,
    /// The VLAN, if it is tagged.
    pub vlan: Option<u16>,
}

impl FrameBuilder<'_> {
    /// Bytes of the link header.
    #[inline]
    pub(super) fn link_len(&self) -> usize {
        let Some(ethernet) = self.ethernet else { return 0 };
        let tags = usize::from(ethernet.vlan.is_some()) + usize::from(self.service_vlan.is_some());
        HEADER + TAG * tags
    }

    /// Writes the link header, which fills `out`.
    #[inline]
    pub(super) fn write_link(&self, out: &mut [u8]) {
        let Some(link) = self.ethernet else { return };
        let kind = if self.source.is_ipv4() { IPV4 } else { IPV6 };
        let mut header = [0; HEADER];
        header[..6].copy_from_slice(&link.destination);
        header[6..12].copy_from_slice(&link.source);
        put_u16(&mut header, 12, kind);
        out[..HEADER].copy_from_slice(&header);
        let tags = [(SERVICE_VLAN, self.service_vlan), (VLAN, link.vlan)];
        let mut at = HEADER - 2;
        for (kind, vlan) in tags {
            let Some(vlan) = vlan else { continue };
            put_u16(out, at, kind);
            put_u16(out, at + 2, vlan);
            at += TAG;
        }
        put_u16(out, at, kind);
    }
}
