//! An unsolicited SYN, as much of it as it takes to answer it later (RFC 5382, REQ-4).

use rheostat_base::DeviceId;
use rheostat_ip::{LONGEST_ANSWER, Received, Unreachable, unreachable};
use rheostat_packet::{Headers, LinkType};

use rheostat_state::bytemuck::{Pod, Zeroable};

use rheostat_nf::Cx;
use rheostat_nf::Outcome;
use rheostat_nf::Packet;

/// Bytes that are kept: the headers, which the answer quotes.
const KEPT: usize = 128;

/// Where a SYN came from, and how it began.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[bytemuck(crate = "rheostat_state::bytemuck")]
#[repr(C)]
pub(super) struct Syn {
    start: [u8; KEPT],
    len: u8,
    device: u8,
    link: u16,
    wire_len: u32,
}

impl Syn {
    /// The SYN that a packet is.
    pub(super) fn of(packet: &Packet<'_>) -> Syn {
        let data = packet.data();
        let len = data.len().min(KEPT);
        let mut start = [0; KEPT];
        start[..len].copy_from_slice(&data[..len]);
        Syn {
            start,
            len: len as u8,
            device: packet.device().0,
            link: packet.mbuf().link() as u16,
            wire_len: packet.len() as u32,
        }
    }

    /// Reports to its sender that there is no listener.
    pub(super) fn answer<L>(&self, cx: &mut Cx<'_, L>) -> Outcome<()> {
        let data = &self.start[..usize::from(self.len)];
        let link = LinkType::ALL[usize::from(self.link)];
        let Ok(headers) = Headers::parse_bytes(data, self.wire_len as usize, link) else {
            return Ok(());
        };
        let received = Received { data, link };
        cx.originate(DeviceId(self.device), link, LONGEST_ANSWER, |out| {
            unreachable(received, &headers, Unreachable::NoPort, out)
        })
    }
}
