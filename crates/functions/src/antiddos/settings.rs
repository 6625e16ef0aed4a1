//! `[function.antiddos]`: what counts as an attack, and what becomes of new flows then.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::antiddos::{Action, Alarm, AntiDdosConfig};
use rheostat_steer::Side;

use rheostat_settings::declared::Setting;
use rheostat_settings::declared::kind::{Kind, boolean, choice, count, decimal, duration, side};
use rheostat_settings::findings::Findings;
use rheostat_settings::quantity::YEAR;
use rheostat_settings::quantity::{Count, Span};
use rheostat_settings::reader::Table;

const ACTIONS: [(&str, Action); 2] = [("count", Action::Count), ("drop", Action::Drop)];

/// Reads the settings of the detector.
pub(super) fn read(table: &mut Table<'_>, findings: &mut Findings) -> AntiDdosConfig {
    let keys = Keys::new(AntiDdosConfig::default());
    let permille = keys.threshold.read_or_default(table, findings);
    let least = keys.min_flows.read_or_default(table, findings);
    AntiDdosConfig {
        alarm: Alarm { permille, least },
        staleness: keys.staleness.read_or_default(table, findings),
        from: keys.from.read(table, findings),
        udp: keys.udp.read_or_default(table, findings),
        action: keys.action.read_or_default(table, findings),
        one_packet: keys.one_packet.read_or_default(table, findings),
        idle: keys.idle.read_or_default(table, findings),
    }
}

const LIFETIMES: RangeInclusive<Duration> = Duration::from_millis(100)..=YEAR;

rheostat_settings::keys! {
    struct Keys(default: AntiDdosConfig) {
        /// The share of flows with one packet above which there is an attack.
        threshold: u16 = threshold(), default(default.alarm.permille);
        /// Flows below which there is no attack, whatever their packets.
        min_flows: u32 = count(1..=u64::from(u32::MAX)), default(default.alarm.least);
        /// How old the counts may be that a decision is based on.
        staleness: Duration = duration(Duration::ZERO..=Duration::from_secs(10)), default(default.staleness);
        /// The side whose flows are counted; both without it.
        from: Side = side(), example("\"outside\"");
        /// Whether flows of UDP are counted besides those of TCP.
        udp: bool = boolean(), default(default.udp);
        /// What becomes of new flows during an attack.
        action: Action = choice(ACTIONS), default(Action::default());
        /// How long a flow with one packet is counted.
        one_packet: Duration = duration(LIFETIMES), default(default.one_packet);
        /// How long any other flow is counted after its last packet.
        idle: Duration = duration(LIFETIMES), default(default.idle);
    }
}

/// The keys of `[function.antiddos]`.
pub(super) fn keys() -> Vec<Setting> {
    Keys::new(AntiDdosConfig::default()).settings()
}

/// A share, in thousandths.
fn threshold() -> Kind<u16> {
    let to = |share: f64| Some((share * 1_000.0).round() as u16);
    decimal(0.001..=0.999).map(to, |permille| f64::from(*permille) / 1_000.0)
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
