//! Names of flows in text.

use std::borrow::Cow;
use std::net::SocketAddr;

use rheostat_packet::wire::protocol::ProtocolName;

/// A flow's name as JSON has it, such as `6 10.0.0.1:4000 192.0.2.1:80`, with its protocol by name. Other text stays as it is.
pub(crate) fn with_protocol(name: &str) -> Cow<'_, str> {
    let named = name.split_once(' ').and_then(|(number, ends)| {
        let first = ends.split(' ').next()?;
        first.parse::<SocketAddr>().ok()?;
        Some(format!("{} {ends}", ProtocolName(number.parse().ok()?)))
    });
    named.map_or(Cow::Borrowed(name), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_have_their_protocol_by_name_and_hosts_stay() {
        for (name, text) in [
            ("6 10.0.0.1:4000 192.0.2.1:80", "TCP 10.0.0.1:4000 192.0.2.1:80"),
            ("58 [fd00::1]:7 [2001:db8::1]:7 zone 5", "ICMPv6 [fd00::1]:7 [2001:db8::1]:7 zone 5"),
            ("253 10.0.0.1:0 192.0.2.1:0", "253 10.0.0.1:0 192.0.2.1:0"),
            ("10.0.0.1", "10.0.0.1"),
            ("256 10.0.0.1:1 10.0.0.2:2", "256 10.0.0.1:1 10.0.0.2:2"),
            ("6 packets", "6 packets"),
        ] {
            assert_eq!(with_protocol(name), text);
        }
    }
}
