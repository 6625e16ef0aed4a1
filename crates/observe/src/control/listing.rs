//! Listings of a running instance: one form of requests, rows and pages for all of them.
//!
//! A row is data of the listing, which is JSON on the wire and for programs. Its type states its columns once: their names are those
//! of the JSON fields, the headings of the text, and the words of `--sort`.

mod cursor;
mod order;
mod selection;
mod sort_key;
mod text_table;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use self::order::{OrderError, SortOrder};
pub use self::selection::{Page, Selection};
pub use self::sort_key::SortKey;
pub use self::text_table::TextTable;
use super::{
    BackendLine, ConnectionLine, ConnectionsRequest, FlowLine, FlowsRequest, LaneLine, MappingLine,
    MappingsRequest, NeighbourLine, RouteLine, RuleLine, ShardLine,
};

/// Rows of a page unless more or fewer are requested.
pub const DEFAULT_LIMIT: u32 = 10_000;
/// Rows of a page at most.
pub const MOST_ROWS: u32 = 100_000;
/// Rows in a line of an answer.
pub const PIECE: usize = 200;

/// A request for a page of a listing. It is answered with lines of [`super::Reply::Rows`] and one of [`super::Reply::Listed`]. The
/// instance keeps nothing between two pages: the cursor holds the place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListRequest {
    /// The listing.
    pub of: Listing,
    /// An expression of pcap-filter(7) that rows must match; all rows without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// A column, and `,desc` behind it for the greatest first; the listing's own order without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sort: Option<String>,
    /// How many rows at most; [`DEFAULT_LIMIT`] without it, [`MOST_ROWS`] at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// The `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Only how many rows there are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub count: bool,
}

impl ListRequest {
    /// The first page of a listing in its own order.
    pub fn of(of: Listing) -> ListRequest {
        ListRequest { of, filter: None, sort: None, limit: None, cursor: None, count: false }
    }

    /// How many rows the page may have.
    pub fn limit(&self) -> usize {
        match self.count {
            true => 0,
            false => self.limit.unwrap_or(DEFAULT_LIMIT).min(MOST_ROWS) as usize,
        }
    }
}

/// The listings, with conditions that a filter does not express.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Listing {
    /// The connections of a service over TCP. `limit` of the conditions has no effect.
    Connections(ConnectionsRequest),
    /// The rules of functions.
    Rules,
    /// The backends of a load balancer.
    Backends,
    /// The neighbours on the links of devices.
    Neighbours,
    /// The routes of the network layer.
    Routes,
    /// The lanes.
    Lanes,
    /// The shards.
    Shards,
    /// The flows of a chain.
    Flows(FlowsRequest),
    /// The mappings of a NAT.
    Mappings(MappingsRequest),
}

/// Rows of one listing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "listing", content = "rows", rename_all = "snake_case")]
pub enum Rows {
    /// Connections of a service over TCP.
    Connections(Vec<ConnectionLine>),
    /// Rules of functions.
    Rules(Vec<RuleLine>),
    /// Backends of a load balancer.
    Backends(Vec<BackendLine>),
    /// Neighbours on the links of devices.
    Neighbours(Vec<NeighbourLine>),
    /// Routes of the network layer.
    Routes(Vec<RouteLine>),
    /// Lanes.
    Lanes(Vec<LaneLine>),
    /// Shards.
    Shards(Vec<ShardLine>),
    /// Flows of a chain.
    Flows(Vec<FlowLine>),
    /// Mappings of a NAT.
    Mappings(Vec<MappingLine>),
}

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

    /// Rows as a reply has them.
    fn into_rows(rows: Vec<Self>) -> Rows;

    /// The rows of a reply; `None` when they belong to another listing.
    fn from_rows(rows: Rows) -> Option<Vec<Self>>;
}

/// Implements [`ListingRow::into_rows`] and [`ListingRow::from_rows`] by a variant of [`Rows`].
macro_rules! rows_are {
    ($variant:ident) => {
        fn into_rows(rows: Vec<Self>) -> $crate::control::Rows {
            $crate::control::Rows::$variant(rows)
        }

        fn from_rows(rows: $crate::control::Rows) -> Option<Vec<Self>> {
            match rows {
                $crate::control::Rows::$variant(rows) => Some(rows),
                _ => None,
            }
        }
    };
}
pub(super) use rows_are;

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
