//! `[function.policer]`: the rates that subscribers are limited to, and what happens to packets above them.

mod classes;
mod describe;
mod marking;
mod meter;

use crate::policer::{Count, PolicerConfig, Subject};
use rheostat_steer::Whose;

pub(super) use describe::describe;
pub use marking::code_point;
use meter::Kind;
use rheostat_settings::device::side;
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::Table;
use rheostat_settings::reader::convert::choice;
use rheostat_settings::reader::convert::number::{count, integer};

/// The least that a policer's configuration needs.
pub(super) const EXAMPLE: &str =
    "[function.policer]\nper = \"inside\"\nrate = \"10Mbps\"\nburst = \"64kB\"";

const SUBJECTS: [(&str, Whose); 4] = [
    ("source", Whose::Source),
    ("destination", Whose::Destination),
    ("inside", Whose::Inner),
    ("outside", Whose::Outer),
];
const COUNTS: [(&str, Count); 2] = [("ip", Count::Ip), ("frame", Count::Frame)];
/// What becomes of packets that the policer cannot meter: whether they pass.
const FATES: [(&str, bool); 2] = [("pass", true), ("drop", false)];

/// Bits of an IPv6 address that name one subscriber: the rest is the host's to choose (RFC 4291, 2.5.4).
const IPV6_PREFIX: u8 = 64;

/// Addresses that have a bucket at a time, where buckets are in objects that all lanes share.
const SUBSCRIBERS: usize = 65_536;

/// Reads the settings of the policer; `None` when without what could not be read there is none.
pub(super) fn read(table: &mut Table<'_>, findings: &mut Findings) -> Option<PolicerConfig> {
    let whose = table.require("per", "per = \"inside\"", findings, choice(&SUBJECTS));
    let v4 = table.read("ipv4_prefix", findings, integer(0..=32)).unwrap_or(32) as u8;
    let v6 = table.read("ipv6_prefix", findings, integer(0..=128));
    let v6 = v6.map_or(IPV6_PREFIX, |length| length as u8);
    let subject = |whose| Subject { whose, v4, v6 };
    let from = table.read("from", findings, side);
    let counted = table.read("count", findings, choice(&COUNTS)).unwrap_or_default();
    let kind = table.read("meter", findings, choice(&Kind::NAMES)).unwrap_or_default();
    let classes = classes::read(table, kind, [v4, v6], findings);
    let colours = marking::read_colours(table, kind, findings);
    let actions = marking::read_actions(table, kind, findings);
    let table_full = table.read("table_full", findings, choice(&FATES));
    let non_ip = table.read("non_ip", findings, choice(&FATES));
    let subscribers = table.read("subscribers", findings, count(1..=1 << 26));
    Some(PolicerConfig {
        subject: subject(whose?),
        from,
        count: counted,
        classes: classes?,
        colours,
        actions,
        pass_when_full: table_full.unwrap_or(false),
        pass_non_ip: non_ip.unwrap_or(true),
        subscribers: subscribers.map_or(SUBSCRIBERS, |count| count as usize),
    })
}
