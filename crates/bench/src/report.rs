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
mod profiles;
mod section;
mod sentence;
#[cfg(test)]
mod tests;
mod versus;

pub use files::{Found, ReportError, find, one};
pub use page::Page;

use rheostat_observe::profile::ScalingProfile;

use crate::record::Results;
use figures::both::Both;

/// The page about these results and profiles, a section for each.
pub fn page(results: &[Results], profiled: &[ScalingProfile]) -> String {
    let title = match (results, profiled) {
        ([only], []) => format!("{} – rheostat", only.preface.title),
        ([], [only]) => format!("{} – rheostat", profiles::title(only)),
        _ => "rheostat: what was measured and simulated".to_owned(),
    };
    let mut page = Page::new(&title);
    if results.len() + profiled.len() > 1 {
        let of_profiles = profiled.iter().enumerate();
        let of_profiles = of_profiles.map(|(at, of)| (profiles::id(at), profiles::title(of)));
        page.contents(&section::links(results).into_iter().chain(of_profiles).collect::<Vec<_>>());
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
    page.finish()
}
