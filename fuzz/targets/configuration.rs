//! Any text as a configuration: settings that make sense, or findings that can be shown.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rheostat_control::Config;

fuzz_target!(|text: &str| {
    match Config::parse(text, "fuzz.toml") {
        Ok((config, _)) => {
            assert!(!config.devices.is_empty());
            assert!(config.state.shards.is_power_of_two());
            assert!(config.state.flows_per_shard() > 0);
        }
        Err(report) => {
            let shown = report.render(false);
            assert!(!shown.trim().is_empty(), "an error that says nothing");
        }
    }
});
