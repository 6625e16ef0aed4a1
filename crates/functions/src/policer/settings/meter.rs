//! The rates and bursts of `[function.policer]` and of each of its classes.

use crate::policer::{Burst, Meter, Rate};

use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::convert::boolean;
use rheostat_settings::reader::convert::number::{bit_rate, size};
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
    const KEYS: [&str; 5] = ["rate", "burst", "excess_burst", "peak_rate", "peak_burst"];
    if table.read("unlimited", findings, boolean) == Some(true) {
        table.refuse(&KEYS, "unlimited = false", findings);
        return Some(None);
    }
    if kind != Kind::SingleRate {
        table.refuse(&["excess_burst"], "meter = \"srtcm\"", findings);
    }
    if kind != Kind::TwoRate {
        table.refuse(&["peak_rate", "peak_burst"], "meter = \"trtcm\"", findings);
    }
    let committed_rate = table.require("rate", "rate = \"10Mbps\"", findings, rate);
    let least = if kind == Kind::SingleRate { 0 } else { 1 };
    let committed = table.require("burst", "burst = \"64kB\"", findings, burst(least));
    match kind {
        Kind::Plain => Meter::plain(committed_rate?, committed?).ok(),
        Kind::SingleRate => {
            let example = "excess_burst = \"64kB\"";
            let excess = table.require("excess_burst", example, findings, burst(0))?;
            let meter = Meter::single_rate(committed_rate?, committed?, excess);
            if meter.is_err() {
                let message = "both bursts are zero, so nothing would pass";
                let help = "raise one of them";
                findings.push(clash(table, message, ["burst", "excess_burst"], help, findings));
            }
            meter.ok()
        }
        Kind::TwoRate => {
            let peak_rate = table.require("peak_rate", "peak_rate = \"20Mbps\"", findings, rate);
            let example = "peak_burst = \"64kB\"";
            let peak = table.require("peak_burst", example, findings, burst(1))?;
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

fn rate(value: &Value<'_>, findings: &mut Findings) -> Option<Rate> {
    Rate::new(bit_rate(Rate::LEAST..=Rate::MOST)(value, findings)?).ok()
}

/// A burst of `least` bytes or more, with a warning when usual packets are longer than it.
fn burst(least: u64) -> impl Fn(&Value<'_>, &mut Findings) -> Option<Burst> {
    move |value, findings| {
        let bytes = size(least..=Burst::MOST)(value, findings)?;
        if (1..USUAL_PACKET).contains(&bytes) {
            let message =
                format!("packets longer than {bytes} bytes will never fit `{}`", value.name());
            let help = "have room for the longest packet, mostly 1500 bytes (RFC 2697, section 2; \
                        RFC 2698, section 2)";
            let place = Some(value.place.clone());
            findings.push(Finding::warning(&value.key, message).at(place, "").help(help));
        }
        Burst::new(bytes).ok()
    }
}
