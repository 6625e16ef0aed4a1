//! Ethernet types by name or number.

use crate::findings::Findings;
use crate::reader::Value;
use crate::reader::convert::choice;
use crate::reader::convert::number::integer;

/// Names of Ethernet types (IEEE registry).
const ETHERTYPES: [(&str, u16); 6] = [
    ("arp", 0x0806),
    ("mpls", 0x8847),
    ("eapol", 0x888e),
    ("macsec", 0x88e5),
    ("lldp", 0x88cc),
    ("ptp", 0x88f7),
];

/// A conversion to an Ethernet type, by name or number. Numbers up to 1,500 are lengths (IEEE 802.3).
pub(crate) fn ethertype(value: &Value<'_>, findings: &mut Findings) -> Option<u16> {
    if value.is_integer() {
        return integer(0x600..=0xffff)(value, findings).map(|number| number as u16);
    }
    choice(&ETHERTYPES)(value, findings)
}

/// The name of an Ethernet type, or its number.
pub(crate) fn name(number: u16) -> String {
    let named = ETHERTYPES.iter().find(|(_, known)| *known == number);
    named.map_or_else(|| number.to_string(), |(name, _)| (*name).to_owned())
}
