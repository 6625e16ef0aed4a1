//! The log of a NAT's mappings as lines of JSON.

use std::io::{self, Write};
use std::net::SocketAddrV4;

use rheostat_nf::registry::Lines;
use serde::Serialize;

use super::{MappingChange, MappingEvent, MappingLog};

/// One line.
#[derive(Serialize)]
struct Line {
    /// Seconds, as packets count time.
    time: f64,
    event: &'static str,
    protocol: u8,
    inner: SocketAddrV4,
    external: SocketAddrV4,
    #[serde(skip_serializing_if = "Option::is_none")]
    remote: Option<SocketAddrV4>,
}

impl Lines for MappingLog {
    fn write_new(&mut self, file: &mut dyn Write) -> io::Result<usize> {
        let mut written = Ok(());
        let events = self.drain(|event| {
            if written.is_ok() {
                written = write(file, &event);
            }
        });
        written.map(|()| events)
    }
}

fn write(file: &mut dyn Write, event: &MappingEvent) -> io::Result<()> {
    let end = |(address, port)| SocketAddrV4::new(address, port);
    let line = Line {
        time: event.time.as_nanos() as f64 / 1e9,
        event: match event.change {
            MappingChange::Created => "created",
            MappingChange::Ended => "ended",
        },
        protocol: event.protocol,
        inner: end(event.inner),
        external: end(event.external),
        remote: event.remote.map(end),
    };
    serde_json::to_writer(&mut *file, &line)?;
    file.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rheostat_base::Time;
    use std::net::Ipv4Addr;

    #[test]
    fn a_line_states_which_host_had_which_endpoint_and_when() {
        let event = MappingEvent {
            time: Time::from_nanos(1_500_000_000),
            change: MappingChange::Created,
            protocol: 17,
            inner: (Ipv4Addr::new(10, 0, 0, 5), 4_000),
            external: (Ipv4Addr::new(203, 0, 113, 1), 50_000),
            remote: None,
        };
        let mut file = Vec::new();
        write(&mut file, &event).unwrap();
        let expected = "{\"time\":1.5,\"event\":\"created\",\"protocol\":17,\
                        \"inner\":\"10.0.0.5:4000\",\"external\":\"203.0.113.1:50000\"}\n";
        assert_eq!(String::from_utf8(file).unwrap(), expected);
        let remote = Some((Ipv4Addr::new(198, 51, 100, 1), 53));
        let event = MappingEvent { change: MappingChange::Ended, remote, ..event };
        let mut file = Vec::new();
        write(&mut file, &event).unwrap();
        let text = String::from_utf8(file).unwrap();
        assert!(text.contains("\"ended\"") && text.contains("\"remote\":\"198.51.100.1:53\""));
    }
}
