//! `state = "shared"`: mappings in objects that all lanes share, and what goes with it.

use std::time::Duration;

use crate::nat::{Mapping, NatConfig, Sharing};

use rheostat_settings::declared::Setting;
use rheostat_settings::declared::kind::{choice, count, duration};
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;
use rheostat_settings::quantity::YEAR;
use rheostat_settings::reader::Table;

const STATES: [(&str, bool); 2] = [("shards", false), ("shared", true)];

/// Reads where mappings are kept; `None` for in shards, by ports that lead home.
pub(super) fn read(table: &mut Table<'_>, findings: &mut Findings) -> Option<Sharing> {
    let keys = Keys::new();
    if !keys.state.read_or_default(table, findings) {
        keys.flows.refuse(table, findings);
        keys.refresh_interval.refuse(table, findings);
        return None;
    }
    let flows = keys.flows.read_or_default(table, findings);
    let refresh_interval = keys.refresh_interval.read_or_default(table, findings);
    Some(Sharing { flows, refresh_interval })
}

rheostat_settings::keys! {
    struct Keys {
        /// Where mappings are kept: in shards, by ports that lead home, or in objects that all lanes share.
        state: bool = choice(STATES), default(false);
        /// Flows that the shared objects hold at most.
        flows: usize = count(1..=1 << 26), default(Sharing::default().flows), with("state = \"shared\"");
        /// How old the time of a flow's last packet may be that the shared objects have.
        refresh_interval: Duration = duration(Duration::ZERO..=YEAR), default(Sharing::default().refresh_interval),
            with("state = \"shared\"");
    }
}

/// The keys of `[function.nat]` about where mappings are kept.
pub(super) fn keys() -> Vec<Setting> {
    Keys::new().settings()
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
