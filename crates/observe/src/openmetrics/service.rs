//! Families of a service over TCP.

use super::family::{Family, Kind};

/// The gauges among the counters of a service, which have families of their own.
const CURRENT: &str = "tcpCurrEstab";
const HALF_OPEN: &str = "half_open";

pub(super) const FAMILIES: &[Family] = &[
    Family::new(
        "rheo_tcp",
        Kind::Count,
        &["object"],
        "Counters of TCP by their names in RFC 4022",
        |run, to| {
            for (object, count) in run.status.tcp.iter().filter(|(name, _)| *name != CURRENT) {
                to.count([object], *count);
            }
        },
    ),
    Family::new(
        "rheo_connections",
        Kind::Gauge,
        &[],
        "Connections that are established or wait to be closed (tcpCurrEstab of RFC 4022)",
        |run, to| run.status.tcp.get(CURRENT).into_iter().for_each(|now| to.count([], *now)),
    ),
    Family::new(
        "rheo_half_open_connections",
        Kind::Gauge,
        &[],
        "Handshakes that clients have not completed",
        |run, to| run.status.service.get(HALF_OPEN).into_iter().for_each(|now| to.count([], *now)),
    ),
    Family::new(
        "rheo_service",
        Kind::Count,
        &["event"],
        "What the service counts beside TCP's objects, by the names of the summary",
        |run, to| {
            let counters = run.status.service.iter();
            for (event, count) in counters.filter(|(name, _)| *name != HALF_OPEN) {
                to.count([event], *count);
            }
        },
    ),
    Family::new(
        "rheo_application",
        Kind::Count,
        &["event"],
        "What the application counts, by its own names",
        |run, to| {
            for (event, count) in &run.status.application {
                to.count([event], *count);
            }
        },
    ),
];
