//! Protocols by the names that people know them by.

/// The name of an IP protocol, or its number.
pub fn protocol_name(protocol: u8) -> String {
    let name = match protocol {
        1 => "ICMP",
        2 => "IGMP",
        4 => "IPIP",
        6 => "TCP",
        17 => "UDP",
        33 => "DCCP",
        41 => "IPv6",
        47 => "GRE",
        50 => "ESP",
        51 => "AH",
        58 => "ICMPv6",
        89 => "OSPF",
        132 => "SCTP",
        136 => "UDP-Lite",
        _ => return protocol.to_string(),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protocol_without_a_common_name_has_its_number() {
        assert_eq!([6, 17, 58, 200].map(protocol_name), ["TCP", "UDP", "ICMPv6", "200"]);
    }
}
