//! Tables that serde reads, and the mistakes in them.

use std::time::Duration;

use serde::Deserialize;

use super::{Section, quantity};
use crate::diagnostic::Report;
use crate::document;
use crate::findings::Findings;
use crate::reader::Table;

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Per {
    Source,
    Network,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Limit {
    port: u16,
    #[serde(default)]
    strict: bool,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Settings {
    max: u32,
    #[serde(deserialize_with = "quantity::duration")]
    window: Duration,
    per: Option<Per>,
    #[serde(default)]
    limits: Vec<Limit>,
    #[serde(default, deserialize_with = "quantity::count")]
    sources: u64,
}

/// Reads `[function.f]`; otherwise the report's text.
fn read<T: Section>(text: &str) -> Result<T, String> {
    let document = document::parse(text).expect("TOML");
    let mut findings = Findings::default();
    let settings = Table::read_root(&document, &mut findings, |root, findings| {
        let function = root.section("function", findings, |table, findings| {
            table.section("f", findings, T::read).flatten()
        });
        function.flatten()
    });
    let report = Report::new("f.toml", text, findings.into_list());
    match settings {
        Some(settings) if report.is_empty() => Ok(settings),
        _ => Err(report.render(false)),
    }
}

/// The mistakes of a table: message, advice and line of each.
fn mistakes<T: Section + std::fmt::Debug>(text: &str) -> Vec<(String, String, usize)> {
    let document = document::parse(text).expect("TOML");
    let mut findings = Findings::default();
    let settings = Table::read_root(&document, &mut findings, |root, findings| {
        let function = root.section("function", findings, |table, findings| {
            table.section("f", findings, T::read).flatten()
        });
        function.flatten()
    });
    let report = Report::new("f.toml", text, findings.into_list());
    let found = report.findings().iter().map(|finding| {
        let place = finding.places().next().expect("each has a place");
        let advice = finding.advice().unwrap_or_default().to_owned();
        (finding.message().to_owned(), advice, report.line_and_column(place.start).0)
    });
    let found: Vec<_> = found.collect();
    assert!(
        settings.is_none() || found.iter().all(|(message, ..)| message.contains("unknown key"))
    );
    found
}

#[test]
fn a_table_becomes_the_type() {
    let text = "[function.f]\nmax = 0x10\nwindow = \"1s 500ms\"\nper = \"network\"\nsources = \"64k\"\n\
                limits = [{ port = 22 }, { port = 80, strict = true }]\n";
    let settings: Settings = read(text).unwrap();
    let limits = vec![Limit { port: 22, strict: false }, Limit { port: 80, strict: true }];
    let window = Duration::from_millis(1_500);
    let expected = Settings { max: 16, window, per: Some(Per::Network), limits, sources: 64_000 };
    assert_eq!(settings, expected);
}

#[test]
fn all_mistakes_of_a_table_have_their_place_and_their_fix() {
    let text = "[function.f]\nmax = \"many\"\nwindow = \"10\"\nper = \"sourc\"\nwidow = 1\n\
                limits = [{ port = 70000 }]\nsources = -1\n";
    let found = mistakes::<Settings>(text);
    let expected = [
        ("`max` must be a whole number", "write a number between 0 and 4294967295", 2),
        (
            "`window`: the unit is missing; write one of ns, us, ms, s, min, h, d behind the number",
            "",
            3,
        ),
        ("`sourc` is not a value of `per`", "write one of `source`, `network`", 4),
        (
            "unknown key `widow` in `[function.f]`",
            "the keys of `[function.f]` are `max`, `window`, `per`, `limits`, `sources`",
            5,
        ),
        ("`port` is out of range", "write a number between 0 and 65535", 6),
        (
            "`sources` must be a count, such as 500 or \"64k\"",
            "write a count, such as 500 or \"64k\"",
            7,
        ),
    ];
    let found: Vec<_> = found
        .iter()
        .map(|(message, help, line)| (message.as_str(), help.as_str(), *line))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn a_missing_key_is_named_with_its_value() {
    let found = mistakes::<Settings>("[function.f]\nwindow = \"10s\"\n");
    let [(message, help, line)] = &found[..] else { panic!("{found:?}") };
    assert_eq!(message, "`[function.f]` has no `max`");
    assert_eq!(help, "add `max = …`, a whole number between 0 and 4294967295");
    assert_eq!(*line, 1);

    let found = mistakes::<Settings>("[function.f]\nmax = 1\nwindow = \"1s\"\nlimits = [{}]\n");
    let [(message, _, line)] = &found[..] else { panic!("{found:?}") };
    assert_eq!((message.as_str(), *line), ("`[[function.f.limits]]` has no `port`", 4));

    // A key that cannot be read is not missing besides.
    let found = mistakes::<Settings>("[function.f]\nmax = true\nwindow = \"1s\"\n");
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn a_report_shows_the_line_of_the_file() {
    let report = read::<Settings>("[function.f]\nmax = 1.5\nwindow = \"1s\"\n").unwrap_err();
    assert!(report.contains("f.toml:2:7"), "{report}");
    assert!(report.contains("this is a number with a fraction"), "{report}");
}

#[test]
fn a_function_without_settings_knows_no_key() {
    assert_eq!(read::<()>("[function.f]\n"), Ok(()));
    let report = read::<()>("[function.f]\nx = 1\n").unwrap_err();
    assert!(report.contains("unknown key `x` in `[function.f]`"), "{report}");
}

/// Settings that check themselves.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(try_from = "Unchecked")]
struct Checked(u8, u8);

#[derive(Deserialize)]
struct Unchecked {
    least: u8,
    most: u8,
}

impl TryFrom<Unchecked> for Checked {
    type Error = &'static str;

    fn try_from(Unchecked { least, most }: Unchecked) -> Result<Checked, &'static str> {
        if least <= most { Ok(Checked(least, most)) } else { Err("`least` is above `most`") }
    }
}

#[test]
fn a_type_checks_its_own_settings() {
    assert_eq!(read("[function.f]\nleast = 1\nmost = 2\n"), Ok(Checked(1, 2)));
    let found = mistakes::<Checked>("[run]\n[function.f]\nleast = 3\nmost = 2\n");
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!((found[1].0.as_str(), found[1].2), ("`least` is above `most`", 2));
}

/// A type that reads its keys itself.
#[derive(Debug, PartialEq)]
struct Declared(String);

impl Section for Declared {
    fn read(table: &mut Table<'_>, findings: &mut Findings) -> Option<Declared> {
        let name = table.require("name", "name = \"x\"", findings, crate::reader::convert::name)?;
        Some(Declared(name))
    }
}

#[test]
fn a_type_without_serde_reads_its_keys_itself() {
    assert_eq!(read("[function.f]\nname = \"x\"\n"), Ok(Declared("x".into())));
    assert!(read::<Declared>("[function.f]\n").unwrap_err().contains("add `name = \"x\"`"));
}
