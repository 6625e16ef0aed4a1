//! The rates and bursts of `[function.policer]` and of each of its classes.

use crate::policer::{Burst, Meter, Rate};

use rheostat_settings::declared::Setting;
use rheostat_settings::declared::kind::{Kind as Declared, bit_rate, boolean, size};
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::convert::number::size as read_size;
use rheostat_settings::reader::{Table, Value};

/// Which meter all classes have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// One rate, two colours.
    #[default]
    Plain,
    /// RFC 2697.
    SingleRate,
    /// RFC 2698.
    TwoRate,
}

impl Kind {
    pub(super) const NAMES: [(&str, Kind); 3] =
        [("plain", Kind::Plain), ("srtcm", Kind::SingleRate), ("trtcm", Kind::TwoRate)];
}

/// The longest IP packet that an Ethernet usually carries.
const USUAL_PACKET: u64 = 1_500;

/// Reads a meter. `None` when it could not be read; `Some(None)` is none, for everything passes.
pub(super) fn read(
    table: &mut Table<'_>,
    kind: Kind,
    findings: &mut Findings,
) -> Option<Option<Meter>> {
    let keys = Keys::new(if kind == Kind::SingleRate { 0 } else { 1 });
    if keys.unlimited.read_or_default(table, findings) {
        let rates = keys.settings().into_iter().skip(1).map(|setting| setting.key);
        table.refuse(&rates.collect::<Vec<_>>(), "unlimited = false", findings);
        return Some(None);
    }
    if kind != Kind::SingleRate {
        keys.excess_burst.refuse(table, findings);
    }
    if kind != Kind::TwoRate {
        keys.peak_rate.refuse(table, findings);
        keys.peak_burst.refuse(table, findings);
    }
    let committed_rate = keys.rate.read(table, findings);
    let committed = keys.burst.read(table, findings);
    match kind {
        Kind::Plain => Meter::plain(committed_rate?, committed?).ok(),
        Kind::SingleRate => {
            let excess = keys.excess_burst.read(table, findings)?;
            let meter = Meter::single_rate(committed_rate?, committed?, excess);
            if meter.is_err() {
                let message = "both bursts are zero, so nothing would pass";
                let help = "raise one of them";
                findings.push(clash(table, message, ["burst", "excess_burst"], help, findings));
            }
            meter.ok()
        }
        Kind::TwoRate => {
            let peak_rate = keys.peak_rate.read(table, findings);
            let peak = keys.peak_burst.read(table, findings)?;
            let meter = Meter::two_rate(committed_rate?, committed?, peak_rate?, peak);
            if meter.is_err() {
                let message = "the peak rate is below the committed rate (RFC 2698, section 2)";
                let help = "raise `peak_rate`, or lower `rate`";
                findings.push(clash(table, message, ["rate", "peak_rate"], help, findings));
            }
            meter.ok()
        }
    }
    .map(Some)
}

rheostat_settings::keys! {
    struct Keys(least: u64) {
        /// Whether subscribers have no limit.
        unlimited: bool = boolean(), default(false);
        /// The committed rate.
        rate: Rate = rate(), required("rate = \"10Mbps\"");
        /// The committed burst.
        burst: Burst = burst(least), required("burst = \"64kB\"");
        /// The burst beyond the committed one up to which packets are yellow.
        excess_burst: Burst = burst(0), required("excess_burst = \"64kB\""), with("meter = \"srtcm\"");
        /// The rate above which packets are red.
        peak_rate: Rate = rate(), required("peak_rate = \"20Mbps\""), with("meter = \"trtcm\"");
        /// The burst of the peak rate.
        peak_burst: Burst = burst(1), required("peak_burst = \"64kB\""), with("meter = \"trtcm\"");
    }
}

/// The keys of a meter.
pub(super) fn keys() -> Vec<Setting> {
    Keys::new(1).settings()
}

fn clash(
    table: &Table<'_>,
    message: &str,
    keys: [&str; 2],
    help: &str,
    findings: &Findings,
) -> Finding {
    let place = |key: &str| findings.place(&table.key_of(key));
    Finding::mistake(table.key(), message).at(place(keys[0]), "").at(place(keys[1]), "").help(help)
}

fn rate() -> Declared<Rate> {
    bit_rate(Rate::LEAST..=Rate::MOST).map(|bits| Rate::new(bits).ok(), Rate::bits_per_second)
}

/// A burst of `least` bytes or more, with a warning when usual packets are longer than it.
fn burst(least: u64) -> Declared<Burst> {
    let read = move |value: &Value<'_>, findings: &mut Findings| {
        let bytes = read_size(least..=Burst::MOST)(value, findings)?;
        if (1..USUAL_PACKET).contains(&bytes) {
            let message =
                format!("packets longer than {bytes} bytes will never fit `{}`", value.name());
            let help = "have room for the longest packet, mostly 1500 bytes (RFC 2697, section 2; \
                        RFC 2698, section 2)";
            let place = Some(value.place.clone());
            findings.push(Finding::warning(&value.key, message).at(place, "").help(help));
        }
        Burst::new(bytes).ok()
    };
    size::<u64>(least..=Burst::MOST).reading(read, Burst::bytes)
}
