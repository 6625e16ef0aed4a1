//! What results come to, for people: a page with figures, and the ratios of two results.

mod cells;
pub mod compare;
mod estimate;
mod figures;
mod files;
mod metric;
mod profiles;
pub mod requests;
mod rows;
mod section;
mod sentence;
mod shards;
#[cfg(test)]
mod tests;
mod versus;

pub use files::{ReportError, ResultFile, find, one, requests as request_rows};
pub use rows::RowFile;

use rheostat_observe::profile::ScalingProfile;

use crate::record::Results;
use figures::both::Both;
use rheostat_plot::Page;

/// The page about these results, profiles and files of rows, a section for each.
pub fn page(results: &[Results], profiled: &[ScalingProfile], tables: &[RowFile]) -> String {
    let title = match (results, profiled, tables) {
        ([only], [], []) => format!("{} – rheostat", only.file_header.title),
        ([], [only], []) => format!("{} – rheostat", profiles::title(only)),
        ([], [], [only]) => format!("{} – rheostat", rows::title(only)),
        _ => "rheostat: what was measured and simulated".to_owned(),
    };
    let mut page = Page::new(&title);
    if results.len() + profiled.len() + tables.len() > 1 {
        let of_profiles = profiled.iter().enumerate();
        let of_profiles = of_profiles.map(|(at, of)| (profiles::id(at), profiles::title(of)));
        let of_rows = tables.iter().enumerate().map(|(at, of)| (rows::id(at), rows::title(of)));
        let links = section::links(results).into_iter().chain(of_profiles).chain(of_rows);
        page.contents(&links.collect::<Vec<_>>());
    }
    for (number, results) in results.iter().enumerate() {
        section::write(&mut page, number, results);
    }
    for (number, both) in Both::all(results).iter().enumerate() {
        section::write_both(&mut page, number, both);
    }
    for (number, profile) in profiled.iter().enumerate() {
        profiles::write(&mut page, number, profile);
    }
    for (number, file) in tables.iter().enumerate() {
        rows::write(&mut page, number, file);
    }
    page.finish()
}
