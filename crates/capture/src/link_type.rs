//! Link types as capture files number them (<https://www.tcpdump.org/linktypes.html>).

use rheostat_packet::LinkType;

/// The link type behind a number in a capture, or `None` when we cannot read its packets.
pub fn from_number(number: u16) -> Option<LinkType> {
    match number {
        0 | 108 => Some(LinkType::Null),
        1 => Some(LinkType::Ethernet),
        // 12 and 14 are DLT_RAW as some systems number it and wrongly write it into files; 228 and
        // 229 say which version of IP, which the packet states itself.
        12 | 14 | 101 | 228 | 229 => Some(LinkType::Raw),
        113 => Some(LinkType::LinuxCooked),
        276 => Some(LinkType::LinuxCooked2),
        _ => None,
    }
}

/// The number to write. Packets of the BSD loopback keep the byte order of their first word, which
/// readers of link type 0 find out by its size.
pub fn to_number(link: LinkType) -> u16 {
    match link {
        LinkType::Null => 0,
        LinkType::Ethernet => 1,
        LinkType::Raw => 101,
        LinkType::LinuxCooked => 113,
        LinkType::LinuxCooked2 => 276,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_we_write_we_read() {
        for link in [
            LinkType::Null,
            LinkType::Ethernet,
            LinkType::Raw,
            LinkType::LinuxCooked,
            LinkType::LinuxCooked2,
        ] {
            assert_eq!(from_number(to_number(link)), Some(link));
        }
    }
}
