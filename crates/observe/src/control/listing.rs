//! Listings of a running instance: one form of requests, rows and pages for all of them.
//!
//! A row is data of the listing, which is JSON on the wire and for programs. Its type states its columns once: their names are those
//! of the JSON fields, the headings of the text, and the words of `--sort`.

mod cursor;
mod order;
mod selection;
mod sort_key;
mod text_table;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use self::order::{OrderError, SortOrder};
pub use self::selection::{Page, Selection};
pub use self::sort_key::SortKey;
pub use self::text_table::TextTable;

/// Rows of a page unless more or fewer are requested.
pub const DEFAULT_LIMIT: u32 = 10_000;
/// Rows of a page at most.
pub const MOST_ROWS: u32 = 100_000;
/// Rows in a line of an answer.
pub const PIECE: usize = 200;

/// The type of a listing's rows.
pub trait ListingRow: Serialize + DeserializeOwned + Sized + 'static {
    /// The columns, in the order of the text.
    const COLUMNS: &'static [Column<Self>];

    /// Identifies the row in its listing. Rows are in this order unless another is requested, and rows with the same value of the
    /// requested column are, too.
    fn id(&self) -> SortKey;

    /// A second line of text below the row.
    fn details(&self) -> Option<String> {
        None
    }
}

/// What a page is chosen by.
pub trait PageRequest {
    /// The order, as `--sort` has it.
    fn sort(&self) -> Option<&str>;

    /// The end of the page before.
    fn cursor(&self) -> Option<&str>;

    /// How many rows the page may have.
    fn limit(&self) -> usize;
}

/// A column of a listing.
#[derive(Debug)]
pub struct Column<R> {
    /// Its name: the JSON field, the heading, and the word of `--sort`.
    pub name: &'static str,
    /// The cell as text; `None` for a column that the table leaves out.
    pub text: Option<fn(&R) -> String>,
    /// Whether cells end at the same place, as numbers do.
    pub is_right: bool,
    /// What rows are sorted by.
    pub key: fn(&R) -> SortKey,
}

impl<R> Column<R> {
    /// A column of words.
    pub const fn left(
        name: &'static str,
        text: fn(&R) -> String,
        key: fn(&R) -> SortKey,
    ) -> Column<R> {
        Column { name, text: Some(text), is_right: false, key }
    }

    /// A column of numbers.
    pub const fn right(
        name: &'static str,
        text: fn(&R) -> String,
        key: fn(&R) -> SortKey,
    ) -> Column<R> {
        Column { name, text: Some(text), is_right: true, key }
    }

    /// A column that the table leaves out, by which rows can be sorted.
    pub const fn hidden(name: &'static str, key: fn(&R) -> SortKey) -> Column<R> {
        Column { name, text: None, is_right: false, key }
    }
}

#[cfg(test)]
mod tests;
