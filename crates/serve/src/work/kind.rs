//! What the time of a request is spent on.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkKind {
    /// Nothing: the reply is sent at once.
    Null,
    /// Square roots: bound by the processor.
    Roots,
    /// Bytes of a buffer, 63 apart: 63 of 64 reads touch another cache line.
    Strided,
    /// Bytes of a buffer at random, each independent of the one before.
    Random,
    /// Words of a buffer in order.
    Stream,
    /// Cache lines of a buffer at random, each named by the one before.
    Chase,
}

const NAMES: [(&str, WorkKind); 6] = [
    ("null", WorkKind::Null),
    ("roots", WorkKind::Roots),
    ("strided", WorkKind::Strided),
    ("random", WorkKind::Random),
    ("stream", WorkKind::Stream),
    ("chase", WorkKind::Chase),
];

/// Why a kind of work could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no work `{0}`; write null, roots, strided, random, stream or chase")]
pub struct UnknownWork(String);

impl WorkKind {
    /// Whether it reads a buffer.
    pub fn reads_memory(self) -> bool {
        !matches!(self, WorkKind::Null | WorkKind::Roots)
    }
}

impl FromStr for WorkKind {
    type Err = UnknownWork;

    fn from_str(name: &str) -> Result<WorkKind, UnknownWork> {
        let found = NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, kind)| *kind).ok_or_else(|| UnknownWork(name.to_owned()))
    }
}

impl fmt::Display for WorkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = NAMES.iter().find(|(_, kind)| kind == self);
        f.write_str(own.map_or("", |(name, _)| name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_names_that_are_read_back() {
        for (name, kind) in NAMES {
            assert_eq!((name.parse(), kind.to_string()), (Ok(kind), name.to_owned()));
        }
        assert!("root".parse::<WorkKind>().unwrap_err().to_string().contains("roots"));
    }
}
