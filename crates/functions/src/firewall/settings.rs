//! `[function.firewall]`: what the firewall lets through.

pub(super) mod describe;
mod rule;
pub(super) mod shadow;
mod timeouts;

use crate::firewall::{Action, FirewallConfig, RuleSet, TcpOptions};

pub use rule::{ports, protocol};

use rheostat_settings::declared::Setting;
use rheostat_settings::declared::kind::{boolean, choice, count, ethertype, list, packet_rate};
use rheostat_settings::device::Device;
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::Table;

/// What rules and defaults may say.
const ACTIONS: [(&str, Action); 3] =
    [("allow", Action::Allow), ("deny", Action::Deny), ("reject", Action::Reject)];

/// Reads the settings of the firewall; rules may name `devices`.
pub(super) fn read(
    table: &mut Table<'_>,
    devices: &[Device],
    findings: &mut Findings,
) -> FirewallConfig {
    let keys = Keys::new(FirewallConfig::default());
    let default_inside = keys.default_inside.read_or_default(table, findings);
    let default_outside = keys.default_outside.read_or_default(table, findings);
    let tcp = TcpOptions {
        liberal: keys.liberal.read_or_default(table, findings),
        pickup: keys.pickup.read_or_default(table, findings),
    };
    let half_open_per_shard = keys.half_open_per_shard.read_or_default(table, findings);
    let rejects_per_second = keys.reject_rate.read_or_default(table, findings);
    let ethertypes = keys.ethertypes.read_or_default(table, findings);
    let timeouts = table.section("timeouts", findings, timeouts::read);
    let rules =
        table.sections("rule", findings, |table, findings| rule::read(table, devices, findings));
    FirewallConfig {
        rules: RuleSet {
            rules: rules.into_iter().flatten().collect(),
            default_inside,
            default_outside,
        },
        tcp,
        timeouts: timeouts.unwrap_or_default(),
        half_open_per_shard,
        ethertypes,
        rejects_per_second,
    }
}

rheostat_settings::keys! {
    struct Keys(default: FirewallConfig) {
        /// What becomes of new flows from inside that no rule matches.
        default_inside: Action = choice(ACTIONS), default(default.rules.default_inside);
        /// What becomes of new flows from outside that no rule matches.
        default_outside: Action = choice(ACTIONS), default(default.rules.default_outside);
        /// Whether segments of TCP outside the window pass, too.
        liberal: bool = boolean(), default(default.tcp.liberal);
        /// Whether connections of TCP are tracked that had begun before.
        pickup: bool = boolean(), default(default.tcp.pickup);
        /// Connections that are not established, in each shard, at most.
        half_open_per_shard: u32 = count(1..=1_000_000), default(default.half_open_per_shard);
        /// ICMP errors and resets that each shard sends for rejected packets at most.
        reject_rate: u32 = packet_rate(0..=1_000_000), default(default.rejects_per_second);
        /// Ethernet types besides IP that pass.
        ethertypes: Vec<u16> = list(ethertype()), default(default.ethertypes);
    }
}

/// The keys of `[function.firewall]`.
pub(super) fn keys() -> Vec<Setting> {
    let mut keys = Keys::new(FirewallConfig::default()).settings();
    keys.push(Setting::table(
        "timeouts",
        "How long flows live without a packet.",
        timeouts::keys(),
    ));
    keys.push(Setting::tables(
        "rule",
        "What becomes of new flows; the first that matches counts.",
        rule::keys(),
    ));
    keys
}
