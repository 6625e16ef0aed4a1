//! `[function.lb]`: the services of a load balancer, and their backends.

mod agreement;
mod backend;
mod check;
mod describe;
mod service;
mod timeouts;
mod tunnel;

use std::path::PathBuf;

use crate::lb::maglev::{is_prime, next_prime};
use crate::lb::{LbConfig, Other, Sides};
use rheostat_base::DeviceId;
use rheostat_steer::Orientation;

use rheostat_settings::declared::kind::{Kind, choice, integer, packet_rate, path};
use rheostat_settings::declared::{Form, Setting};
use rheostat_settings::device::Device;
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::convert::number::integer as read_integer;
use rheostat_settings::reader::{Table, Value};

pub(super) use describe::describe;

/// What becomes of packets that belong to no service.
const OTHERS: [(&str, Other); 2] = [("pass", Other::Pass), ("drop", Other::Drop)];

/// Slots a table may have: the paper's larger size is 655,373.
const SLOTS: std::ops::RangeInclusive<u64> = 101..=10_000_019;

/// Reads the settings of the load balancer.
pub(super) fn read(table: &mut Table<'_>, devices: &[Device], findings: &mut Findings) -> LbConfig {
    let keys = Keys::new(LbConfig::default());
    let seed = keys.seed.read(table, findings);
    let table_size = keys.table_size.read_or_default(table, findings);
    let other = keys.other.read_or_default(table, findings);
    let answers_per_second = keys.answer_rate.read_or_default(table, findings);
    let tunnel = table.section("tunnel", findings, tunnel::read);
    let timeouts = table.section("timeouts", findings, timeouts::read);
    let log = keys.log.read(table, findings);
    let services = table.sections("service", findings, service::read);
    let config = LbConfig {
        seed: seed.unwrap_or_default(),
        table_size,
        services: services.into_iter().flatten().collect(),
        other,
        tunnel: tunnel.unwrap_or_default(),
        timeouts: timeouts.unwrap_or_default(),
        answers_per_second,
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

rheostat_settings::keys! {
    struct Keys(default: LbConfig) {
        /// The seed of the tables: the same at all load balancers that stand for one another, and unknown to others.
        seed: u64 = integer(0..=i64::MAX as u64), required("seed = 6417203915507");
        /// Slots of the table of each service, a prime: at least a hundred for each backend.
        table_size: usize = Kind::new(Form::Number, slots, usize::to_string).noun("prime").within("101 to 10000019"),
            default(default.table_size);
        /// What becomes of packets that belong to no service.
        other: Other = choice(OTHERS), default(default.other);
        /// Replies that each shard sends at most: ICMP errors, resets, and answers to echo requests.
        answer_rate: u32 = packet_rate(0..=1_000_000), default(default.answers_per_second);
        /// The file that changes of backends' health are logged to, one JSON object a line; none without it.
        log: PathBuf = path(), example("\"health.jsonl\"");
    }
}

/// The keys of `[function.lb]`.
pub(super) fn keys() -> Vec<Setting> {
    let mut keys = Keys::new(LbConfig::default()).settings();
    let log = keys.pop();
    let help = "How packets travel to backends that answer clients directly.";
    keys.push(Setting::table("tunnel", help, tunnel::keys()));
    let help = "How long flows are remembered without a packet.";
    keys.push(Setting::table("timeouts", help, timeouts::keys()));
    keys.extend(log);
    let help = "An address and ports that clients know, and its backends.";
    keys.push(Setting::tables("service", help, service::keys()));
    keys
}

/// A conversion to a number of slots: a prime, as every backend's permutation needs one.
fn slots(value: &Value<'_>, findings: &mut Findings) -> Option<usize> {
    let size = read_integer(SLOTS)(value, findings)? as usize;
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
