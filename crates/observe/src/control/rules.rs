//! Rules of functions, as the control socket shows them.

use serde::{Deserialize, Serialize};

use super::listing::{Column, ListingRow, SortKey};

/// A rule and how often it has decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RuleLine {
    /// The place among all rules, counted from 1: functions in the order of the chain, with their rules in order.
    pub place: u64,
    /// The function, by its name in the chain.
    pub function: String,
    /// The place among the function's rules, counted from 1: rules are tried in this order.
    pub number: u64,
    /// The rule's name, or its number where it has none.
    pub rule: String,
    /// Packets that the rule has decided about: the first one of each flow, and those that open no flow.
    pub hits: u64,
    /// Bytes of these packets with their link headers; none where the function does not count them.
    pub bytes: Option<u64>,
    /// Seconds since the last of them by the run's clock; none before the first one.
    pub last_hit: Option<f64>,
    /// Conditions and effect in words.
    pub text: String,
}

impl ListingRow for RuleLine {
    const COLUMNS: &'static [Column<RuleLine>] = &[
        Column::hidden("place", |line| SortKey::number(line.place)),
        Column::left(
            "function",
            |line| line.function.clone(),
            |line| SortKey::text(&line.function),
        ),
        Column::right(
            "number",
            |line| line.number.to_string(),
            |line| SortKey::number(line.number),
        ),
        Column::left("rule", |line| line.rule.clone(), |line| SortKey::text(&line.rule)),
        Column::right("hits", |line| line.hits.to_string(), |line| SortKey::number(line.hits)),
        Column::right(
            "bytes",
            |line| line.bytes.map_or_else(|| "-".to_owned(), |bytes| bytes.to_string()),
            |line| line.bytes.map_or_else(SortKey::none, SortKey::number),
        ),
        Column::right(
            "last_hit",
            |line| line.last_hit.map_or_else(|| "-".to_owned(), |ago| format!("{ago:.1}s")),
            |line| line.last_hit.map_or_else(SortKey::none, SortKey::real),
        ),
        Column::left("text", |line| line.text.clone(), |line| SortKey::text(&line.text)),
    ];

    fn id(&self) -> SortKey {
        SortKey::number(self.place)
    }
}
