//! `[serve]`: a service over TCP in place of a chain.

mod http;

use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use rheostat_base::Placement;
use rheostat_base::choice::Outstanding;
use rheostat_packet::BURST;
use rheostat_run::Sharing;
use rheostat_serve::resp::RespConfig;
use rheostat_serve::work::WorkConfig;
use rheostat_serve::{
    AvailableScheduler, ListenerConfig, OutgoingConfig, ServeConfig as Limits, SynCookieMode,
};
use rheostat_tcp::congestion::Algorithm;
use rheostat_tcp::sched::{Queueing, SchedulerName};

pub use self::http::HttpServiceConfig;
use rheostat_settings::findings::Findings;
use rheostat_settings::quantity::YEAR;
use rheostat_settings::quantity::{Bytes, Span};
use rheostat_settings::reader::convert::number::{count, duration, integer, size};
use rheostat_settings::reader::convert::{boolean, choice, list, parsed, text};
use rheostat_settings::reader::{Table, Value};

/// Bytes for keys and values of a store, unless others are given.
const MEMORY: u64 = 256 << 20;
/// The longest value of a store: up to that of Redis.
const VALUES: RangeInclusive<u64> = 1 << 10..=512 << 20;
/// Ports at most.
const PORTS: usize = 64;
/// Data of a connection, a shard or all of them: from a segment to more than any machine has.
const SIZES: RangeInclusive<u64> = 64 << 10..=1 << 50;
/// What is set of synthetic work.
const WORK_KEYS: [&str; 3] = ["work", "service_time", "buffer"];
/// The longest handshake: longer than any peer tries (RFC 9293, 3.8.3).
const MOST_HANDSHAKE: Duration = Duration::from_secs(300);
/// Buffers of a connection. A window is 2^30 bytes at most (RFC 7323, 2.3).
const BUFFERS: RangeInclusive<u64> = 4 << 10..=1 << 30;

/// What is served, where, and within which bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct ServeConfig {
    /// What is served.
    pub service: ServiceConfig,
    /// Which workers do what of a request.
    pub scheduler: AvailableScheduler,
    /// Requests that a member of a dispatcher's central queue may hold.
    pub outstanding: Outstanding,
    /// Packets that a lane takes at a time of a receive queue that others take from, too.
    pub burst: usize,
    /// Whether the workers of a dispatcher share cores in turn, if there are fewer.
    pub share_cores: bool,
    /// Where workers run; on any cores without.
    pub place: Option<Placement>,
    /// The ports, at all addresses of the device.
    pub ports: Vec<u16>,
    /// Whether the addresses are the kernel's, too, which has everything at them but the service.
    pub beside_kernel: bool,
    /// Bounds of the whole service.
    pub limits: Limits,
    /// The congestion controller of its connections.
    pub congestion: Algorithm,
    /// How long a client may take to complete the handshake.
    pub handshake_timeout: Duration,
    /// How long a connection may be silent.
    pub idle_timeout: Duration,
    /// Bytes of a connection that wait to be sent or acknowledged at most.
    pub send_buffer: usize,
    /// Bytes of a connection that are received and not read at most.
    pub receive_buffer: usize,
    /// How long connections may take to end once the service is told to.
    pub drain_time: Duration,
}

/// A service.
#[derive(Clone, Debug, PartialEq)]
pub enum ServiceConfig {
    /// Files of a directory over HTTP/1.1.
    Http(HttpServiceConfig),
    /// A store of keys and values that speaks Redis's protocol.
    Resp(RespConfig),
    /// What a client sends comes back.
    Echo,
    /// Each connection is joined to one to another host.
    Relay {
        /// The host, as HOST:PORT.
        to: String,
        /// The ports to connect from; those that are not well known, without any.
        source_ports: Option<RangeInclusive<u16>>,
    },
    /// Requests take as long as is wanted.
    Work(WorkConfig),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ServiceName {
    Http,
    Resp,
    Echo,
    Relay,
    Work,
}

const NAMES: [(&str, ServiceName); 5] = [
    ("http", ServiceName::Http),
    ("resp", ServiceName::Resp),
    ("echo", ServiceName::Echo),
    ("relay", ServiceName::Relay),
    ("work", ServiceName::Work),
];

/// The congestion controllers and their names.
const CONGESTION: [(&str, Algorithm); 2] =
    [("cubic", Algorithm::Cubic), ("newreno", Algorithm::NewReno)];

impl ServeConfig {
    /// The time to drain, unless another is given.
    pub const DRAIN_TIME: Duration = Duration::from_secs(5);

    /// The listeners: one at each port.
    pub fn listeners(&self) -> Vec<ListenerConfig> {
        let listener = |port: &u16| {
            let mut listener = ListenerConfig::new(*port);
            listener.handshake_timeout = self.handshake_timeout;
            listener.idle_timeout = Some(self.idle_timeout);
            if let ServiceConfig::Http(http) = &self.service {
                listener.request_timeout = Some(http.header_timeout);
            }
            self.set(&mut listener.tcp);
            listener
        };
        self.ports.iter().map(listener).collect()
    }

    /// How a relay connects: from the ports that are given for it, if any.
    pub fn outgoing(&self) -> OutgoingConfig {
        let mut outgoing = OutgoingConfig::default();
        if let ServiceConfig::Relay { source_ports: Some(ports), .. } = &self.service {
            outgoing.ports = ports.clone();
        }
        self.set(&mut outgoing.tcp);
        outgoing
    }

    /// How lanes share receive queues, if they do.
    pub fn sharing(&self) -> Option<Sharing> {
        self.scheduler.sharing().map(|sharing| sharing.in_bursts_of(self.burst))
    }

    fn set(&self, tcp: &mut rheostat_tcp::Config) {
        tcp.congestion = self.congestion;
        tcp.send_buffer = self.send_buffer;
        tcp.receive_buffer = self.receive_buffer;
        tcp.initial_send_buffer = tcp.initial_send_buffer.min(self.send_buffer);
        tcp.initial_receive_buffer = tcp.initial_receive_buffer.min(self.receive_buffer);
    }

    /// Reads the table; `None` when nothing can be made of it.
    pub(crate) fn read(table: &mut Table<'_>, findings: &mut Findings) -> Option<ServeConfig> {
        let name = table.require("service", "service = \"http\"", findings, choice(&NAMES));
        let ports = table.require("port", "port = 80", findings, ports);
        let beside_kernel = table.read("beside_kernel", findings, boolean).unwrap_or(false);
        let is_relay = name == Some(ServiceName::Relay);
        let scheduler = table
            .read("scheduler", findings, |value, findings| scheduler(value, is_relay, findings));
        let is_central = |scheduler: &AvailableScheduler| {
            let name = scheduler.name();
            matches!(name, SchedulerName::Dispatcher(_)) && name.queueing() == Queueing::Cfcfs
        };
        let outstanding = if scheduler.as_ref().is_some_and(is_central) {
            table.read("outstanding", findings, integer(1..=2))
        } else {
            table.refuse(&["outstanding"], "scheduler = \"dispatcher-1:1\"", findings);
            None
        };
        let burst = if scheduler.is_some_and(|scheduler| scheduler.sharing().is_some()) {
            table.read("burst", findings, integer(1..=BURST as u64))
        } else {
            table.refuse(&["burst"], "scheduler = \"inline-cfcfs\"", findings);
            None
        };
        let is_dispatcher = |scheduler: &AvailableScheduler| {
            matches!(scheduler.name(), SchedulerName::Dispatcher(_))
        };
        let share_cores = if scheduler.as_ref().is_some_and(is_dispatcher) {
            table.read("share_cores", findings, boolean).unwrap_or(false)
        } else {
            table.refuse(&["share_cores"], "scheduler = \"dispatcher-1:1\"", findings);
            false
        };
        let outstanding = outstanding.and_then(|limit| Outstanding::new(limit as u32));
        let places =
            "\"idle-siblings\", \"both-siblings\", or with a node, \"idle-siblings,device-node\"";
        let place = table.read("place", findings, parsed(places));
        let limits = read_limits(table, findings);
        let usual = ListenerConfig::new(1);
        let congestion = table.read("congestion", findings, choice(&CONGESTION));
        let second = Duration::from_secs(1);
        let handshake_timeout =
            table.read("handshake_timeout", findings, duration(second..=MOST_HANDSHAKE));
        let idle_timeout = table.read("idle_timeout", findings, duration(second..=YEAR));
        let mut buffer = |key, usual: usize| {
            let read = table.read(key, findings, size(BUFFERS));
            read.map_or(usual, |bytes| bytes as usize)
        };
        let send_buffer = buffer("send_buffer", usual.tcp.send_buffer);
        let receive_buffer = buffer("receive_buffer", usual.tcp.receive_buffer);
        let drain_time = table.read("drain_time", findings, duration(Duration::ZERO..=YEAR));
        let service = match name {
            Some(name) => read_service(name, table, findings),
            None => {
                // Which of them have a meaning is not known.
                table.ignore(&["memory", "longest_value", "to", "source_ports"]);
                table.ignore(&http::KEYS);
                table.ignore(&WORK_KEYS);
                None
            }
        };
        let service = service?;
        let mut limits = limits;
        if let ServiceConfig::Resp(resp) = &service {
            limits.longest_request = limits.longest_request.max(resp.longest_command());
        }
        Some(ServeConfig {
            service,
            scheduler: scheduler.unwrap_or_default(),
            outstanding: outstanding.unwrap_or(Outstanding::ONE),
            burst: burst.map_or(1, |burst| burst as usize),
            share_cores,
            place,
            ports: ports?,
            beside_kernel,
            limits,
            congestion: congestion.unwrap_or_default(),
            handshake_timeout: handshake_timeout.unwrap_or(usual.handshake_timeout),
            idle_timeout: idle_timeout.or(usual.idle_timeout).unwrap_or(YEAR),
            send_buffer,
            receive_buffer,
            drain_time: drain_time.unwrap_or(ServeConfig::DRAIN_TIME),
        })
    }
}

fn read_limits(table: &mut Table<'_>, findings: &mut Findings) -> Limits {
    let usual = Limits::default();
    let mut number = |key, usual: usize| {
        let read = table.read(key, findings, count(1..=10_000_000));
        read.map_or(usual, |number| number as usize)
    };
    let connections = number("connections", usual.connections);
    let half_open = number("half_open", usual.half_open);
    let time_wait = number("time_wait", usual.time_wait);
    let syn_cookies = table.read("syn_cookies", findings, choice(&SynCookieMode::NAMES));
    let mut bytes = |key, usual: usize, range: RangeInclusive<u64>| {
        let read = table.read(key, findings, size(range));
        read.map_or(usual, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX))
    };
    Limits {
        connections,
        half_open,
        syn_cookies: syn_cookies.unwrap_or_default(),
        time_wait,
        memory: bytes("connection_memory", usual.memory, SIZES),
        shard_memory: bytes("shard_memory", usual.shard_memory, SIZES),
        longest_request: bytes("longest_request", usual.longest_request, 64..=1 << 30),
        reply_memory: bytes("reply_memory", usual.reply_memory, SIZES),
        linger: usual.linger,
    }
}

fn read_service(
    name: ServiceName,
    table: &mut Table<'_>,
    findings: &mut Findings,
) -> Option<ServiceConfig> {
    let all: [(ServiceName, &str, &[&'static str]); 4] = [
        (ServiceName::Http, "service = \"http\"", &http::KEYS),
        (ServiceName::Resp, "service = \"resp\"", &["memory", "longest_value"]),
        (ServiceName::Relay, "service = \"relay\"", &["to", "source_ports"]),
        (ServiceName::Work, "service = \"work\"", &WORK_KEYS),
    ];
    for (_, condition, keys) in all.into_iter().filter(|(other, ..)| *other != name) {
        table.refuse(keys, condition, findings);
    }
    Some(match name {
        ServiceName::Http => ServiceConfig::Http(HttpServiceConfig::read(table, findings)?),
        ServiceName::Resp => {
            let memory = table.read("memory", findings, size(SIZES)).unwrap_or(MEMORY);
            let longest = table.read("longest_value", findings, size(VALUES));
            let usual = RespConfig::new(usize::try_from(memory).unwrap_or(usize::MAX));
            let longest_value = longest.map_or(usual.longest_value, |bytes| bytes as usize);
            ServiceConfig::Resp(RespConfig { longest_value, ..usual })
        }
        ServiceName::Echo => ServiceConfig::Echo,
        ServiceName::Relay => {
            let to = table.require("to", "to = \"192.0.2.7:22\"", findings, endpoint);
            let source_ports = table.read("source_ports", findings, port_range);
            ServiceConfig::Relay { to: to?, source_ports }
        }
        ServiceName::Work => ServiceConfig::Work(read_work(table, findings)),
    })
}

fn read_work(table: &mut Table<'_>, findings: &mut Findings) -> WorkConfig {
    let usual = WorkConfig::default();
    let kinds = "\"roots\", \"strided\", \"random\", \"stream\", \"chase\" or \"null\"";
    let kind = table.read("work", findings, parsed(kinds));
    let times = "\"10us\", \"bimodal-1\", \"exponential:10us\" or \"0.9:1us,0.1:50us\"";
    let times = table.read("service_time", findings, parsed(times));
    let buffer = table.read("buffer", findings, parsed("\"80%\" or \"32MiB\""));
    WorkConfig {
        kind: kind.unwrap_or(usual.kind),
        times: times.unwrap_or(usual.times),
        buffer: buffer.unwrap_or(usual.buffer),
    }
}

/// A conversion to a scheduler that the service can run with.
fn scheduler(
    value: &Value<'_>,
    is_relay: bool,
    findings: &mut Findings,
) -> Option<AvailableScheduler> {
    let scheduler = parsed("\"inline-dfcfs\" or \"dispatcher-1:1\"")(value, findings)?;
    if is_relay && matches!(AvailableScheduler::name(scheduler), SchedulerName::Dispatcher(..)) {
        let message = format!("a relay has no requests that members of `{scheduler}` could handle");
        findings.push(value.mistake(message).help("write \"inline-dfcfs\""));
        return None;
    }
    Some(scheduler)
}

/// A conversion to ports: one, or a list without repetition.
fn ports(value: &Value<'_>, findings: &mut Findings) -> Option<Vec<u16>> {
    let ports = list(integer(1..=65_535))(value, findings)?;
    let ports: Vec<u16> = ports.into_iter().map(|port| port as u16).collect();
    let is_repeated = |(index, port): (usize, &u16)| ports[..index].contains(port);
    let (message, help) = if ports.is_empty() {
        ("no port is listened at".to_owned(), "write one, such as 80".to_owned())
    } else if ports.len() > PORTS {
        (format!("these are {} ports", ports.len()), format!("write at most {PORTS}"))
    } else if ports.iter().enumerate().any(is_repeated) {
        ("a port is listed twice".to_owned(), "write each once".to_owned())
    } else {
        return Some(ports);
    };
    findings.push(value.mistake(message).help(help));
    None
}

/// A conversion to HOST:PORT. Whether there is such a host is found out at the start.
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

fn port_range(value: &Value<'_>, findings: &mut Findings) -> Option<RangeInclusive<u16>> {
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

impl fmt::Display for ServeConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.service {
            ServiceConfig::Http(http) => http.fmt(f)?,
            ServiceConfig::Resp(RespConfig { memory, longest_value }) => {
                let [memory, longest] = [memory, longest_value].map(|bytes| Bytes(*bytes as u64));
                write!(f, "resp, {memory} at most, values of {longest} at most")?;
            }
            ServiceConfig::Echo => f.write_str("echo")?,
            ServiceConfig::Relay { to, .. } => write!(f, "relay to {to}")?,
            ServiceConfig::Work(WorkConfig { kind, times, .. }) if !kind.reads_memory() => {
                write!(f, "work, {kind}, {times}")?;
            }
            ServiceConfig::Work(WorkConfig { kind, times, buffer }) => {
                write!(f, "work, {kind} in {buffer}, {times}")?;
            }
        }
        let ports: Vec<_> = self.ports.iter().map(u16::to_string).collect();
        let noun = if ports.len() == 1 { "port" } else { "ports" };
        let beside = if self.beside_kernel { " beside the kernel" } else { "" };
        let is = |(_, algorithm): &&(&str, Algorithm)| *algorithm == self.congestion;
        let congestion = CONGESTION.iter().find(is).map_or("", |(name, _)| name);
        write!(
            f,
            ", {noun} {}{beside}; {}; {} connections, {} of data; {congestion}, idle for {}, drained for {}",
            ports.join(", "),
            self.scheduler,
            self.limits.connections,
            Bytes(self.limits.memory as u64),
            Span(self.idle_timeout),
            Span(self.drain_time)
        )
    }
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
