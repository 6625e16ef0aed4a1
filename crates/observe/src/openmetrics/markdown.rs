//! The families as a page of the documentation.

use std::fmt::Write as _;

use super::families;
use super::family::Kind;

const HEAD: &str = "# Metrics

<!-- Written by `RHEO_BLESS=1 cargo test -p rheostat-observe metrics`; edit the declarations in the code instead. -->

The metrics that a running instance serves at `/metrics`. [monitoring.md](monitoring.md) describes how to turn them on. A \
family without samples is left out of a page.

| metric | type | labels | meaning |
|---|---|---|---|
";

/// The page.
pub fn to_markdown() -> String {
    let mut page = HEAD.to_owned();
    for family in families() {
        let labels: Vec<_> = family.labels.iter().map(|label| format!("`{label}`")).collect();
        let kind = match family.kind {
            Kind::Count | Kind::Seconds => "counter",
            Kind::Gauge => "gauge",
            Kind::Times | Kind::Sizes => "histogram",
            Kind::Facts => "info",
        };
        let (name, labels) = (family.sample_name(), labels.join(", "));
        let _ = writeln!(page, "| `{name}` | {kind} | {labels} | {} |", family.help);
    }
    page
}
