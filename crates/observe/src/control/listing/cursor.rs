//! The text that names the end of a page.

use std::fmt;

use super::SortKey;

/// The order of the listing, and the position of the last row of a page. It holds all that the next page needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) sort: String,
    pub(super) key: SortKey,
    pub(super) id: SortKey,
}

impl Cursor {
    /// Reads what [`fmt::Display`] has written.
    pub(super) fn parse(text: &str) -> Option<Cursor> {
        let mut parts = text.split(':');
        let mut next = || parts.next();
        let (sort, key, id) = (next()?.to_owned(), bytes(next()?)?, bytes(next()?)?);
        parts.next().is_none().then_some(Cursor { sort, key, id })
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.sort)?;
        for SortKey(bytes) in [&self.key, &self.id] {
            f.write_str(":")?;
            bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        }
        Ok(())
    }
}

fn bytes(digits: &str) -> Option<SortKey> {
    let pairs = digits.as_bytes().chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
        u8::from_str_radix(pair, 16).ok()
    });
    pairs.collect::<Option<Vec<_>>>().map(SortKey)
}
