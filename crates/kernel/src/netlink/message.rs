//! Messages (`struct nlmsghdr`): requests to the kernel, and the parts of its answers. Numbers are in the machine's own byte order.

use super::u32_at;

/// Bytes of a header.
const HEADER: usize = 16;

const ERROR: u16 = 2;
const DONE: u16 = 3;
const OVERRUN: u16 = 4;

const REQUEST: u16 = 0x1;
/// The kernel is to acknowledge the request (`NLM_F_ACK`).
pub(crate) const ACKNOWLEDGE: u16 = 0x4;
/// All entries are requested (`NLM_F_DUMP`).
pub(crate) const DUMP: u16 = 0x300;
/// The entries changed while they were listed (`NLM_F_DUMP_INTR`).
const DUMP_INTERRUPTED: u16 = 0x10;

/// A message of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// The number of the request that it answers; zero if it answers none.
    pub sequence: u32,
    /// Its content.
    pub content: Content<'a>,
}

/// The content of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// A statement of a family.
    Part {
        /// Its kind within the family.
        kind: u16,
        /// What follows the header.
        body: &'a [u8],
    },
    /// The end of a dump.
    Done {
        /// Nothing has changed since the dump began.
        is_consistent: bool,
    },
    /// The request was carried out.
    Acknowledged,
    /// The request failed, or its dump was broken off, with this error number (errno(3)).
    Failed(i32),
    /// Messages were lost.
    Overrun,
}

impl<'a> Message<'a> {
    /// Takes the first message off `bytes`; `None`, with `bytes` as they were, if they do not begin with a whole one.
    pub fn take(bytes: &mut &'a [u8]) -> Option<Message<'a>> {
        let [a, b, c, d, kind_low, kind_high, flags_low, flags_high] = *bytes.first_chunk()?;
        let length = u32::from_ne_bytes([a, b, c, d]) as usize;
        let body = bytes.get(HEADER..length)?;
        let sequence = u32_at(bytes, 8)?;
        let flags = u16::from_ne_bytes([flags_low, flags_high]);
        let content = match u16::from_ne_bytes([kind_low, kind_high]) {
            ERROR => match u32_at(body, 0)? as i32 {
                0 => Content::Acknowledged,
                error => Content::Failed(error.saturating_neg()),
            },
            DONE => match u32_at(body, 0).unwrap_or(0) as i32 {
                error @ i32::MIN..0 => Content::Failed(error.saturating_neg()),
                _ => Content::Done { is_consistent: flags & DUMP_INTERRUPTED == 0 },
            },
            OVERRUN => Content::Overrun,
            kind => Content::Part { kind, body },
        };
        *bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Message { sequence, content })
    }
}

/// The messages in `bytes`, which the kernel sent at once, as far as they are whole.
pub fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || Message::take(&mut bytes))
}

/// A request of this kind. Its answers have the number `sequence`.
pub(crate) fn request(kind: u16, flags: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
    let length = HEADER + body.len();
    let mut bytes = Vec::with_capacity(length);
    bytes.extend((length as u32).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend((REQUEST | flags).to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    // The kernel assigns the port.
    bytes.extend([0; 4]);
    bytes.extend(body);
    bytes
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A message of this kind, padded.
    pub(crate) fn message(kind: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = request(kind, 0, sequence, body);
        bytes[6..8].fill(0);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn only(bytes: &[u8]) -> Option<Content<'_>> {
        let all: Vec<_> = messages(bytes).collect();
        assert!(all.len() < 2, "{all:?}");
        all.first().map(|message| message.content)
    }

    #[test]
    fn messages_are_read_as_written() {
        let two = [message(16, 7, b"abcde"), message(17, 8, b"")].concat();
        assert_eq!(two.len(), 24 + 16, "padded");
        let read: Vec<_> = messages(&two).collect();
        let part =
            |sequence, kind, body| Message { sequence, content: Content::Part { kind, body } };
        assert_eq!(read, [part(7, 16, &b"abcde"[..]), part(8, 17, b"")]);
        let asked = request(18, DUMP, 9, &[0; 4]);
        assert_eq!((u32_at(&asked, 0), u32_at(&asked, 8)), (Some(20), Some(9)));
        assert_eq!(asked[6..8], (DUMP | REQUEST).to_ne_bytes());
    }

    #[test]
    fn ends_and_errors_are_distinguished() {
        let error = |code: i32| code.to_ne_bytes();
        assert_eq!(only(&message(ERROR, 0, &error(0))), Some(Content::Acknowledged));
        assert_eq!(only(&message(ERROR, 0, &error(-16))), Some(Content::Failed(16)));
        assert_eq!(only(&message(ERROR, 0, &error(i32::MIN))), Some(Content::Failed(i32::MAX)));
        assert_eq!(only(&message(OVERRUN, 0, &[])), Some(Content::Overrun));
        for body in [&error(0)[..], &[]] {
            let mut done = message(DONE, 0, body);
            assert_eq!(only(&done), Some(Content::Done { is_consistent: true }));
            done[6..8].copy_from_slice(&DUMP_INTERRUPTED.to_ne_bytes());
            assert_eq!(only(&done), Some(Content::Done { is_consistent: false }));
        }
        // `EINTR`: not all of the dump came.
        assert_eq!(only(&message(DONE, 0, &error(-4))), Some(Content::Failed(4)));
    }

    #[test]
    fn impossible_lengths_end_the_reading() {
        let mut bytes = message(16, 0, b"abcd");
        for end in 0..bytes.len() {
            assert_eq!(only(&bytes[..end]), None, "cut at {end}");
        }
        for length in [0_u32, 3, 15, 1 << 30, u32::MAX] {
            bytes[..4].copy_from_slice(&length.to_ne_bytes());
            assert_eq!(only(&bytes), None, "{length}");
        }
        assert_eq!(only(&message(ERROR, 0, &[0; 3])), None, "an error without its number");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn any_bytes_are_read_to_an_end(bytes in prop::collection::vec(proptest::num::u8::ANY, 0..300)) {
            prop_assert!(messages(&bytes).count() <= bytes.len() / HEADER);
        }
    }
}
