//! The internet checksum (RFC 1071): computed, checked, and updated incrementally (RFC 1624).

mod delta;
mod sum;
mod validity;

pub use delta::Delta;
pub use sum::Sum;
pub use validity::{Validity, evaluate, evaluate_packet};

/// The checksum of `bytes`; zero when they contain their own right one.
#[inline]
pub fn of(bytes: &[u8]) -> u16 {
    let mut sum = Sum::default();
    sum.add(bytes);
    sum.checksum()
}

/// What UDP sends for a computed checksum: zero means that there is none (RFC 768).
#[inline]
pub const fn for_udp(checksum: u16) -> u16 {
    if checksum == 0 { 0xffff } else { checksum }
}
