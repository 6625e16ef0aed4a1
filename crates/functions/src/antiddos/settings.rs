//! `[function.antiddos]`: what counts as an attack, and what becomes of new flows then.

use std::fmt;
use std::time::Duration;

use crate::antiddos::{Action, Alarm, AntiDdosConfig};
use rheostat_steer::Side;

use rheostat_settings::device::side;
use rheostat_settings::findings::Findings;
use rheostat_settings::quantity::YEAR;
use rheostat_settings::quantity::{Count, Span};
use rheostat_settings::reader::Table;
use rheostat_settings::reader::convert::number::{count, duration, number};
use rheostat_settings::reader::convert::{boolean, choice};

const ACTIONS: [(&str, Action); 2] = [("count", Action::Count), ("drop", Action::Drop)];

/// Reads the settings of the detector.
pub(super) fn read(table: &mut Table<'_>, findings: &mut Findings) -> AntiDdosConfig {
    let default = AntiDdosConfig::default();
    let share = table.read("threshold", findings, number(0.001..=0.999));
    let permille = share.map_or(default.alarm.permille, |share| (share * 1_000.0).round() as u16);
    let least = table.read("min_flows", findings, count(1..=u64::from(u32::MAX)));
    let least = least.map_or(default.alarm.least, |least| least as u32);
    let staleness = duration(Duration::ZERO..=Duration::from_secs(10));
    let lifetime = || duration(Duration::from_millis(100)..=YEAR);
    AntiDdosConfig {
        alarm: Alarm { permille, least },
        staleness: table.read("staleness", findings, staleness).unwrap_or(default.staleness),
        from: table.read("from", findings, side),
        udp: table.read("udp", findings, boolean).unwrap_or(default.udp),
        action: table.read("action", findings, choice(&ACTIONS)).unwrap_or_default(),
        one_packet: table.read("one_packet", findings, lifetime()).unwrap_or(default.one_packet),
        idle: table.read("idle", findings, lifetime()).unwrap_or(default.idle),
    }
}

/// Writes what counts as an attack, and what it brings.
pub(super) fn describe(config: &AntiDdosConfig, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Alarm { permille, least } = config.alarm;
    write!(f, "attack when more than {} % of ", f64::from(permille) / 10.0)?;
    write!(f, "{} flows or more", Count(u64::from(least)))?;
    f.write_str(match config.from {
        None => "",
        Some(Side::Inside) => " from inside",
        Some(Side::Outside) => " from outside",
    })?;
    write!(f, " have one packet, by counts up to {} old; ", Span(config.staleness))?;
    f.write_str(if config.udp { "TCP and UDP; " } else { "TCP; " })?;
    writeln!(
        f,
        "new flows are {}",
        match config.action {
            Action::Count => "counted",
            Action::Drop => "dropped",
        }
    )
}
