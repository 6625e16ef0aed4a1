//! The listings of an instance: their requests, and the replies with their rows.

use serde::{Deserialize, Serialize};

use super::listing::{DEFAULT_LIMIT, ListingRow, MOST_ROWS, PageRequest};
use super::{
    BackendLine, ConnectionLine, ConnectionsRequest, FlowLine, FlowsRequest, LaneLine, MappingLine,
    MappingsRequest, NeighbourLine, RouteLine, RuleLine, ShardLine,
};

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
}

impl PageRequest for ListRequest {
    fn sort(&self) -> Option<&str> {
        self.sort.as_deref()
    }

    fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }

    fn limit(&self) -> usize {
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

/// The type of the rows of a listing that an instance has.
pub trait ListedRow: ListingRow {
    /// Rows as a reply has them.
    fn into_rows(rows: Vec<Self>) -> Rows;

    /// The rows of a reply; `None` when they belong to another listing.
    fn from_rows(rows: Rows) -> Option<Vec<Self>>;
}

macro_rules! rows {
    ($($(#[$doc:meta])* $variant:ident($line:ty),)*) => {
        /// Rows of one listing.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "listing", content = "rows", rename_all = "snake_case")]
        pub enum Rows {
            $($(#[$doc])* $variant(Vec<$line>),)*
        }

        $(impl ListedRow for $line {
            fn into_rows(rows: Vec<Self>) -> Rows {
                Rows::$variant(rows)
            }

            fn from_rows(rows: Rows) -> Option<Vec<Self>> {
                match rows {
                    Rows::$variant(rows) => Some(rows),
                    _ => None,
                }
            }
        })*
    };
}

rows! {
    /// Connections of a service over TCP.
    Connections(ConnectionLine),
    /// Rules of functions.
    Rules(RuleLine),
    /// Backends of a load balancer.
    Backends(BackendLine),
    /// Neighbours on the links of devices.
    Neighbours(NeighbourLine),
    /// Routes of the network layer.
    Routes(RouteLine),
    /// Lanes.
    Lanes(LaneLine),
    /// Shards.
    Shards(ShardLine),
    /// Flows of a chain.
    Flows(FlowLine),
    /// Mappings of a NAT.
    Mappings(MappingLine),
}
