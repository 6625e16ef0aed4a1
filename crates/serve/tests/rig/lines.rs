//! Requests that are lines.

use rheostat_serve::Parsed;

/// The first line of `bytes`, with its end, as a request of class 0.
pub(crate) fn parse_line<R>(bytes: &[u8]) -> Parsed<Vec<u8>, R> {
    match bytes.iter().position(|byte| *byte == b'\n') {
        Some(end) => {
            let request = bytes[..=end].to_vec();
            Parsed::Request { request, len: end + 1, class: 0 }
        }
        None => Parsed::Need(0),
    }
}
