//! What differs between two files.

use super::*;
use crate::{Overrides, Registry};

const ROUTER: &str = r#"
[[device]]
name = "lan"
kind = "af_packet"
interface = "eth0"
side = "inside"
address = "10.0.0.1/24"

[[device]]
name = "wan"
kind = "af_packet"
interface = "eth1"
side = "outside"
address = "192.0.2.1/24"

[[route]]
to = "0.0.0.0/0"
via = "192.0.2.9"

[[route]]
to = "10.1.0.0/16"
via = "10.0.0.9"

[chain]
functions = []
"#;

fn load(text: &str, overrides: &Overrides) -> Config {
    let loaded = Config::parse_with(text, "x.toml", overrides, &Registry::new());
    loaded.unwrap_or_else(|report| panic!("{report:?}")).0
}

fn compare_with(old: &str, new: &str, overrides: &Overrides) -> Comparison {
    let reference = Reference::of(&Registry::new());
    load(old, overrides).compare(&load(new, overrides), &reference)
}

fn changes(old: &str, new: &str) -> Vec<String> {
    let comparison = compare_with(old, new, &Overrides::default());
    assert_eq!(comparison.fixed, []);
    comparison.changes.iter().map(ToString::to_string).collect()
}

#[test]
fn what_is_written_otherwise_and_means_the_same_is_no_difference() {
    let same = format!(
        "# a comment\n{ROUTER}\n[observe]\ninterval = \"1s\"\n[network]\nannounce = true\n"
    );
    assert!(changes(ROUTER, &same).is_empty());
    let number = |text: &str| format!("{ROUTER}\n[network]\nerrors_per_second = {text}\n");
    assert!(changes(&number("2000"), &number("2_000")).is_empty());
}

#[test]
fn a_value_is_shown_with_the_one_before_and_the_default_where_there_was_none() {
    let second = format!("{ROUTER}\n[network]\nerrors_per_second = 7\n");
    let from_default = "network.errors_per_second: 1000 (default) -> 7";
    assert_eq!(changes(ROUTER, &second), [from_default]);
    assert_eq!(changes(&second, ROUTER), ["network.errors_per_second: 7 -> 1000 (default)"]);
    let third = second.replace("= 7", "= 8");
    assert_eq!(changes(&second, &third), ["network.errors_per_second: 7 -> 8"]);
    let duration = format!("{ROUTER}\n[run]\nduration = \"5s\"\n");
    assert_eq!(changes(ROUTER, &duration), ["run.duration: none -> 5s"]);
}

#[test]
fn items_are_counted_and_those_of_one_name_compared() {
    let other = ROUTER.replace("10.0.0.9", "10.0.0.8");
    assert_eq!(changes(ROUTER, &other), ["route[10.1.0.0/16].via: 10.0.0.9 -> 10.0.0.8"]);
    let route = "[[route]]\nto = \"10.2.0.0/16\"\nvia = \"10.0.0.9\"\n";
    let more = format!("{route}{}{ROUTER}", route.replace("10.2", "10.3"));
    assert_eq!(changes(ROUTER, &more), ["2 routes added"]);
    let another = more.replace("10.1.0.0", "10.4.0.0");
    assert_eq!(changes(&more, &another), ["1 route added, 1 removed"]);
    let neighbour = "[[neighbour]]\naddress = \"10.0.0.9\"\nmac = \"02:00:00:00:00:09\"\n";
    assert_eq!(changes(&format!("{neighbour}{ROUTER}"), ROUTER), ["1 neighbour removed"]);
}

#[test]
fn items_that_share_a_word_are_told_apart_by_all_their_values() {
    let action = Setting { kind: "word".to_owned(), ..Setting::table("action", "", Vec::new()) };
    let rules = Setting::tables("rule", "", vec![action.required()]);
    let rule = |action: &str, port: &str| {
        let text = format!("action = \"{action}\"\nport = \"{port}\"\n");
        GivenValue::of_table(&rheostat_settings::document::parse(&text).unwrap())
    };
    let (old, new) =
        ([rule("allow", "1"), rule("deny", "2")], [rule("allow", "1"), rule("allow", "2")]);
    let mut differences = Vec::new();
    let place = Place::of_section("rule");
    items::compare_tables(&place, &old, &new, Some(&rules), &mut differences);
    let texts: Vec<_> = differences.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["1 rule added, 1 removed"]);
}

#[test]
fn an_item_that_has_only_moved_is_no_new_one() {
    let at = |order: [u8; 4]| {
        let items = order.map(|name| GivenValue::Plain(format!("{name}")));
        items.to_vec()
    };
    let place = Place::of_section("rule");
    let moved =
        |new| items::compare_plain(&place, &at([1, 2, 3, 4]), &at(new)).map(|d| d.to_string());
    assert_eq!(moved([1, 2, 3, 4]), None);
    assert_eq!(moved([4, 1, 2, 3]).as_deref(), Some("1 rule moved"));
    assert_eq!(moved([4, 3, 2, 1]).as_deref(), Some("3 rules moved"));
    assert_eq!(moved([4, 5, 2, 1]).as_deref(), Some("1 rule added, 1 removed, 2 moved"));
}

#[test]
fn what_cannot_change_in_place_is_named_with_the_reason() {
    let other = ROUTER.replace("eth1", "eth2") + "\n[workers]\nlanes = 2\n";
    let comparison = compare_with(ROUTER, &other, &Overrides::default());
    assert!(comparison.changes.is_empty());
    let fixed: Vec<_> =
        comparison.fixed.iter().map(|(what, why)| format!("{what}; it {why}")).collect();
    assert_eq!(
        fixed,
        [
            "workers.lanes: none -> 2; it is set when workers and lanes are started",
            "device[wan].interface: eth1 -> eth2; it is set when devices are opened",
        ]
    );
}

#[test]
fn a_change_that_a_flag_hides_is_no_change() {
    let overrides = Overrides {
        devices: vec!["wan=af_packet:eth9".parse().unwrap()],
        policy: Some("rsspp".to_owned()),
        ..Overrides::default()
    };
    let old = format!("{ROUTER}\n[balance]\npolicy = \"rss\"\n");
    let new = old.replace("eth1", "eth2").replace("\"rss\"", "\"dyssect\"");
    let comparison = compare_with(&old, &new, &overrides);
    assert!(comparison.is_empty());
    let hidden: Vec<_> = comparison.hidden.iter().map(|hidden| hidden.key.as_str()).collect();
    assert_eq!(hidden, ["device[wan].interface", "balance.policy"]);
}
