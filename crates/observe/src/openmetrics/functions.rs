//! Families of the functions of a chain.

use super::family::{Family, Kind};

const PORTS: &[&str] = &["address", "protocol", "remote"];

pub(super) const FAMILIES: &[Family] = &[
    Family::new(
        "rheo_function",
        Kind::Count,
        &["event"],
        "What functions count, by the names of the summary",
        |run, to| {
            for (event, count) in &run.status.summary.functions {
                to.count([event], *count);
            }
        },
    ),
    Family::new(
        "rheo_rule_hits",
        Kind::Count,
        &["function", "rule"],
        "Packets that a rule has decided about: the first one of each flow, and those that open no flow",
        |run, to| {
            for line in &run.rules {
                to.count([&line.function, &line.rule], line.hits);
            }
        },
    ),
    Family::new(
        "rheo_rule_bytes",
        Kind::Count,
        &["function", "rule"],
        "Bytes of these packets",
        |run, to| {
            for line in &run.rules {
                if let Some(bytes) = line.bytes {
                    to.count([&line.function, &line.rule], bytes);
                }
            }
        },
    ),
    Family::new(
        "rheo_missing_shards",
        Kind::Gauge,
        &[],
        "Shards without their part in `rheo_function_total`, because their lane has not answered",
        |run, to| to.count([], run.status.missing_shards as u64),
    ),
    Family::new(
        "rheo_nat_ports_in_use",
        Kind::Gauge,
        PORTS,
        "Ports of an external address that have a flow; `remote` is set with mapping by remote endpoint",
        |run, to| {
            for ports in &run.status.summary.ports {
                let remote = ports.remote.as_deref().unwrap_or_default();
                to.count([&ports.address, &ports.protocol, &remote], ports.in_use);
            }
        },
    ),
    Family::new(
        "rheo_nat_ports",
        Kind::Gauge,
        PORTS,
        "Ports of an external address, used or not",
        |run, to| {
            for ports in &run.status.summary.ports {
                let remote = ports.remote.as_deref().unwrap_or_default();
                to.count([&ports.address, &ports.protocol, &remote], ports.ports);
            }
        },
    ),
    Family::new(
        "rheo_backend",
        Kind::Gauge,
        &["service", "backend", "health"],
        "1 for a backend of a load balancer under its present health",
        |run, to| {
            for backend in &run.status.backends {
                to.count([&backend.service, &backend.backend, &backend.health], 1);
            }
        },
    ),
];
