//! A load balancer in words, with what its tables come to.

use std::fmt;

use crate::lb::maglev::{BOUNDED, DISTURBANCE_BOUND, Maglev, disturbance};
use crate::lb::{CheckKind, Health, LbConfig, Mode, ServiceConfig};

use rheostat_settings::quantity::Span;

/// Backends whose loss is tried out for each service, so that describing many takes no longer.
const TRIED: usize = 8;

/// Describes a load balancer in a line, and each of its services in another.
pub(in crate::lb) fn describe(config: &LbConfig, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let services = config.services.len();
    let plural = if services == 1 { "service" } else { "services" };
    write!(f, "{services} {plural}, tables of {} slots", config.table_size)?;
    writeln!(
        f,
        "; other packets {}",
        match config.other {
            crate::lb::Other::Pass => "pass",
            crate::lb::Other::Drop => "are dropped",
        }
    )?;
    config.services.iter().try_for_each(|service| describe_service(config, service, f))
}

fn describe_service(
    config: &LbConfig,
    service: &ServiceConfig,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let count = |wanted| service.backends.iter().filter(|b| b.health == wanted).count();
    let mode = match service.mode {
        Mode::DsrIpip => "IP in IP",
        Mode::DsrGue => "GUE",
        Mode::Nat => "translated",
    };
    let (up, drain, down) = (count(Health::Up), count(Health::Drain), count(Health::Down));
    write!(f, "          {} at {}, {mode}: {up} up", service.name, service.vip)?;
    write!(f, ", {drain} draining, {down} down")?;
    if let Some(check) = &service.check {
        let kind = match check.kind {
            CheckKind::Icmp => "ICMP",
            CheckKind::Tcp => "TCP",
            CheckKind::Http(_) => "HTTP",
        };
        write!(f, "; checked by {kind} every {}", Span(check.interval))?;
    }
    let candidates = service.candidates(&service.health());
    let table = Maglev::new(config.table_size, config.seed, &candidates);
    let shares = table.shares(candidates.len());
    let used: Vec<_> =
        (0..candidates.len()).filter(|&backend| candidates[backend].weight > 0).collect();
    let share = |slots: usize| 100.0 * slots as f64 / config.table_size as f64;
    let (Some(least), Some(most)) =
        (used.iter().map(|&b| shares[b]).min(), used.iter().map(|&b| shares[b]).max())
    else {
        return writeln!(f);
    };
    write!(f, "; {:.2} to {:.2} % of new flows each", share(least), share(most))?;
    if used.len() > 1 {
        let step = used.len().div_ceil(TRIED);
        let worst = used
            .iter()
            .step_by(step)
            .map(|&gone| disturbance(config.table_size, config.seed, &candidates, gone))
            .fold(0.0, f64::max);
        write!(f, ", and {:.2} % of the others' move if one goes", 100.0 * worst)?;
        if config.table_size >= BOUNDED {
            write!(f, " (at most {} %)", 100.0 * DISTURBANCE_BOUND)?;
        }
    }
    writeln!(f)
}
