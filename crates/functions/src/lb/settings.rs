//! `[function.lb]`: the services of a load balancer, and their backends.

mod agreement;
mod backend;
mod check;
mod describe;
mod service;
mod timeouts;
mod tunnel;

use crate::lb::maglev::{is_prime, next_prime};
use crate::lb::{LbConfig, Other, Sides};
use rheostat_base::DeviceId;
use rheostat_steer::Orientation;

use rheostat_settings::device::Device;
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::convert::number::{integer, packet_rate};
use rheostat_settings::reader::convert::{choice, path};
use rheostat_settings::reader::{Table, Value};

pub(super) use describe::describe;

/// What becomes of packets that belong to no service.
const OTHERS: [(&str, Other); 2] = [("pass", Other::Pass), ("drop", Other::Drop)];

/// Slots a table may have: the paper's larger size is 655,373.
const SLOTS: std::ops::RangeInclusive<u64> = 101..=10_000_019;

/// Reads the settings of the load balancer.
pub(super) fn read(table: &mut Table<'_>, devices: &[Device], findings: &mut Findings) -> LbConfig {
    let default = LbConfig::default();
    let example = "seed = 6417203915507";
    let seed = table.require("seed", example, findings, integer(0..=i64::MAX as u64));
    let size = table.read("table_size", findings, slots);
    let other = table.read("other", findings, choice(&OTHERS));
    let rate = table.read("answer_rate", findings, packet_rate(0..=1_000_000));
    let tunnel = table.section("tunnel", findings, tunnel::read);
    let timeouts = table.section("timeouts", findings, timeouts::read);
    let log = table.read("log", findings, path);
    let services = table.sections("service", findings, service::read);
    let config = LbConfig {
        seed: seed.unwrap_or(default.seed),
        table_size: size.unwrap_or(default.table_size),
        services: services.into_iter().flatten().collect(),
        other: other.unwrap_or(default.other),
        tunnel: tunnel.unwrap_or(default.tunnel),
        timeouts: timeouts.unwrap_or(default.timeouts),
        answers_per_second: rate.map_or(default.answers_per_second, |rate| rate as u32),
        sides: sides(devices),
        log,
    };
    if config.log.is_some() && config.services.iter().all(|service| service.check.is_none()) {
        let place = findings.place(&table.key_of("log"));
        let finding =
            Finding::warning(table.key_of("log"), "no service is checked, so the log stays empty");
        findings.push(finding.at(place, "").help("give a service a `check`, or remove `log`"));
    }
    if findings.clean(table.key()) {
        agreement::check(&config, table, devices, findings);
    }
    config
}

/// A conversion to a number of slots: a prime, as every backend's permutation needs one.
fn slots(value: &Value<'_>, findings: &mut Findings) -> Option<usize> {
    let size = integer(SLOTS)(value, findings)? as usize;
    if is_prime(size) {
        return Some(size);
    }
    let finding = value.mistake(format!("{size} is not a prime"));
    findings.push(finding.help(format!("write {}, which is", next_prime(size))));
    None
}

/// The devices that lead to backends and to clients.
fn sides(devices: &[Device]) -> Sides {
    let find = |wanted: &Orientation| {
        let at = devices.iter().position(|device| device.orientation == *wanted);
        DeviceId(at.unwrap_or(0) as u8)
    };
    Sides { inside: find(&Orientation::Inside), outside: find(&Orientation::Outside) }
}
