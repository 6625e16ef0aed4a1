//! `address` and `mac` of a device.

use std::net::IpAddr;
use std::str::FromStr;

use rheostat_steer::Prefix;
use thiserror::Error;

/// An address of a device, and how many of its leading bits are those of all neighbours on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkAddress {
    /// The address.
    pub address: IpAddr,
    /// The bits.
    pub length: u8,
}

/// Why a text is not a [`LinkAddress`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LinkAddressError {
    /// There is no address.
    #[error("`{0}` is not an address")]
    Address(String),
    /// The prefix that is on the link is missing.
    #[error("`{0}` does not say which addresses are on the link")]
    NoLength(String),
    /// More bits than the address has.
    #[error("`{0}` has a length that its address does not")]
    Length(String),
    /// Not an address that a host can have.
    #[error("no host can have the address {0}")]
    NoHost(IpAddr),
}

impl LinkAddress {
    /// An address of this machine, whose link is not known.
    pub(crate) fn of_host(address: IpAddr) -> LinkAddress {
        LinkAddress { address, length: if address.is_ipv4() { 32 } else { 128 } }
    }

    /// The addresses on the link.
    pub fn link(&self) -> Prefix {
        Prefix::containing(self.address, self.length)
    }
}

impl FromStr for LinkAddress {
    type Err = LinkAddressError;

    fn from_str(text: &str) -> Result<LinkAddress, LinkAddressError> {
        let (address, length) = text.split_once('/').map_or((text, None), |(a, l)| (a, Some(l)));
        let address: IpAddr =
            address.parse().map_err(|_| LinkAddressError::Address(text.to_owned()))?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let length = length.ok_or_else(|| LinkAddressError::NoLength(text.to_owned()))?;
        let length = length.parse().ok().filter(|length| (1..=most).contains(length));
        let length = length.ok_or_else(|| LinkAddressError::Length(text.to_owned()))?;
        let broadcast = address == IpAddr::from([255; 4]);
        if address.is_unspecified() || address.is_loopback() || address.is_multicast() || broadcast
        {
            return Err(LinkAddressError::NoHost(address));
        }
        Ok(LinkAddress { address, length })
    }
}

/// The address of an interface on its link (IEEE 802), six numbers in hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MacAddress(pub [u8; 6]);

/// Why a text is not the [`MacAddress`] of an interface.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MacAddressError {
    /// Not six numbers.
    #[error("`{0}` is not six hexadecimal numbers with colons between")]
    Form(String),
    /// The address of several interfaces, or of none.
    #[error("`{0}` is not the address of one interface")]
    NotOne(String),
}

impl FromStr for MacAddress {
    type Err = MacAddressError;

    fn from_str(text: &str) -> Result<MacAddress, MacAddressError> {
        let form = || MacAddressError::Form(text.to_owned());
        let mut bytes = [0; 6];
        let mut parts = text.split([':', '-']);
        for byte in &mut bytes {
            // A sign is no digit, though it may stand before a number.
            let digits = |part: &&str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
            let part = parts.next().filter(|part| part.len() <= 2).filter(digits);
            *byte = part.and_then(|part| u8::from_str_radix(part, 16).ok()).ok_or_else(form)?;
        }
        if parts.next().is_some() {
            return Err(form());
        }
        // The lowest bit of the first byte is set in group addresses.
        if bytes[0] & 1 == 1 || bytes == [0; 6] {
            return Err(MacAddressError::NotOne(text.to_owned()));
        }
        Ok(MacAddress(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_say_what_is_on_the_link() {
        let read = |text: &str| text.parse::<LinkAddress>();
        let lan = LinkAddress { address: [192, 168, 77, 1].into(), length: 24 };
        assert_eq!(read("192.168.77.1/24"), Ok(lan));
        assert_eq!(read("fd77::1/64").map(|link| link.length), Ok(64));
        let error = |text: &str| read(text).unwrap_err();
        assert_eq!(error("192.168.77/24"), LinkAddressError::Address("192.168.77/24".into()));
        assert_eq!(error("10.0.0.1"), LinkAddressError::NoLength("10.0.0.1".into()));
        for text in ["10.0.0.1/33", "10.0.0.1/0", "10.0.0.1/x", "::1:2/129"] {
            assert_eq!(error(text), LinkAddressError::Length(text.into()));
        }
        for text in ["224.0.0.1/4", "0.0.0.0/8", "127.0.0.1/8", "ff02::1/64"] {
            assert!(matches!(error(text), LinkAddressError::NoHost(_)), "{text}");
        }
    }

    #[test]
    fn interfaces_have_addresses_of_their_own() {
        let read = |text: &str| text.parse::<MacAddress>();
        assert_eq!(read("02:0:5e:10:00:fF"), Ok(MacAddress([2, 0, 0x5e, 0x10, 0, 0xff])));
        for text in
            ["", "02:00:00:00:00", "02:00:00:00:00:00:00", "02:00:00:00:00:0g", "2:+1:0:0:0:0"]
        {
            assert_eq!(read(text), Err(MacAddressError::Form(text.into())), "{text}");
        }
        for text in ["01:00:5e:00:00:01", "ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00"] {
            assert_eq!(read(text), Err(MacAddressError::NotOne(text.into())));
        }
    }
}
