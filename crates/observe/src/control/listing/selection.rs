//! The rows of one page, chosen while rows come in any order.

use std::collections::{BTreeMap, HashMap};

use super::cursor::Cursor;
use super::order::Position;
use super::{ListingRow, OrderError, PageRequest, SortKey, SortOrder};

/// Collects a page: holds no more rows than the page may have, however many are offered. Adding a row costs the logarithm of that.
#[derive(Debug)]
pub struct Selection<R: 'static> {
    order: SortOrder<R>,
    /// The end of the page before.
    after: Option<Position>,
    limit: usize,
    rows: BTreeMap<Position, R>,
    /// The position of each row by its identity.
    positions: HashMap<SortKey, Position>,
    matched: u64,
    has_more: bool,
}

/// A page of a listing.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<R> {
    /// The rows, in the requested order.
    pub rows: Vec<R>,
    /// How many rows all pages have.
    pub matched: u64,
    /// The cursor of the next page; `None` at the last one.
    pub next: Option<String>,
}

impl<R: ListingRow> Selection<R> {
    /// The page of a request, without rows so far.
    ///
    /// # Errors
    /// When the request names no column of the listing, or no cursor of it.
    pub fn new(request: &impl PageRequest) -> Result<Selection<R>, OrderError> {
        let (order, after) = SortOrder::of(request)?;
        Ok(Selection {
            order,
            after,
            limit: request.limit(),
            rows: BTreeMap::new(),
            positions: HashMap::new(),
            matched: 0,
            has_more: false,
        })
    }

    /// Offers a row that matches. It replaces one of the page with the same identity: a row that moved while rows were collected
    /// counts once.
    pub fn add(&mut self, row: R) {
        self.matched += 1;
        if self.limit == 0 {
            return;
        }
        let position = self.order.position(&row);
        if let Some(earlier) = self.positions.remove(&position.id) {
            self.rows.remove(&earlier);
            self.matched -= 1;
        }
        if self.after.as_ref().is_some_and(|after| position <= *after) {
            return;
        }
        let is_beyond = |last: (&Position, &R)| position > *last.0;
        if self.rows.len() == self.limit && self.rows.last_key_value().is_some_and(is_beyond) {
            self.has_more = true;
            return;
        }
        self.positions.insert(position.id.clone(), position.clone());
        self.rows.insert(position, row);
        if self.rows.len() > self.limit {
            let last = self.rows.pop_last();
            last.and_then(|(position, _)| self.positions.remove(&position.id));
            self.has_more = true;
        }
    }

    /// The page.
    pub fn finish(self) -> Page<R> {
        let last = self.rows.last_key_value().map(|(position, _)| position.clone());
        let next = last.filter(|_| self.has_more).map(|Position { key, id, .. }| {
            Cursor { sort: self.order.name(), key, id }.to_string()
        });
        Page { rows: self.rows.into_values().collect(), matched: self.matched, next }
    }
}

impl<R: ListingRow> Extend<R> for Selection<R> {
    fn extend<I: IntoIterator<Item = R>>(&mut self, rows: I) {
        rows.into_iter().for_each(|row| self.add(row));
    }
}
