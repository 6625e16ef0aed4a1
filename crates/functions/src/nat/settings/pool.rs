//! External addresses and ports.

use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::firewall::PortList;
use thiserror::Error;

use rheostat_settings::declared::Form;
use rheostat_settings::declared::kind::{Kind, written_as};
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::Value;
use rheostat_settings::reader::convert::{list, parsed};

/// External addresses there may be.
const MOST: usize = 4_096;

/// Addresses from the first to the last.
#[derive(Clone, Copy, Debug)]
struct AddressRange {
    first: u32,
    last: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
enum AddressRangeError {
    #[error("`{0}` is not an IPv4 address")]
    Address(String),
    #[error("{first} comes after {last}")]
    Backwards { first: Ipv4Addr, last: Ipv4Addr },
    #[error("`{0}` names no host")]
    NoHost(Ipv4Addr),
    #[error("{0} addresses are more than {MOST}")]
    TooMany(u32),
}

impl FromStr for AddressRange {
    type Err = AddressRangeError;

    fn from_str(text: &str) -> Result<AddressRange, AddressRangeError> {
        let address = |text: &str| {
            let text = text.trim();
            text.parse::<Ipv4Addr>().map_err(|_| AddressRangeError::Address(text.to_owned()))
        };
        let (first, last) = match text.split_once('-') {
            Some((first, last)) => (address(first)?, address(last)?),
            None => (address(text)?, address(text)?),
        };
        for end in [first, last] {
            if end.is_unspecified() || end.is_loopback() || end.is_multicast() || end.is_broadcast()
            {
                return Err(AddressRangeError::NoHost(end));
            }
        }
        let range = AddressRange { first: first.to_bits(), last: last.to_bits() };
        match range.last.checked_sub(range.first) {
            None => Err(AddressRangeError::Backwards { first, last }),
            Some(more) if more as usize >= MOST => Err(AddressRangeError::TooMany(more)),
            Some(_) => Ok(range),
        }
    }
}

/// Addresses, given one by one or as ranges.
pub(super) fn addresses() -> Kind<Vec<Ipv4Addr>> {
    Kind::unshown(Form::List, read_addresses).noun("address of IPv4, or range of them")
}

fn read_addresses(value: &Value<'_>, findings: &mut Findings) -> Option<Vec<Ipv4Addr>> {
    let example = "addresses, such as [\"203.0.113.1\", \"203.0.113.8-203.0.113.15\"]";
    let ranges = list(parsed::<AddressRange>(example))(value, findings)?;
    let addresses: Vec<_> = ranges
        .iter()
        .flat_map(|range| (range.first..=range.last).map(Ipv4Addr::from_bits))
        .collect();
    let mut sorted = addresses.clone();
    sorted.sort_unstable();
    let twice = sorted.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
    let problem = match twice {
        _ if addresses.is_empty() => "there is no external address".to_owned(),
        _ if addresses.len() > MOST => {
            format!("{} addresses are more than {MOST}", addresses.len())
        }
        Some(address) => format!("{address} is there twice"),
        None => return Some(addresses),
    };
    findings.push(value.mistake(problem).help(format!("write {example}")));
    None
}

/// A range of ports.
pub(super) fn ports() -> Kind<RangeInclusive<u16>> {
    let example = "a range of ports, such as \"1024-65535\"";
    let write = |ports: &RangeInclusive<u16>| format!("{}-{}", ports.start(), ports.end());
    let read = move |value: &Value<'_>, findings: &mut Findings| {
        let PortList(ranges) = parsed::<PortList>(example)(value, findings)?;
        if let [range] = ranges[..]
            && range.low > 0
        {
            return Some(range.low..=range.high);
        }
        let finding = value.mistake("the ports must be one range, without port 0");
        findings.push(finding.help(format!("write {example}")));
        None
    };
    written_as(example, read, write).noun("range of ports")
}
