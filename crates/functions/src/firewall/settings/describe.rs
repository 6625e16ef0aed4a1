//! A firewall in words.

use std::fmt;

use rheostat_settings::quantity::Count;

use crate::firewall::{Action, FirewallConfig};

/// Writes how many rules there are, and what holds beside them.
pub(in crate::firewall) fn describe(
    firewall: &FirewallConfig,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let word = |action: Action| match action {
        Action::Allow => "allowed",
        Action::Deny => "denied",
        Action::Reject => "rejected",
    };
    match firewall.rules.rules.len() {
        0 => f.write_str("no rules")?,
        1 => f.write_str("1 rule")?,
        rules => write!(f, "{rules} rules")?,
    }
    let (inside, outside) = (firewall.rules.default_inside, firewall.rules.default_outside);
    write!(f, ", else from inside {}, from outside {}", word(inside), word(outside))?;
    write!(f, "; {} half open per shard", Count(u64::from(firewall.half_open_per_shard)))?;
    f.write_str(if firewall.tcp.liberal { "; windows not enforced" } else { "" })?;
    f.write_str(if firewall.tcp.pickup { "; connections taken up midway" } else { "" })?;
    writeln!(f)
}
