//! The protocols of the servers that are measured: requests as bytes, and replies read back.

mod echo;
mod http;
mod resp;
mod work;

use std::net::SocketAddr;

use rheostat_serve::work::ServiceTimes;
use thiserror::Error;

use crate::classes::ClassMix;

/// The longest reply that is read, in bytes.
pub const LONGEST_REPLY: usize = 64 << 20;
/// Bytes of a request at most.
pub const LONGEST_REQUEST: u32 = 64 << 10;

/// A protocol, with the requests of its classes.
#[derive(Clone, Debug)]
pub struct Protocol {
    kind: ProtocolKind,
    size: u32,
}

#[derive(Clone, Debug)]
enum ProtocolKind {
    /// Nanoseconds of each class; none where the server draws.
    Work(Vec<u64>),
    Echo,
    /// The request of each class.
    Http(Vec<Vec<u8>>),
    Resp(Vec<Vec<u8>>),
}

/// What a reply says of its request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// The class, where the server picked it.
    pub class: Option<u8>,
    /// The service time, where the server states it.
    pub service: Option<ServiceTime>,
    /// Whether it reports an error.
    pub is_error: bool,
    /// Whether the connection ends behind it.
    pub closes: bool,
}

/// How long a request kept the server busy, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceTime {
    /// What it should have taken.
    pub target: u64,
    /// What it took.
    pub took: u64,
}

/// What stands at the beginning of what was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// No whole reply; look again when there are so many bytes.
    Need(usize),
    /// A reply of so many bytes.
    Whole(usize, Reply),
    /// No reply to the request.
    Garbage(&'static str),
}

/// What is known of a reply that is not whole yet. A reply begins with a new one.
#[derive(Clone, Debug, Default)]
pub struct Reading(http::HttpReading);

/// Why requests are impossible.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ProtocolError {
    /// No such protocol.
    #[error("there is no protocol `{0}`; write work, echo, http or resp")]
    Unknown(String),
    /// A size out of range.
    #[error("requests of `{protocol}` have {least} to {LONGEST_REQUEST} bytes, not {size}")]
    Size {
        /// The protocol.
        protocol: &'static str,
        /// The shortest request.
        least: usize,
        /// What was asked for.
        size: u32,
    },
    /// A class asks for what the protocol does not have.
    #[error("class `{class}`: {reason}")]
    Class {
        /// Its name.
        class: String,
        /// What is wrong.
        reason: String,
    },
}

impl Protocol {
    /// The protocol `name` with requests of about `size` bytes to `server`.
    ///
    /// # Errors
    /// [`ProtocolError`] when there is no such protocol, or it cannot have such requests.
    pub fn new(
        name: &str,
        size: u32,
        mix: &ClassMix,
        server: SocketAddr,
    ) -> Result<Protocol, ProtocolError> {
        let check = |protocol, least: usize| match (least as u32..=LONGEST_REQUEST).contains(&size)
        {
            true => Ok(()),
            false => Err(ProtocolError::Size { protocol, least, size }),
        };
        let classes = mix.classes();
        let kind = match name {
            "work" => {
                check("work", work::LEAST)?;
                let time = |class: &crate::Class| {
                    let wrong = |reason| ProtocolError::Class { class: class.name.clone(), reason };
                    let times = class.what.parse::<ServiceTimes>();
                    let times = times.map_err(|error| wrong(error.to_string()))?;
                    match times.targets().as_slice() {
                        [time] if times.classes().len() == 1 => Ok(*time),
                        _ => {
                            Err(wrong(format!("`{}` is not one service time above 0", class.what)))
                        }
                    }
                };
                ProtocolKind::Work(classes.iter().map(time).collect::<Result<_, _>>()?)
            }
            "echo" => {
                check("echo", echo::LEAST)?;
                ProtocolKind::Echo
            }
            "http" => {
                let paths = classes.iter().map(|class| class.what.as_str());
                let paths: Vec<&str> = if classes.is_empty() { vec!["/"] } else { paths.collect() };
                if let Some(wrong) = classes.iter().find(|class| !http::is_path(&class.what)) {
                    let reason =
                        format!("`{}` is no path: write one such as /index.html", wrong.what);
                    return Err(ProtocolError::Class { class: wrong.name.clone(), reason });
                }
                check("http", 1)?;
                ProtocolKind::Http(
                    paths.into_iter().map(|path| http::request(path, server, size)).collect(),
                )
            }
            "resp" => {
                let commands = classes.iter().map(|class| class.what.as_str());
                let commands: Vec<&str> =
                    if classes.is_empty() { vec!["GET rheo"] } else { commands.collect() };
                check("resp", 1)?;
                ProtocolKind::Resp(
                    commands.into_iter().map(|command| resp::request(command, size)).collect(),
                )
            }
            unknown => return Err(ProtocolError::Unknown(unknown.to_owned())),
        };
        Ok(Protocol { kind, size })
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self.kind {
            ProtocolKind::Work(_) => "work",
            ProtocolKind::Echo => "echo",
            ProtocolKind::Http(_) => "http",
            ProtocolKind::Resp(_) => "resp",
        }
    }

    /// Requests under way on a connection at most, where nothing else is asked for: servers of HTTP seldom take more than one.
    pub fn usual_outstanding(&self) -> usize {
        if matches!(self.kind, ProtocolKind::Http(_)) { 1 } else { 64 }
    }

    /// Appends the request `number` of a class. `draw` is a uniform random number.
    pub fn write(&self, number: u64, class: u8, draw: u64, out: &mut Vec<u8>) {
        let class = usize::from(class);
        match &self.kind {
            ProtocolKind::Work(times) => {
                let time = times.get(class).copied().unwrap_or(0);
                work::write(self.size, number, class as u8, time, draw, out);
            }
            ProtocolKind::Echo => echo::write(self.size, number, out),
            ProtocolKind::Http(requests) | ProtocolKind::Resp(requests) => {
                out.extend(requests.get(class).into_iter().flatten());
            }
        }
    }

    /// Reads the reply to request `number` at the beginning of `bytes`. `ended` says that no more bytes will come, `reading` has what
    /// was found in fewer bytes of the same reply.
    pub fn parse(&self, number: u64, bytes: &[u8], ended: bool, reading: &mut Reading) -> Progress {
        let progress = match &self.kind {
            ProtocolKind::Work(_) => work::parse(number, bytes),
            ProtocolKind::Echo => echo::parse(self.size, number, bytes),
            ProtocolKind::Http(_) => http::parse(bytes, ended, &mut reading.0),
            ProtocolKind::Resp(_) => resp::parse(bytes),
        };
        match progress {
            Progress::Need(needed) if needed > LONGEST_REPLY || bytes.len() > LONGEST_REPLY => {
                Progress::Garbage("a reply is longer than 64 MiB")
            }
            progress => progress,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn protocol(name: &str, size: u32, classes: &[&str]) -> Result<Protocol, String> {
        let classes = classes.iter().map(|class| class.parse().unwrap()).collect();
        let mix = ClassMix::new(classes).unwrap();
        let server = SocketAddr::from(([192, 0, 2, 1], 80));
        Protocol::new(name, size, &mix, server).map_err(|error| error.to_string())
    }

    #[test]
    fn requests_have_the_size_that_is_asked_for() {
        for (name, size) in
            [("work", 128), ("work", 40), ("echo", 8), ("echo", 1_000), ("http", 128)]
        {
            let mut bytes = Vec::new();
            protocol(name, size, &[]).unwrap().write(7, 0, 9, &mut bytes);
            assert_eq!(bytes.len(), size as usize, "{name}");
        }
        let mut bytes = Vec::new();
        protocol("resp", 128, &["set=1:SET key {data}"]).unwrap().write(0, 0, 0, &mut bytes);
        assert_eq!(bytes.len(), 128);
        assert!(bytes.starts_with(b"*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$"));
    }

    #[test]
    fn what_a_protocol_does_not_have_is_named() {
        let wrong = |name: &str, size, classes: &[&str]| protocol(name, size, classes).unwrap_err();
        assert!(wrong("udp", 128, &[]).contains("work, echo, http or resp"));
        assert!(wrong("work", 39, &[]).contains("40 to"));
        assert!(wrong("echo", 7, &[]).contains("8 to"));
        assert!(wrong("http", 1 << 20, &[]).contains("65536"));
        assert!(wrong("work", 128, &["a=1:x"]).contains("class `a`"));
        assert!(wrong("work", 128, &["a=1:bimodal-1"]).contains("not one service time"));
        assert!(wrong("http", 128, &["a=1:x y"]).contains("no path"));
    }

    proptest! {
        /// Whatever a server sends, it is a reply, garbage, or the beginning of something that more bytes may end.
        #[test]
        fn no_bytes_confuse_a_protocol(
            bytes in prop::collection::vec(any::<u8>(), 0..400), name in 0..4_usize, ended: bool
        ) {
            let protocol = protocol(["work", "echo", "http", "resp"][name], 128, &[]).unwrap();
            match protocol.parse(3, &bytes, ended, &mut Reading::default()) {
                Progress::Whole(len, _) => prop_assert!(len > 0 && len <= bytes.len()),
                Progress::Need(needed) => prop_assert!(needed > bytes.len() || ended),
                Progress::Garbage(_) => {}
            }
        }
    }
}
