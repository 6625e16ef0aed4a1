//! `rheo nat --log`: which hosts have had an external endpoint, and when, by the log of a NAT.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::net::{SocketAddr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rheostat_observe::control::protocol_name;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why a log was not searched.
#[derive(Debug, Error)]
pub(crate) enum Error {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("line {line} of {} is no line of a NAT's log: {source}", path.display())]
    Line { path: PathBuf, line: usize, source: serde_json::Error },
}

/// A line of the log.
#[derive(Deserialize)]
struct Line {
    time: f64,
    event: Event,
    protocol: u8,
    inner: SocketAddrV4,
    external: SocketAddrV4,
    remote: Option<SocketAddrV4>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Event {
    Created,
    Ended,
}

/// A time for which a host had the endpoint.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Holding {
    protocol: String,
    inside: SocketAddrV4,
    external: SocketAddrV4,
    peer: Option<SocketAddrV4>,
    /// Seconds as packets count time; none if it began before the log.
    from: Option<f64>,
    /// None while it lasts.
    until: Option<f64>,
}

/// Prints the hosts that have had an endpoint. The exit status is 1 if the log has none.
///
/// # Errors
/// [`Error`] when the log cannot be read, or is none.
pub(crate) fn search(path: &Path, external: SocketAddr, json: bool) -> Result<ExitCode, Error> {
    let fails = |source| Error::Read { path: path.to_owned(), source };
    let holdings = read(path, BufReader::new(File::open(path).map_err(fails)?), external)?;
    if json {
        out!("{}", serde_json::to_string(&holdings).expect("endpoints are always JSON"));
    } else {
        let seconds = |time: Option<f64>, word: &str| {
            time.map_or_else(|| word.to_owned(), |time| format!("{time:.3} s"))
        };
        for Holding { protocol, inside, external, peer, from, until } in &holdings {
            let peer = peer.map(|peer| format!(" to {peer}")).unwrap_or_default();
            let (from, until) = (seconds(*from, "before the log"), seconds(*until, "now"));
            out!("{external}  {protocol} {inside}{peer}  from {from} until {until}");
        }
    }
    Ok(if holdings.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn read(path: &Path, mut log: impl BufRead, wanted: SocketAddr) -> Result<Vec<Holding>, Error> {
    let (mut holdings, mut text, mut number) = (Vec::<Holding>::new(), String::new(), 0);
    loop {
        text.clear();
        let fails = |source| Error::Read { path: path.to_owned(), source };
        log.read_line(&mut text).map_err(fails)?;
        number += 1;
        // A run that goes on may have written a part of its last line.
        if !text.ends_with('\n') {
            return Ok(holdings);
        }
        let line: Line = serde_json::from_str(&text).map_err(|source| Error::Line {
            path: path.to_owned(),
            line: number,
            source,
        })?;
        if SocketAddr::V4(line.external) != wanted {
            continue;
        }
        let Line { time, event, protocol, inner, external, remote } = line;
        let holding = Holding {
            protocol: protocol_name(protocol),
            inside: inner,
            external,
            peer: remote,
            from: None,
            until: None,
        };
        let is_same = |other: &&mut Holding| {
            let of = |one: &Holding| (one.protocol.clone(), one.inside, one.peer);
            other.until.is_none() && of(other) == of(&holding)
        };
        match event {
            Event::Created => holdings.push(Holding { from: Some(time), ..holding }),
            Event::Ended => match holdings.iter_mut().rev().find(is_same) {
                Some(open) => open.until = Some(time),
                None => holdings.push(Holding { until: Some(time), ..holding }),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = r#"{"time":1.0,"event":"ended","protocol":17,"inner":"10.0.0.9:1","external":"203.0.113.1:7"}
{"time":1.5,"event":"created","protocol":17,"inner":"10.0.0.5:4000","external":"203.0.113.1:7"}
{"time":2.0,"event":"created","protocol":17,"inner":"10.0.0.6:1","external":"203.0.113.1:8"}
{"time":3.0,"event":"ended","protocol":17,"inner":"10.0.0.5:4000","external":"203.0.113.1:7"}
{"time":4.0,"event":"created","protocol":6,"inner":"10.0.0.7:1","external":"203.0.113.1:7","remote":"192.0.2.1:443"}
{"time":5.0,"event":"cre"#;

    fn found(log: &str) -> Result<Vec<Holding>, Error> {
        read(Path::new("x"), log.as_bytes(), "203.0.113.1:7".parse().unwrap())
    }

    #[test]
    fn the_hosts_that_have_had_an_endpoint_are_found_with_their_times() {
        let holdings = found(LOG).unwrap();
        let times: Vec<_> = holdings.iter().map(|one| (one.from, one.until)).collect();
        assert_eq!(times, [(None, Some(1.0)), (Some(1.5), Some(3.0)), (Some(4.0), None)]);
        assert_eq!(holdings[1].inside, "10.0.0.5:4000".parse().unwrap());
        assert_eq!(holdings[2].peer, Some("192.0.2.1:443".parse().unwrap()));
        assert_eq!([&holdings[0].protocol, &holdings[2].protocol], ["UDP", "TCP"]);
    }

    #[test]
    fn a_file_that_is_no_log_is_an_error_with_its_line() {
        let error = found("{\"event\":\"flow\"}\n").unwrap_err().to_string();
        assert!(error.starts_with("line 1 of x is no line of a NAT's log"), "{error}");
        assert_eq!(found("").unwrap(), []);
    }
}
