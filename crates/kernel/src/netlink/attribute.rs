//! Attributes, of which the messages of every netlink family consist (`struct nlattr`), and the numbers and names in them.

/// In the kind of an attribute (`NLA_TYPE_MASK`): all but the two bits that say how its value is to be read, nested or in
/// network byte order.
const KIND: u16 = 0x3fff;

/// Kinds and values of attributes one after the other, as far as they are whole. A length that cannot be ends them.
pub fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let &[a, b, c, d] = bytes.first_chunk()?;
        let length = usize::from(u16::from_ne_bytes([a, b]));
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([c, d]) & KIND, value))
    })
}

/// An attribute, padded to four bytes; its value has fewer than 65,532.
pub fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity((4 + value.len()).next_multiple_of(4));
    bytes.extend((4 + value.len() as u16).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// The value of the first attribute of this kind.
pub(crate) fn find(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
}

/// A name, which ends at the first zero byte.
pub(crate) fn text(value: &[u8]) -> String {
    let name = value.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().copied().map(u16::from_ne_bytes)
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_as_written_and_end_where_a_length_cannot_be() {
        let nested = attribute(4, &[1, 2, 3, 4]);
        let all = [
            attribute(7, b"abc"),
            attribute(43 | 0x8000, &nested),
            attribute(9 | 0x4000, b""),
            attribute(2, b"x"),
        ];
        assert_eq!(all.each_ref().map(Vec::len), [8, 12, 4, 8], "padded");
        let bytes = all.concat();
        let read: Vec<_> = attributes(&bytes).collect();
        assert_eq!(read, [(7, &b"abc"[..]), (43, &nested[..]), (9, b""), (2, b"x")]);
        for len in [0_u16, 3, 7, 200] {
            let [a, b] = len.to_ne_bytes();
            assert_eq!(attributes(&[a, b, 1, 0, 9, 9]).next(), None, "{len}");
        }
        // The padding of the last one may be missing.
        assert_eq!(attributes(&bytes[..7]).next(), Some((7, &b"abc"[..])));
    }
}
