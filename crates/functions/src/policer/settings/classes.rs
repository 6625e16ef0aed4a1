//! `[[function.policer.class]]`: other rates for some prefixes.

use crate::policer::{ClassError, Classes};
use rheostat_steer::Prefix;

use super::meter::{self, Kind};
use rheostat_settings::declared::Setting;
use rheostat_settings::declared::kind::{list, prefix};
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::Table;

/// Reads the default meter and those of the classes. `subject` has the leading bits of IPv4 and
/// IPv6 addresses that share a bucket.
pub(super) fn read(
    table: &mut Table<'_>,
    kind: Kind,
    subject: [u8; 2],
    findings: &mut Findings,
) -> Option<Classes> {
    let others = meter::read(table, kind, findings);
    let named = table.sections("class", findings, |table, findings| {
        let prefixes = Keys::new().prefixes.read(table, findings);
        let key = table.key_of("prefixes");
        for prefix in prefixes.iter().flatten() {
            narrow(prefix, subject, &key, findings);
        }
        let meter = meter::read(table, kind, findings);
        Some((prefixes?, meter?, key))
    });
    let mut classes = Classes::new(others?);
    for (prefixes, meter, key) in named.into_iter().flatten() {
        if let Err(error) = classes.add(&prefixes, meter) {
            let help = match error {
                ClassError::Repeated(_) => "remove one of them",
                ClassError::TooMany => "have several prefixes in one class",
            };
            let place = findings.place(&key);
            findings.push(Finding::mistake(&key, error.to_string()).at(place, "").help(help));
        }
    }
    Some(classes)
}

rheostat_settings::keys! {
    struct Keys {
        /// The prefixes whose subscribers have these rates.
        prefixes: Vec<Prefix> = list(prefix()), required("prefixes = [\"10.1.0.0/16\"]");
    }
}

/// The keys of a class.
pub(super) fn keys() -> Vec<Setting> {
    Keys::new().settings().into_iter().chain(meter::keys()).collect()
}

/// Refuses a prefix that is only a part of what shares one bucket.
fn narrow(prefix: &Prefix, subject: [u8; 2], key: &str, findings: &mut Findings) {
    let (family, length) = match prefix.address().is_ipv4() {
        true => ("ipv4", subject[0]),
        false => ("ipv6", subject[1]),
    };
    if prefix.length() <= length {
        return;
    }
    let whole = Prefix::containing(prefix.address(), length);
    let message = format!("`{prefix}` is only a part of `{whole}`, which shares one bucket");
    let help = format!("write \"{whole}\", or `{family}_prefix = {}`", prefix.length());
    let place = findings.place(key);
    findings.push(Finding::mistake(key, message).at(place, "").help(help));
}
