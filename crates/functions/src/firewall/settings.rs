//! `[function.firewall]`: what the firewall lets through.

pub(super) mod describe;
mod rule;
pub(super) mod shadow;
mod timeouts;

use crate::firewall::{Action, FirewallConfig, RuleSet, TcpOptions};

pub use rule::{ports, protocol};

use rheostat_settings::device::Device;
use rheostat_settings::ethertype::ethertype;
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::Table;
use rheostat_settings::reader::convert::number::{count, packet_rate};
use rheostat_settings::reader::convert::{boolean, choice, list};

/// What rules and defaults may say.
const ACTIONS: [(&str, Action); 3] =
    [("allow", Action::Allow), ("deny", Action::Deny), ("reject", Action::Reject)];

/// Reads the settings of the firewall; rules may name `devices`.
pub(super) fn read(
    table: &mut Table<'_>,
    devices: &[Device],
    findings: &mut Findings,
) -> FirewallConfig {
    let default = FirewallConfig::default();
    let default_inside = table.read("default_inside", findings, choice(&ACTIONS));
    let default_outside = table.read("default_outside", findings, choice(&ACTIONS));
    let liberal = table.read("liberal", findings, boolean);
    let pickup = table.read("pickup", findings, boolean);
    let half_open = table.read("half_open_per_shard", findings, count(1..=1_000_000));
    let reject_rate = table.read("reject_rate", findings, packet_rate(0..=1_000_000));
    let ethertypes = table.read("ethertypes", findings, list(ethertype));
    let timeouts = table.section("timeouts", findings, timeouts::read);
    let rules =
        table.sections("rule", findings, |table, findings| rule::read(table, devices, findings));
    FirewallConfig {
        rules: RuleSet {
            rules: rules.into_iter().flatten().collect(),
            default_inside: default_inside.unwrap_or(default.rules.default_inside),
            default_outside: default_outside.unwrap_or(default.rules.default_outside),
        },
        tcp: TcpOptions {
            liberal: liberal.unwrap_or(default.tcp.liberal),
            pickup: pickup.unwrap_or(default.tcp.pickup),
        },
        timeouts: timeouts.unwrap_or(default.timeouts),
        half_open_per_shard: half_open.map_or(default.half_open_per_shard, |n| n as u32),
        ethertypes: ethertypes.unwrap_or(default.ethertypes),
        rejects_per_second: reject_rate.map_or(default.rejects_per_second, |n| n as u32),
    }
}
