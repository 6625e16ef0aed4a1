//! Whatever text comes, reading it ends in a configuration or a report that can be shown.

use proptest::prelude::*;
use rheostat_control::Config;

use crate::registry;

/// Reads, and shows what was said, which must not panic either.
fn read_and_show(text: &str) {
    match Config::parse(text, "any.toml", &registry::all()) {
        Ok((config, warnings)) => {
            assert!(warnings.findings().iter().all(|finding| !finding.is_mistake()));
            assert!(!config.devices.is_empty() && !config.to_string().is_empty());
        }
        Err(report) => {
            assert!(report.findings().iter().any(|finding| finding.is_mistake()));
            let shown = report.render(false);
            for finding in report.findings() {
                assert!(finding.places().all(|place| text.get(place).is_some()), "{finding:?}");
            }
            assert!(shown.contains("any.toml"));
        }
    }
}

const GOOD: &str = include_str!("../../../configs/demo.toml");

proptest! {
    #[test]
    fn arbitrary_text(text in "\\PC{0,200}") {
        read_and_show(&text);
    }

    #[test]
    fn text_made_of_what_toml_is_made_of(
        parts in prop::collection::vec(
            prop::sample::select(vec![
                "[", "]", "[[", "]]", "=", "\n", "\"", "'", "{", "}", ",", ".", "#", "\\u00e9", "é",
                "device", "chain", "functions", "firewall", "function", "rule", "name", "kind",
                "\"sim\"", "\"pcap\"", "inside", "\"10.0.0.0/8\"", "rate", "\"1Mpps\"", "10", "-1",
                "true", "1.5", "state", "flows", "\"64k\"", " ", "\r\n", "\u{feff}",
            ]),
            0..60,
        ),
    ) {
        read_and_show(&parts.concat());
    }

    #[test]
    fn a_good_file_with_a_part_replaced(
        start in 0..GOOD.len(),
        length in 0..80usize,
        instead in "[ -~\\n]{0,12}",
    ) {
        let end = (start + length).min(GOOD.len());
        let before = String::from_utf8_lossy(&GOOD.as_bytes()[..start]).into_owned();
        let after = String::from_utf8_lossy(&GOOD.as_bytes()[end..]).into_owned();
        read_and_show(&(before + &instead + &after));
    }
}
