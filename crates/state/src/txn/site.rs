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

const CACHED: usize = 64;

/// The lines that a lane has used, by where the compiler put them.
#[derive(Debug)]
pub(super) struct SiteCache([Option<(&'static Location<'static>, SiteId)>; CACHED]);

impl SiteCache {
    pub(super) fn new() -> SiteCache {
        SiteCache([None; CACHED])
    }

    #[inline]
    pub(super) fn number(&mut self, site: &'static Location<'static>, sites: &Sites) -> SiteId {
        let address = std::ptr::from_ref(site);
        let entry = &mut self.0[(address.addr() >> 3) % CACHED];
        match entry {
            Some((known, id)) if std::ptr::eq(*known, address) => *id,
            _ => {
                let id = sites.number(site.into());
                *entry = Some((site, id));
                id
            }
        }
    }
}
