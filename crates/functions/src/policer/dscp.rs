//! Code points of differentiated services.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::meter::Colour;

/// A differentiated services code point: the upper six bits of IPv4's type of service and of IPv6's
/// traffic class (RFC 2474, section 3). The lower two are ECN's (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dscp(u8);

/// What is not a code point.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}` is not a code point; write default, cs1 to cs7, af11 to af43, ef, voice-admit, le, or a \
     number up to 63"
)]
pub struct DscpError(String);

/// Names besides those of classes: RFC 2474, 4.1; RFC 8622; RFC 5865; RFC 3246.
const NAMES: [(&str, u8); 4] = [("default", 0), ("le", 1), ("voice-admit", 44), ("ef", 46)];

impl Dscp {
    /// The code point with this number, if it has six bits.
    pub const fn new(number: u8) -> Option<Dscp> {
        if number < 64 { Some(Dscp(number)) } else { None }
    }

    /// The code point in a type of service or traffic class.
    #[inline]
    pub const fn of_traffic_class(class: u8) -> Dscp {
        Dscp(class >> 2)
    }

    /// `class` with this code point; ECN stays.
    #[inline]
    pub const fn in_traffic_class(self, class: u8) -> u8 {
        self.0 << 2 | class & 3
    }

    /// The number.
    #[inline]
    pub const fn number(self) -> u8 {
        self.0
    }

    /// The colour that the drop precedence of a code point of assured forwarding stands for; `None` for
    /// all others (RFC 2597, section 6; RFC 2697 and 2698, section 4).
    pub const fn drop_precedence(self) -> Option<Colour> {
        match (self.0 >> 3, self.0 & 7) {
            (1..=4, 2) => Some(Colour::Green),
            (1..=4, 4) => Some(Colour::Yellow),
            (1..=4, 6) => Some(Colour::Red),
            _ => None,
        }
    }

    /// The code point of the same class of assured forwarding with the drop precedence of `colour`;
    /// any other code point as it is.
    #[inline]
    #[must_use]
    pub const fn with_drop_precedence(self, colour: Colour) -> Dscp {
        if self.drop_precedence().is_none() {
            return self;
        }
        Dscp(self.0 & 0x38 | (colour as u8 + 1) << 1)
    }
}

impl fmt::Display for Dscp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Dscp(number) = *self;
        if let Some((name, _)) = NAMES.iter().find(|(_, known)| *known == number) {
            return f.write_str(name);
        }
        match (self.drop_precedence(), number & 7) {
            (Some(precedence), _) => write!(f, "af{}{}", number >> 3, precedence as u8 + 1),
            (None, 0) => write!(f, "cs{}", number >> 3),
            (None, _) => write!(f, "{number}"),
        }
    }
}

impl FromStr for Dscp {
    type Err = DscpError;

    fn from_str(text: &str) -> Result<Dscp, DscpError> {
        if text == "cs0" {
            return Ok(Dscp(0));
        }
        // What is written is what is read.
        let named = (0..64).map(Dscp).find(|known| known.to_string() == text);
        let numbered = || text.parse().ok().and_then(Dscp::new);
        named.or_else(numbered).ok_or_else(|| DscpError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_rfcs() {
        // RFC 2597, section 6: the recommended code points, three to a class.
        let assured = [
            ("af11", 0b001_010),
            ("af12", 0b001_100),
            ("af13", 0b001_110),
            ("af21", 0b010_010),
            ("af33", 0b011_110),
            ("af42", 0b100_100),
            ("af43", 0b100_110),
        ];
        let others = [("default", 0), ("cs0", 0), ("cs6", 48), ("ef", 46), ("le", 1), ("17", 17)];
        for (name, number) in assured.into_iter().chain(others) {
            assert_eq!(name.parse(), Ok(Dscp(number)), "{name}");
        }
        for number in 0..64 {
            let dscp = Dscp(number);
            assert_eq!(dscp.to_string().parse(), Ok(dscp));
            assert_eq!(number.to_string().parse(), Ok(dscp));
        }
        for name in ["64", "af14", "af51", "cs8", "-1", "", "EF"] {
            let error = name.parse::<Dscp>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{name}` is not a code point")), "{error}");
        }
    }

    #[test]
    fn drop_precedence_is_the_colour() {
        let colours = [Colour::Green, Colour::Yellow, Colour::Red];
        let mut assured = 0;
        for number in 0..64 {
            let dscp = Dscp(number);
            for colour in colours {
                let marked = dscp.with_drop_precedence(colour);
                match dscp.drop_precedence() {
                    None => assert_eq!(marked, dscp),
                    Some(_) => {
                        assured += 1;
                        assert_eq!(marked.drop_precedence(), Some(colour));
                        assert_eq!(marked.number() >> 3, number >> 3);
                    }
                }
            }
        }
        assert_eq!(assured, 4 * 3 * 3);
    }

    #[test]
    fn ecn_is_not_touched() {
        let ef: Dscp = "ef".parse().unwrap();
        for class in 0..=u8::MAX {
            let marked = ef.in_traffic_class(class);
            assert_eq!((marked & 3, Dscp::of_traffic_class(marked)), (class & 3, ef));
        }
    }
}
