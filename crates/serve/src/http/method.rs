//! The methods of HTTP.

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Head,
    Put,
    /// Another one of RFC 9110 or 5789.
    Other,
    /// One of neither.
    Unknown,
}
