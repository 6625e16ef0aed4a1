//! TCP options (RFC 9293, 3.1; RFC 7323; RFC 2018).

use super::field::{u16_at, u32_at};

/// One option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpOption<'a> {
    /// The largest segment the sender takes.
    MaximumSegmentSize(u16),
    /// The shift of the sender's windows.
    WindowScale(u8),
    /// The sender understands selective acknowledgements.
    SackPermitted,
    /// Selective acknowledgements: pairs of 32-bit numbers.
    Sack(&'a [u8]),
    /// The sender's time stamp, and the peer's that it echoes.
    Timestamps(u32, u32),
    /// Any other kind, with its data.
    Other(u8, &'a [u8]),
}

/// The options of a header in order. Ends at the end-of-options mark, and at an option that claims more
/// bytes than there are.
#[derive(Clone, Copy, Debug)]
pub struct TcpOptions<'a> {
    rest: &'a [u8],
}

impl<'a> TcpOptions<'a> {
    /// The options in `bytes`.
    pub fn new(bytes: &'a [u8]) -> TcpOptions<'a> {
        TcpOptions { rest: bytes }
    }

    /// Where the value of the first maximum segment size lies, in bytes from the start of the options.
    pub(super) fn mss_at(mut self) -> Option<usize> {
        let len = self.rest.len();
        let is_mss = |option| matches!(option, TcpOption::MaximumSegmentSize(_));
        self.by_ref().any(is_mss).then(|| len - self.rest.len() - 2)
    }
}

impl<'a> Iterator for TcpOptions<'a> {
    type Item = TcpOption<'a>;

    fn next(&mut self) -> Option<TcpOption<'a>> {
        loop {
            match *self.rest {
                [1, ..] => self.rest = &self.rest[1..],
                [kind, len, ..] if kind != 0 && len >= 2 && usize::from(len) <= self.rest.len() => {
                    let (option, rest) = self.rest.split_at(len.into());
                    self.rest = rest;
                    let data = &option[2..];
                    return Some(match (kind, data.len()) {
                        (2, 2) => TcpOption::MaximumSegmentSize(u16_at(data, 0)),
                        (3, 1) => TcpOption::WindowScale(data[0]),
                        (4, 0) => TcpOption::SackPermitted,
                        (5, _) => TcpOption::Sack(data),
                        (8, 8) => TcpOption::Timestamps(u32_at(data, 0), u32_at(data, 4)),
                        _ => TcpOption::Other(kind, data),
                    });
                }
                _ => {
                    self.rest = &[];
                    return None;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_up_to_the_first_that_is_broken() {
        let bytes = [2, 4, 5, 0xb4, 1, 3, 3, 7, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 3, 5, 99, 0];
        let options: Vec<_> = TcpOptions::new(&bytes).collect();
        assert_eq!(
            options,
            [
                TcpOption::MaximumSegmentSize(1460),
                TcpOption::WindowScale(7),
                TcpOption::SackPermitted,
                TcpOption::Timestamps(9, 3),
            ]
        );
        assert_eq!(TcpOptions::new(&[0, 3, 3, 7]).next(), None);
        assert_eq!(TcpOptions::new(&[3, 0]).next(), None);
        assert_eq!(TcpOptions::new(&[3]).next(), None);
    }
}
