//! Follows the checks of a load balancer's backends: their results are put in force, and reported as lines of JSON and on
//! standard error.

use std::io::{self, Write};
use std::net::IpAddr;
use std::sync::Arc;

use rheostat_functions::lb::check::{HealthChecks, HealthEvent};
use rheostat_functions::lb::{Health, HealthBoard};
use serde::Serialize;

use crate::log_writer::Lines;

/// Puts the results of checks in force, and reports them. Tables are built here, where no packet waits for them.
#[derive(Debug)]
pub struct HealthLines {
    checks: Arc<HealthChecks>,
    board: Arc<HealthBoard>,
}

/// One line.
#[derive(Serialize)]
struct HealthLine<'a> {
    /// Seconds, as packets count time.
    time: f64,
    event: &'static str,
    service: &'a str,
    backend: IpAddr,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Backends of the service that take new flows from now on.
    up: usize,
}

impl HealthLines {
    /// Follows `checks`, whose outcomes are for `board`.
    pub fn new(checks: Arc<HealthChecks>, board: Arc<HealthBoard>) -> HealthLines {
        HealthLines { checks, board }
    }

    fn report(&self, event: &HealthEvent, file: &mut dyn Write) -> io::Result<()> {
        self.board.note(event.service, event.backend, event.is_up());
        let health = self.board.in_force();
        let up = health
            .get(event.service)
            .map_or(0, |backends| backends.iter().filter(|health| **health == Health::Up).count());
        let HealthEvent { service_name: service, address, failure, .. } = event;
        let reason = failure.map(|failure| failure.to_string());
        // A standard error that was closed costs nothing else.
        let _ = match &reason {
            Some(reason) => writeln!(
                io::stderr(),
                "backend {address} of `{service}` is down: {reason}; {up} are up"
            ),
            None => {
                writeln!(io::stderr(), "backend {address} of `{service}` is up again; {up} are up")
            }
        };
        let line = HealthLine {
            time: event.time.as_nanos() as f64 / 1e9,
            event: if event.is_up() { "up" } else { "down" },
            service,
            backend: *address,
            reason,
            up,
        };
        serde_json::to_writer(&mut *file, &line)?;
        file.write_all(b"\n")
    }
}

impl Lines for HealthLines {
    fn write_new(&mut self, file: &mut dyn Write) -> io::Result<usize> {
        let events = self.checks.take_events();
        for event in &events {
            self.report(event, file)?;
        }
        Ok(events.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rheostat_base::Time;
    use rheostat_functions::Lb;
    use rheostat_functions::lb::check::Failure;
    use rheostat_functions::lb::{
        BackendConfig, CheckConfig, CheckKind, LbConfig, Mode, OnDown, ServiceConfig,
    };

    #[test]
    fn a_backend_that_is_down_is_told_of_and_gets_nothing() {
        let backend = |last: u8| BackendConfig {
            address: [10, 0, 0, last].into(),
            port: None,
            weight: 1,
            health: Health::Up,
            server_id: None,
        };
        let service = ServiceConfig {
            name: "web".into(),
            vip: [198, 51, 100, 1].into(),
            protocol: 6,
            ports: vec![],
            mode: Mode::DsrIpip,
            on_down: OnDown::Move,
            quic: None,
            check: Some(CheckConfig::new(CheckKind::Icmp)),
            backends: vec![backend(1), backend(2)],
        };
        let config = LbConfig { services: vec![service], ..LbConfig::default() };
        let source = |_| Some([10, 0, 0, 9].into());
        let checks = HealthChecks::new(&config, source, 1).unwrap().expect("a check");
        let board = Lb::new(config).board();
        let lines = HealthLines::new(Arc::new(checks), board.clone());
        let event = HealthEvent {
            time: Time::from_millis(2_500),
            service: 0,
            service_name: "web".into(),
            backend: 1,
            address: [10, 0, 0, 2].into(),
            failure: Some(Failure::Status(503)),
        };
        let mut file = Vec::new();
        lines.report(&event, &mut file).unwrap();
        assert_eq!(board.in_force()[0], [Health::Up, Health::Down]);
        lines.report(&HealthEvent { failure: None, ..event }, &mut file).unwrap();
        assert_eq!(board.in_force()[0], [Health::Up, Health::Up]);
        let text = String::from_utf8(file).unwrap();
        assert_eq!(
            text,
            "{\"time\":2.5,\"event\":\"down\",\"service\":\"web\",\"backend\":\"10.0.0.2\",\
             \"reason\":\"status 503\",\"up\":1}\n\
             {\"time\":2.5,\"event\":\"up\",\"service\":\"web\",\"backend\":\"10.0.0.2\",\"up\":2}\n"
        );
    }
}
