//! Settings of `service = "relay"`, and its registration.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::ops::RangeInclusive;

use rheostat_settings::declared::Form;
use rheostat_settings::declared::kind::{Kind, optional};
use rheostat_settings::reader::convert::text;
use rheostat_settings::{Findings, Value};

use super::Relay;
use crate::registry::{
    ApplicationError, ApplicationFacts, ApplicationKind, ApplicationRegistration, Opening, Program,
};

rheostat_settings::settings! {
    /// The host that connections are joined to.
    pub struct RelaySettings {
        /// The host to connect to, as ADDRESS:PORT (IPv6 addresses in brackets) or NAME:PORT. A name is looked up once, at the
        /// start; its addresses are tried in turn.
        to: String = Kind::new(Form::Text, endpoint, String::clone), value("HOST:PORT"),
            required("to = \"192.0.2.7:22\"");
        /// The ports to connect from, as FIRST-LAST: 1024-65535, unless beside the kernel, where some must be given. At least 256, two
        /// for each shard.
        source_ports: Option<RangeInclusive<u16>> = optional(port_range()), value("FIRST-LAST");
    }
}

impl RelaySettings {
    /// The addresses to connect to.
    fn targets(&self) -> Result<Vec<SocketAddr>, ApplicationError> {
        let wrong =
            |reason: &str| ApplicationError(format!("cannot relay to `{}`: {reason}", self.to));
        let found = self.to.to_socket_addrs().map_err(|error| wrong(&error.to_string()))?;
        let targets: Vec<_> = found.filter(|target| target.port() != 0).collect();
        match targets.is_empty() {
            true => Err(wrong("it has no address and port")),
            false => Ok(targets),
        }
    }

    fn facts(&self) -> ApplicationFacts {
        ApplicationFacts {
            is_handler: true,
            opens: Some(Opening { source_ports: self.source_ports.clone() }),
            ..ApplicationFacts::default()
        }
    }
}

/// `relay`.
pub fn registration() -> ApplicationRegistration {
    let summary = "Each connection is joined to one to another host";
    ApplicationKind::new("relay", summary, |settings: &RelaySettings, _| {
        Ok(Program::events(Relay::new(settings.targets()?)).into())
    })
    .describing(|settings| format!(" to {}", settings.to))
    .with_facts(RelaySettings::facts)
    .checking(|settings| settings.targets().map(drop))
    .register()
}

/// A conversion to HOST:PORT. Whether there is such a host is known at the start.
fn endpoint(value: &Value<'_>, findings: &mut Findings) -> Option<String> {
    let endpoint = text(value, findings)?;
    if is_endpoint(endpoint) {
        return Some(endpoint.to_owned());
    }
    let message = format!("`{endpoint}` is not a host with a port");
    let help = "write \"192.0.2.7:22\", \"[2001:db8::7]:22\" or \"NAME:22\"";
    findings.push(value.mistake(message).help(help));
    None
}

fn is_endpoint(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let is_host = match host.strip_prefix('[').map(|rest| rest.strip_suffix(']')) {
        Some(inner) => inner.is_some_and(|host| matches!(host.parse(), Ok(IpAddr::V6(_)))),
        None => !host.is_empty() && !host.contains([':', ' ', '/']),
    };
    is_host && port.parse::<u16>().is_ok_and(|port| port > 0)
}

/// Ports as FIRST-LAST.
fn port_range() -> Kind<RangeInclusive<u16>> {
    let write = |ports: &RangeInclusive<u16>| format!("{}-{}", ports.start(), ports.end());
    Kind::new(Form::Text, read_range, write).noun("range of ports").such_as("\"20000-29999\"")
}

fn read_range(value: &Value<'_>, findings: &mut Findings) -> Option<RangeInclusive<u16>> {
    let written = text(value, findings)?;
    let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
    let (first, last) = written.split_once('-').unwrap_or((written, written));
    if let (Some(first), Some(last)) = (port(first), port(last))
        && first <= last
    {
        return Some(first..=last);
    }
    let message = format!("`{written}` is not a range of ports");
    let help = "write the first and the last, such as \"1024-65535\"";
    findings.push(value.mistake(message).help(help));
    None
}

#[cfg(test)]
mod tests {
    use super::is_endpoint;

    #[test]
    fn an_endpoint_is_a_host_and_a_port() {
        for right in ["192.0.2.7:22", "[2001:db8::7]:22", "host.example:443"] {
            assert!(is_endpoint(right), "{right}");
        }
        for wrong in
            ["", ":22", "host", "host:", "host:0", "host:65536", "2001:db8::7:22", "[::1:2"]
        {
            assert!(!is_endpoint(wrong), "{wrong}");
        }
        assert!(!is_endpoint("[192.0.2.7]:22"));
        assert!(!is_endpoint("http://host:80"));
    }
}
