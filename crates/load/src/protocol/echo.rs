//! Echo (RFC 862): what was sent comes back. Requests begin with their number.

use super::{Progress, Reply};

/// The shortest request: its number.
pub(super) const LEAST: usize = 8;

pub(super) fn write(size: u32, number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&number.to_be_bytes());
    out.resize(out.len() + size as usize - LEAST, filling(number));
}

pub(super) fn parse(size: u32, number: u64, bytes: &[u8]) -> Progress {
    let size = size as usize;
    let (head, rest) = bytes.split_at(bytes.len().min(LEAST));
    let rest = &rest[..rest.len().min(size - LEAST)];
    if !number.to_be_bytes().starts_with(head) || rest.iter().any(|byte| *byte != filling(number)) {
        return Progress::Garbage("an echo differs from what was sent");
    }
    match bytes.len() < size {
        true => Progress::Need(size),
        false => Progress::Whole(size, Reply::default()),
    }
}

fn filling(number: u64) -> u8 {
    number as u8 ^ 0x5a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_is_compared_with_what_was_sent() {
        let mut bytes = Vec::new();
        write(64, 300, &mut bytes);
        write(64, 301, &mut bytes);
        assert_eq!(parse(64, 300, &bytes), Progress::Whole(64, Reply::default()));
        assert_eq!(parse(64, 301, &bytes[64..]), Progress::Whole(64, Reply::default()));
        for cut in [0, 5, 8, 63] {
            assert_eq!(parse(64, 300, &bytes[..cut]), Progress::Need(64));
        }
        assert!(matches!(parse(64, 301, &bytes), Progress::Garbage(_)));
        bytes[40] ^= 1;
        assert!(matches!(parse(64, 300, &bytes), Progress::Garbage(_)));
    }
}
