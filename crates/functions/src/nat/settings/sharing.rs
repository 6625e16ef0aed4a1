//! `state = "shared"`: mappings in objects that all lanes share, and what goes with it.

use std::time::Duration;

use crate::nat::{Mapping, NatConfig, Sharing};

use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;
use rheostat_settings::quantity::YEAR;
use rheostat_settings::reader::Table;
use rheostat_settings::reader::convert::choice;
use rheostat_settings::reader::convert::number::{count, duration};

const STATES: [(&str, bool); 2] = [("shards", false), ("shared", true)];

/// Reads where mappings are kept; `None` for in shards, by ports that lead home.
pub(super) fn read(table: &mut Table<'_>, findings: &mut Findings) -> Option<Sharing> {
    if !table.read("state", findings, choice(&STATES)).unwrap_or(false) {
        table.refuse(&["flows", "refresh_interval"], "state = \"shared\"", findings);
        return None;
    }
    let default = Sharing::default();
    let flows = table.read("flows", findings, count(1..=1 << 26));
    let interval = table.read("refresh_interval", findings, duration(Duration::ZERO..=YEAR));
    Some(Sharing {
        flows: flows.map_or(default.flows, |flows| flows as usize),
        refresh_interval: interval.unwrap_or(default.refresh_interval),
    })
}

/// Notes what shared mappings cannot do.
pub(super) fn check(table: &Table<'_>, nat: &NatConfig, findings: &mut Findings) {
    let symmetric = nat.mapping == Mapping::AddressAndPortDependent;
    for (key, is_set, message, help) in [
        (
            "mapping",
            symmetric,
            "one external endpoint per remote one needs no state that lanes share",
            "remove `state`: with ports that lead home, lanes need not agree",
        ),
        (
            "deterministic",
            nat.deterministic,
            "blocks of ports need no state that lanes share",
            "remove `state`, or `deterministic`",
        ),
        (
            "log",
            table.has("log"),
            "mappings that lanes share are not logged",
            "remove `log`, or `state`: with mappings in shards they are",
        ),
    ] {
        if is_set {
            let key = table.key_of(key);
            let finding = Finding::mistake(&key, message)
                .at(findings.place(&table.key_of("state")), "shared by all lanes")
                .at(findings.place(&key), "");
            findings.push(finding.help(help));
        }
    }
}
