//! The dashboard and the alert rules name metrics that exist, with labels that they have.

use std::collections::BTreeSet;

use super::*;

const DASHBOARD: &str = include_str!("../../../../../packaging/monitoring/dashboard.json");
const ALERTS: &str = include_str!("../../../../../packaging/monitoring/alerts.yml");

/// Labels of a histogram's buckets, and those that Prometheus adds.
const OTHERS: [&str; 3] = ["le", "instance", "job"];

/// The expressions of a dashboard.
fn of_dashboard(value: &serde_json::Value, found: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                if let (true, Some(text)) = (name == "expr" || name == "definition", value.as_str())
                {
                    found.push(text.to_owned());
                }
                of_dashboard(value, found);
            }
        }
        serde_json::Value::Array(values) => {
            values.iter().for_each(|value| of_dashboard(value, found));
        }
        _ => {}
    }
}

fn expressions() -> Vec<String> {
    let mut all = Vec::new();
    of_dashboard(&serde_json::from_str(DASHBOARD).unwrap(), &mut all);
    let rules = ALERTS.lines().filter_map(|line| line.trim().strip_prefix("expr: "));
    all.extend(rules.map(str::to_owned));
    all
}

/// The family of a sample's name, histograms' parts included.
fn family_of(name: &str) -> Option<&'static Family> {
    families().find(|family| {
        let known = family.sample_name();
        let is_histogram = matches!(family.kind, family::Kind::Times | family::Kind::Sizes);
        let parts = ["_bucket", "_count", "_sum"].map(|end| format!("{known}{end}"));
        if is_histogram { parts.iter().any(|part| part == name) } else { known == name }
    })
}

/// The words of an expression, each with the text behind it.
fn words(expression: &str) -> impl Iterator<Item = (&str, &str)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut rest = expression;
    std::iter::from_fn(move || {
        let start = rest.find(is_word)?;
        let end = rest[start..].find(|c| !is_word(c)).map_or(rest.len(), |end| start + end);
        let word = &rest[start..end];
        rest = &rest[end..];
        Some((word, rest))
    })
}

#[test]
fn each_metric_of_the_dashboard_and_of_the_alerts_is_a_family_with_the_labels_used() {
    let mut named = BTreeSet::new();
    for expression in expressions() {
        let mut labels: BTreeSet<&str> = OTHERS.into();
        for (word, _) in words(&expression).filter(|(word, _)| word.starts_with("rheo_")) {
            let family = family_of(word).unwrap_or_else(|| panic!("{word} is no metric"));
            labels.extend(family.labels);
            named.insert(family.name);
        }
        for part in expression.split("by (").skip(1) {
            for label in part.split(')').next().unwrap().split(',').map(str::trim) {
                assert!(labels.contains(label), "{label} in {expression}");
            }
        }
        for (word, _) in words(&expression).filter(|(_, rest)| {
            (rest.starts_with('=') || rest.starts_with("!=")) && !rest.starts_with("==")
        }) {
            assert!(labels.contains(word), "{word} in {expression}");
        }
    }
    assert!(named.len() > 25, "only {named:?}");
}

#[test]
fn the_reasons_of_the_alerts_are_reasons() {
    let mut known = 0;
    for part in ALERTS.split("{reason=").skip(1) {
        let names = part.split('"').nth(1).unwrap();
        for name in names.split('|') {
            assert!(DropReason::named(name).is_some(), "{name}");
            known += 1;
        }
    }
    assert_eq!(known, 4);
}

#[test]
fn a_wrong_name_is_no_family() {
    for name in ["rheo_packets", "rheo_packet_total", "rheo_hold_seconds", "rheo_flows_total"] {
        assert!(family_of(name).is_none(), "{name}");
    }
    assert!(family_of("rheo_hold_seconds_bucket").is_some());
}
