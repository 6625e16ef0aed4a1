//! A packet that is too long for the path to the backend and may be fragmented: its outer packet is cut
//! into fragments (RFC 791, section 3.2), which the backend puts together before it looks inside. So no
//! option inside needs to be copied, and a fragment that arrives is carried as it is.

use rheostat_packet::checksum;
use rheostat_packet::wire::ipv4;

use super::Outer;

/// Bytes a fragment has at most, whatever the path allows: it has to fit into one buffer.
const LONGEST: usize = 1_500;

/// The flag, in the word of the fragment's offset.
const MORE_FRAGMENTS: u16 = 0x2000;

/// A piece of an outer packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Where its data starts behind the outer IP header: a multiple of eight.
    offset: usize,
    /// Bytes of data.
    len: usize,
    /// Whether others follow.
    more: bool,
}

/// The pieces of an outer packet of IPv4 around `inner` bytes, each no longer than `mtu`.
pub(crate) fn pieces(outer: &Outer, inner: usize, mtu: u16) -> impl Iterator<Item = Piece> {
    let room = (usize::from(mtu).min(LONGEST) - ipv4::MIN_HEADER) & !7;
    let data = outer.bytes().len() - ipv4::MIN_HEADER + inner;
    (0..data).step_by(room).map(move |offset| {
        let len = room.min(data - offset);
        Piece { offset, len, more: offset + len < data }
    })
}

impl Piece {
    /// Bytes of the fragment.
    pub(crate) fn packet_len(&self) -> usize {
        ipv4::MIN_HEADER + self.len
    }

    /// Writes the fragment to the start of `out` and returns its length; `inner` is the packet that the
    /// outer header stands before, in parts. `None` without room.
    pub(crate) fn write<'a>(
        &self,
        outer: &'a Outer,
        inner: impl Iterator<Item = &'a [u8]>,
        out: &mut [u8],
    ) -> Option<usize> {
        let out = out.get_mut(..self.packet_len())?;
        let (ip, rest) = outer.bytes().split_at(ipv4::MIN_HEADER);
        let (header, data) = out.split_at_mut(ipv4::MIN_HEADER);
        header.copy_from_slice(ip);
        header[2..4].copy_from_slice(&(self.packet_len() as u16).to_be_bytes());
        let more = if self.more { MORE_FRAGMENTS } else { 0 };
        header[6..8].copy_from_slice(&((self.offset / 8) as u16 | more).to_be_bytes());
        header[10..12].fill(0);
        let checksum = checksum::of(header);
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
        let (mut skip, mut filled) = (self.offset, 0);
        for part in std::iter::once(rest).chain(inner) {
            let (before, part) = part.split_at(skip.min(part.len()));
            skip -= before.len();
            let take = part.len().min(data.len() - filled);
            data[filled..filled + take].copy_from_slice(&part[..take]);
            filled += take;
        }
        (filled == data.len()).then_some(ipv4::MIN_HEADER + filled)
    }
}
