//! What results come to, for people: a page with figures, and the ratios of two results.

mod cells;
#[cfg(test)]
mod colours;
pub mod compare;
mod estimate;
mod figures;
mod files;
mod metric;
mod page;
pub mod plot;
mod section;
mod sentence;
#[cfg(test)]
mod tests;
mod versus;

pub use files::{Found, ReportError, find, one};
pub use page::Page;

use crate::record::Results;
use figures::both::Both;

/// The page about these results, a section for each.
pub fn page(results: &[Results]) -> String {
    let title = match results {
        [only] => format!("{} – rheostat", only.preface.title),
        _ => "rheostat: what was measured and simulated".to_owned(),
    };
    let mut page = Page::new(&title);
    if results.len() > 1 {
        page.contents(&section::links(results));
    }
    for (number, results) in results.iter().enumerate() {
        section::write(&mut page, number, results);
    }
    for (number, both) in Both::all(results).iter().enumerate() {
        section::write_both(&mut page, number, both);
    }
    page.finish()
}
