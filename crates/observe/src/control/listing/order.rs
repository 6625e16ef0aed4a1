//! The order of a listing's rows.

use thiserror::Error;

use super::cursor::Cursor;
use super::{Column, ListingRow, PageRequest, SortKey};

/// A column and a direction, as `--sort` has them.
#[derive(Debug)]
pub struct SortOrder<R: 'static> {
    /// `None` for the listing's own order.
    column: Option<&'static Column<R>>,
    is_descending: bool,
}

/// Why there is no such page.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OrderError {
    /// The listing has no such column.
    #[error("there is no column `{column}` to sort by; the columns are {columns}")]
    Column {
        /// The name.
        column: String,
        /// The names that there are.
        columns: String,
    },
    /// The word behind the column is no direction.
    #[error("`{0}` is no direction: write the column alone, or `,desc` behind it")]
    Direction(String),
    /// The cursor is none that a page of the listing ended with.
    #[error("`{0}` is no cursor of this listing; give the one that the page before ended with")]
    Cursor(String),
    /// The cursor is of pages in another order.
    #[error("the cursor is of a listing sorted by `{0}`; give the same --sort, or none")]
    OtherOrder(String),
}

impl<R: ListingRow> SortOrder<R> {
    /// The order with this name, which is a column or a column and `,desc`; the listing's own without one.
    ///
    /// # Errors
    /// When there is no such column.
    pub fn named(name: Option<&str>) -> Result<SortOrder<R>, OrderError> {
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return Ok(SortOrder { column: None, is_descending: false });
        };
        let (column, direction) = name.split_once(',').unwrap_or((name, "asc"));
        let is_descending = match direction {
            "asc" => false,
            "desc" => true,
            _ => return Err(OrderError::Direction(direction.to_owned())),
        };
        let found = R::COLUMNS.iter().find(|known| known.name == column);
        let column = found.ok_or_else(|| OrderError::Column {
            column: column.to_owned(),
            columns: R::COLUMNS.iter().map(|column| column.name).collect::<Vec<_>>().join(", "),
        })?;
        Ok(SortOrder { column: Some(column), is_descending })
    }

    /// The order of a request, and the position behind which its page begins.
    pub(super) fn of(
        request: &impl PageRequest,
    ) -> Result<(SortOrder<R>, Option<Position>), OrderError> {
        let Some(text) = request.cursor() else {
            return Ok((SortOrder::named(request.sort())?, None));
        };
        let cursor = Cursor::parse(text).ok_or_else(|| OrderError::Cursor(text.to_owned()))?;
        if let Some(sort) = request.sort()
            && sort != cursor.sort
        {
            return Err(OrderError::OtherOrder(cursor.sort));
        }
        let order = SortOrder::named(Some(&cursor.sort))?;
        let is_descending = order.is_descending;
        Ok((order, Some(Position { key: cursor.key, id: cursor.id, is_descending })))
    }

    /// The order's name; empty for the listing's own.
    pub(super) fn name(&self) -> String {
        let direction = if self.is_descending { ",desc" } else { "" };
        self.column.map_or_else(String::new, |column| format!("{}{direction}", column.name))
    }

    /// The position of a row.
    pub(super) fn position(&self, row: &R) -> Position {
        let key = self.column.map_or_else(SortKey::none, |column| (column.key)(row));
        Position { key, id: row.id(), is_descending: self.is_descending }
    }
}

/// Where a row stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) key: SortKey,
    pub(super) id: SortKey,
    is_descending: bool,
}

impl Ord for Position {
    fn cmp(&self, other: &Position) -> std::cmp::Ordering {
        let keys = self.key.cmp(&other.key);
        let keys = if self.is_descending { keys.reverse() } else { keys };
        keys.then_with(|| self.id.cmp(&other.id))
    }
}

impl PartialOrd for Position {
    fn partial_cmp(&self, other: &Position) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
