//! Lines of code, numbered, so that one fits into the word of a cell.

use std::fmt;
use std::panic::Location;
use std::sync::{Mutex, PoisonError};

/// A line of an author's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Site {
    /// The file, as the compiler was given it.
    pub file: &'static str,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

impl From<&Location<'static>> for Site {
    fn from(location: &Location<'static>) -> Site {
        Site { file: location.file(), line: location.line(), column: location.column() }
    }
}

/// The number of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct SiteId(pub(super) u16);

impl SiteId {
    pub(super) const BITS: u32 = u16::BITS;
    /// Lines beyond those that can be numbered.
    const NONE: SiteId = SiteId(u16::MAX);
}

/// All lines that were ever numbered in a run. Behind a lock: a lane comes here once for each of its lines.
#[derive(Debug, Default)]
pub(super) struct Sites(Mutex<Vec<Site>>);

impl Sites {
    fn number(&self, site: Site) -> SiteId {
        let mut sites = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = sites.iter().position(|known| *known == site) {
            return SiteId(at as u16);
        }
        if sites.len() >= usize::from(SiteId::NONE.0) {
            return SiteId::NONE;
        }
        sites.push(site);
        SiteId(sites.len() as u16 - 1)
    }

    pub(super) fn get(&self, id: SiteId) -> Option<Site> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(usize::from(id.0)).copied()
    }
}

/// The lines that a lane has used, by where the compiler put them: a power of two of places, half of them empty at least,
/// so that lines never push each other out.
#[derive(Debug)]
pub(super) struct SiteCache {
    places: Vec<Option<(&'static Location<'static>, SiteId)>>,
    known: usize,
}

impl SiteCache {
    pub(super) fn new() -> SiteCache {
        SiteCache { places: vec![None; 64], known: 0 }
    }

    /// The number of a line.
    #[inline]
    pub(super) fn number(&mut self, site: &'static Location<'static>, sites: &Sites) -> SiteId {
        let mut at = self.first_place(site);
        while let Some((known, id)) = self.places[at] {
            if std::ptr::eq(known, site) {
                return id;
            }
            at = (at + 1) % self.places.len();
        }
        self.learn(site, sites)
    }

    /// The place of a line, or the first of those behind which it may be. Lines are three words of the compiler's each.
    #[inline]
    fn first_place(&self, site: &'static Location<'static>) -> usize {
        (std::ptr::from_ref(site).addr() >> 3) & (self.places.len() - 1)
    }

    #[cold]
    fn learn(&mut self, site: &'static Location<'static>, sites: &Sites) -> SiteId {
        let id = sites.number(site.into());
        self.known += 1;
        if 2 * self.known > self.places.len() {
            let more = vec![None; 2 * self.places.len()];
            let all = std::mem::replace(&mut self.places, more);
            all.into_iter().flatten().for_each(|(site, id)| self.put(site, id));
        }
        self.put(site, id);
        id
    }

    fn put(&mut self, site: &'static Location<'static>, id: SiteId) {
        let mut at = self.first_place(site);
        while self.places[at].is_some() {
            at = (at + 1) % self.places.len();
        }
        self.places[at] = Some((site, id));
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[track_caller]
    fn here() -> &'static Location<'static> {
        Location::caller()
    }

    /// However many lines there are, each is numbered once, and the lock is not needed for it again.
    #[test]
    fn a_lane_remembers_all_of_its_lines() {
        #[rustfmt::skip]
        let lines = [
            here(), here(), here(), here(), here(), here(), here(), here(), here(), here(),
            here(), here(), here(), here(), here(), here(), here(), here(), here(), here(),
            here(), here(), here(), here(), here(), here(), here(), here(), here(), here(),
            here(), here(), here(), here(), here(), here(), here(), here(), here(), here(),
        ];
        let (sites, mut cache) = (Sites::default(), SiteCache::new());
        let first = lines.map(|line| cache.number(line, &sites).0);
        assert_eq!(first, std::array::from_fn(|at| at as u16));
        // A miss of the cache would ask the empty table, which would give other numbers.
        let mut reversed = lines;
        reversed.reverse();
        let again = reversed.map(|line| cache.number(line, &Sites::default()).0);
        assert_eq!(again, std::array::from_fn(|at| lines.len() as u16 - 1 - at as u16));
    }
}
