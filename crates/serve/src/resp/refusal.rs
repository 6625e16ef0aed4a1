//! Why a command is refused.

/// A refusal; its text is the reply.
pub(super) enum Refusal {
    Arguments,
    Syntax,
    NoInteger,
    /// There is no more room in the store.
    Full,
    TooLong,
    /// There is no subcommand of this name.
    Subcommand(Vec<u8>),
    /// The whole line of the reply.
    Other(String),
}

/// The number that `text` is.
pub(super) fn number(text: &[u8]) -> Result<i64, Refusal> {
    let text = std::str::from_utf8(text).map_err(|_| Refusal::NoInteger)?;
    text.parse().map_err(|_| Refusal::NoInteger)
}
