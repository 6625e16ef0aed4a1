//! The parts of a page about profiles of runs: what keeps them from scaling.

use std::fs;
use std::path::Path;

use rheostat_observe::profile::{Bottleneck, ScalingProfile};
use rheostat_plot::{Axis, Page, Rank, RankChart, Table, Unit};

/// Causes that are drawn; all of them are in the table.
const DRAWN: usize = 8;

/// The profiles in a file, each a line of what `rheo profile --json` prints; `None` if it holds something else.
pub(super) fn read(path: &Path) -> Option<Vec<ScalingProfile>> {
    let text = fs::read_to_string(path).ok()?;
    let profiles: Option<Vec<_>> =
        text.lines().map(|line| serde_json::from_str(line).ok()).collect();
    profiles.filter(|profiles| !profiles.is_empty())
}

/// What the section of a profile is called.
pub(super) fn title(profile: &ScalingProfile) -> String {
    let functions = match profile.functions.as_slice() {
        [] => "a chain without functions".to_owned(),
        functions => functions.join(", "),
    };
    format!("What keeps {functions} from scaling, on {}", super::sentence::lanes(lanes(profile)))
}

pub(super) fn id(number: usize) -> String {
    format!("profile-{}", number + 1)
}

/// Writes the section.
pub(super) fn write(page: &mut Page, number: usize, profile: &ScalingProfile) {
    page.section(&id(number), &title(profile), "profiled", false);
    page.facts(facts(profile));
    for note in &profile.notes {
        page.text("", &sentence(note));
    }
    if profile.causes.is_empty() {
        return;
    }
    page.figure("Causes of aborts", &says(profile), &ranking(profile));
    page.table("All causes, with their recipes", true, &table(&profile.causes));
}

fn lanes(profile: &ScalingProfile) -> u16 {
    u16::try_from(profile.lanes).unwrap_or(u16::MAX)
}

fn facts(profile: &ScalingProfile) -> Vec<(&'static str, String)> {
    let count = |count: u64| Unit::Count.show(count as f64);
    let time = Unit::Seconds.show(profile.seconds);
    let mut facts = vec![("run", format!("{time}, {} packets", count(profile.packets)))];
    if profile.shares {
        let rate = Unit::Share.show(profile.abort_rate);
        let (commits, aborts) = (count(profile.commits), count(profile.aborts));
        let attempts =
            format!("{commits} took effect, {aborts} were undone: {rate} of all attempts");
        facts.push(("transactions", attempts));
        let (lost, busy) =
            (Unit::Seconds.show(profile.lost_seconds), Unit::Seconds.show(profile.busy_seconds));
        facts.push(("lost", format!("up to {lost} of the {busy} that lanes worked")));
        facts.push(("ran alone", count(profile.serial)));
    }
    if let Some(imbalance) = profile.imbalance {
        let imbalance = Unit::Plain.show(imbalance);
        facts.push(("imbalance", format!("{imbalance}: the busiest lane's packets over the mean")));
    }
    facts
}

/// What the ranking shows: its first entry, and what to do about it.
fn says(profile: &ScalingProfile) -> String {
    let first = &profile.causes[0];
    let share = Unit::Share.show(first.share);
    format!(
        "{share} of the aborts: {}. To do: {}; {} times the rate is to be expected then.",
        first.cause,
        first.recipe,
        Unit::Plain.show(first.gain)
    )
}

fn ranking(profile: &ScalingProfile) -> RankChart {
    let chart = RankChart::new("cause", Axis::linear("share of aborts", Unit::Share));
    profile.causes.iter().take(DRAWN).fold(chart, |chart, cause| {
        chart.with(Rank {
            name: format!("{} `{}`: {}", cause.kind, cause.object, cause.operations),
            detail: cause.source.clone(),
            value: cause.share,
        })
    })
}

fn table(causes: &[Bottleneck]) -> Table {
    let head =
        ["object", "operations", "share", "aborts", "recipe", "expected rate", "because", "at"];
    let row = |cause: &Bottleneck| {
        vec![
            format!("{} `{}`", cause.kind, cause.object),
            cause.operations.clone(),
            Unit::Share.show(cause.share),
            Unit::Count.show(cause.aborts as f64),
            cause.recipe.clone(),
            format!("× {}", Unit::Plain.show(cause.gain)),
            cause.cause.clone(),
            cause.source.clone(),
        ]
    };
    Table { head: head.map(str::to_owned).to_vec(), rows: causes.iter().map(row).collect() }
}

fn sentence(note: &str) -> String {
    let mut letters = note.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{ResultFile, find, page};

    /// Made up for this test: no run was so.
    pub(super) fn profile() -> ScalingProfile {
        let cause = |operations: &str, share: f64| Bottleneck {
            object: "counters".into(),
            kind: "Distributed".into(),
            operations: operations.into(),
            cause: "the value was older than allowed & had to be merged".into(),
            source: "crates/functions/src/antiddos.rs:88".into(),
            share,
            aborts: (1e6 * share) as u64,
            lost_seconds: share,
            recipe: "raise the staleness: [function.antiddos] staleness".into(),
            others: Vec::new(),
            gain: 1.5,
        };
        ScalingProfile {
            functions: vec!["antiddos".into()],
            lanes: 2,
            seconds: 3.0,
            packets: 2_000_000,
            shares: true,
            commits: 2_000_000,
            aborts: 1_000_000,
            abort_rate: 1.0 / 3.0,
            serial: 12,
            sampled: 3_906,
            busy_seconds: 6.0,
            lost_seconds: 2.0,
            causes: vec![cause("read / update", 0.9), cause("update / update", 0.1)],
            imbalance: Some(1.02),
            notes: vec!["look <twice>".into()],
        }
    }

    #[test]
    fn a_profile_kept_beside_results_gets_its_section_with_the_recipe() {
        let folder = tempfile::tempdir().unwrap();
        let line = serde_json::to_string(&profile()).unwrap() + "\n";
        fs::write(folder.path().join("profile.jsonl"), line).unwrap();
        fs::write(folder.path().join("rows.jsonl"), "{\"chain\":\"nat\"}\n").unwrap();
        let ResultFile { results, profiles, rows, unread } =
            find(&[folder.path().to_owned()]).unwrap();
        assert_eq!((results.len(), profiles.len(), rows.len(), unread.len()), (0, 1, 1, 0));
        let html = page(&[], &[profiles[0].1.clone()], &[]);
        let body = html.split_once("<!DOCTYPE html>").unwrap().1;
        let document = roxmltree::Document::parse(body).unwrap();
        let texts: String = document.descendants().filter_map(|node| node.text()).collect();
        for wanted in [
            "What keeps antiddos from scaling, on 2 lanes",
            "[function.antiddos] staleness",
            "Distributed `counters`: read / update",
            "antiddos.rs:88",
            "Look <twice>.",
        ] {
            assert!(texts.contains(wanted), "{wanted} is not in {texts}");
        }
        let bars = document.descendants().filter(|node| node.attribute("class") == Some("bar"));
        assert_eq!(bars.count(), 2);
    }

    #[test]
    fn a_run_without_conflicts_has_a_section_without_figures() {
        let calm = ScalingProfile { causes: Vec::new(), shares: false, ..profile() };
        let html = page(&[], &[calm], &[]);
        assert!(!html.contains("<figure>") && html.contains("imbalance"), "{html}");
    }
}
