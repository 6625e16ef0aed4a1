//! `[function.policer]`: the rates that subscribers are limited to, and what happens to packets above them.

mod classes;
mod describe;
mod marking;
mod meter;

use crate::policer::{Count, PolicerConfig, Subject};
use rheostat_steer::{Side, Whose};

pub(super) use describe::describe;
pub use marking::code_point;
use meter::Kind as Meter;
use rheostat_settings::declared::Setting;
use rheostat_settings::declared::kind::{choice, count, integer, side};
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::Table;

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
    let keys = Keys::new();
    let whose = keys.per.read(table, findings);
    let v4 = keys.ipv4_prefix.read_or_default(table, findings);
    let v6 = keys.ipv6_prefix.read_or_default(table, findings);
    let subject = |whose| Subject { whose, v4, v6 };
    let from = keys.from.read(table, findings);
    let counted = keys.count.read_or_default(table, findings);
    let kind = keys.meter.read_or_default(table, findings);
    let classes = classes::read(table, kind, [v4, v6], findings);
    let colours = marking::read_colours(table, kind, findings);
    let actions = marking::read_actions(table, kind, findings);
    let pass_when_full = keys.table_full.read_or_default(table, findings);
    let pass_non_ip = keys.non_ip.read_or_default(table, findings);
    let subscribers = keys.subscribers.read_or_default(table, findings);
    Some(PolicerConfig {
        subject: subject(whose?),
        from,
        count: counted,
        classes: classes?,
        colours,
        actions,
        pass_when_full,
        pass_non_ip,
        subscribers,
    })
}

rheostat_settings::keys! {
    struct Keys {
        /// The address that names a subscriber: of the source, of the destination, or of the end inside or outside.
        per: Whose = choice(SUBJECTS), required("per = \"inside\"");
        /// Leading bits of an IPv4 address that make one subscriber.
        ipv4_prefix: u8 = integer(0..=32), default(32);
        /// Leading bits of an IPv6 address that make one subscriber.
        ipv6_prefix: u8 = integer(0..=128), default(IPV6_PREFIX);
        /// The side whose packets are metered; both without it.
        from: Side = side(), example("\"outside\"");
        /// Whether bytes of the IP packet count, or those of the frame.
        count: Count = choice(COUNTS), default(Count::default());
        /// Which meter all classes have: plain (one rate, two colours), srtcm (RFC 2697) or trtcm (RFC 2698).
        meter: Meter = choice(Meter::NAMES), default(Meter::default());
        /// What becomes of packets of subscribers without a bucket when there is no room for another.
        table_full: bool = choice(FATES), default(false);
        /// What becomes of packets that are not IP.
        non_ip: bool = choice(FATES), default(true);
        /// Subscribers that have a bucket at a time, where buckets are in objects that all lanes share.
        subscribers: usize = count(1..=1 << 26), default(SUBSCRIBERS);
    }
}

/// The keys of `[function.policer]`.
pub(super) fn keys() -> Vec<Setting> {
    let mut keys = Keys::new().settings();
    let last = keys.split_off(6);
    keys.extend(meter::keys());
    keys.push(Setting::tables("class", "Other rates for some prefixes.", classes::keys()));
    keys.extend(marking::keys());
    keys.into_iter().chain(last).collect()
}
