//! `[serve]`: a service over TCP in place of a chain.

mod scheduling;

use std::fmt;
use std::ops::{Deref, RangeInclusive};
use std::time::Duration;

use rheostat_kernel::Placement;
use rheostat_serve::registry::ConfiguredApplication;
use rheostat_serve::scheduler::SchedulerRegistration;
use rheostat_serve::{ListenerConfig, OutgoingConfig, ServeConfig as Limits, SynCookieMode};
use rheostat_settings::declared::kind::{
    Kind, boolean, choice, count, duration, optional, parsed, size,
};
use rheostat_settings::declared::{Declaration, DeclaredSettings, Form, Setting};
use rheostat_settings::findings::Findings;
use rheostat_settings::quantity::{Bytes, Span, YEAR};
use rheostat_settings::reader::convert::number::integer as read_integer;
use rheostat_settings::reader::convert::{choice as read_choice, list};
use rheostat_settings::reader::{Table, Value};
use rheostat_tcp::congestion::Algorithm;

pub use self::scheduling::SchedulingConfig;
use crate::registry::Registry;

/// Ports at most.
const PORTS: usize = 64;
/// Data of a connection, a shard or all of them: from a segment to more than any machine has.
const SIZES: RangeInclusive<u64> = 64 << 10..=1 << 50;
const SECOND: Duration = Duration::from_secs(1);
/// The longest handshake: longer than any peer tries (RFC 9293, 3.8.3).
const MOST_HANDSHAKE: Duration = Duration::from_secs(300);
/// Buffers of a connection. A window is 2^30 bytes at most (RFC 7323, 2.3).
const BUFFERS: RangeInclusive<u64> = 4 << 10..=1 << 30;
/// The congestion controllers and their names.
const CONGESTION: [(&str, Algorithm); 2] =
    [("cubic", Algorithm::Cubic), ("newreno", Algorithm::NewReno)];

/// What is served, where, and within which bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct ServeConfig {
    /// What is served.
    pub application: ConfiguredApplication,
    /// The ports, at all addresses of the device. The kernel picks one in place of 0, on a device of kind `host` only.
    pub ports: Vec<u16>,
    /// Which workers do what of a request.
    pub scheduling: SchedulingConfig,
    /// The settings that all services have.
    pub settings: ServeSettings,
}

rheostat_settings::settings! {
    /// The settings that all services have, besides their ports and their scheduler.
    pub struct ServeSettings {
        /// Be reached at addresses that the kernel has on this interface: only the listed ports are the service's, all else stays
        /// the kernel's; routes and neighbours are the kernel's, too. With af_xdp and af_packet.
        beside_kernel: bool = boolean(), default(false);
        /// Where workers run: idle-siblings (one thread of each core), both-siblings or split-siblings (network and application on
        /// threads of one core), and any-node, device-node, other-node or half-half; as idle-siblings,device-node.
        place: Option<Placement> =
            optional(parsed("\"idle-siblings\", \"both-siblings\", or with a node, \"idle-siblings,device-node\"")),
            value("PLACES");
        /// Connections at most; a SYN beyond is dropped.
        connections: usize = count(1..=10_000_000), value("N"), default(Limits::default().connections);
        /// Handshakes that clients have not completed, at most: beyond, --syn-cookies decides.
        half_open: usize = count(1..=10_000_000), value("N"), default(Limits::default().half_open);
        /// Closed connections in TIME-WAIT at most. Beyond, a connection is forgotten when it is closed.
        time_wait: usize = count(1..=10_000_000), value("N"), default(Limits::default().time_wait);
        /// When SYNs are answered with cookies, of which nothing is kept: on-pressure (beyond --half-open), off or always.
        syn_cookies: SynCookieMode = choice(SynCookieMode::NAMES), value("WHEN"), default(SynCookieMode::default());
        /// Bytes for data of all connections at most; from three quarters on, SYNs are dropped, windows close, and of the connections
        /// that hardly move, the one with the most bytes is reset first.
        connection_memory: usize = size(SIZES), value("SIZE"), default(Limits::default().memory);
        /// The same for the connections of one shard.
        shard_memory: usize = size(SIZES), value("SIZE"), default(Limits::default().shard_memory);
        /// Bytes of a request at most; a longer one resets its connection.
        longest_request: usize = size(64..=1 << 30), value("SIZE"), default(Limits::default().longest_request);
        /// Bytes of memory that one reply may take; a longer one that is not sent in pieces becomes an error reply. Files and stored
        /// values are sent in pieces.
        reply_memory: usize = size(SIZES), value("SIZE"), default(Limits::default().reply_memory);
        /// The congestion controller.
        congestion: Algorithm = choice(CONGESTION), value("NAME"), default(Algorithm::default());
        /// How long a client may take to complete the handshake.
        handshake_timeout: Duration = duration(SECOND..=MOST_HANDSHAKE), value("TIME"),
            default(ListenerConfig::new(1).handshake_timeout);
        /// How long a connection may be silent.
        idle_timeout: Duration = duration(SECOND..=YEAR), value("TIME"),
            default(ListenerConfig::new(1).idle_timeout.unwrap_or(YEAR));
        /// Bytes of one connection that wait to be sent or acknowledged at most. The buffer grows to twice the congestion window, as
        /// memory allows.
        send_buffer: usize = size(BUFFERS), value("SIZE"), default(ListenerConfig::new(1).tcp.send_buffer);
        /// Bytes of one connection that are received and not read at most. The window grows to twice what is read in a round trip, as
        /// memory allows.
        receive_buffer: usize = size(BUFFERS), value("SIZE"), default(ListenerConfig::new(1).tcp.receive_buffer);
        /// How long connections may take to end once the service is told to.
        drain_time: Duration = duration(Duration::ZERO..=YEAR), value("TIME"), default(5 * SECOND);
    }
}

/// The ports, from `least` on.
fn ports(least: u64) -> Declaration<Vec<u16>> {
    let help = "The port; may be given several times.";
    let shown = |ports: &Vec<u16>| format!("{ports:?}");
    let kind = Kind::new(
        Form::Numbers,
        move |value: &_, findings: &mut _| read_ports(least, value, findings),
        shown,
    )
    .noun("port");
    Declaration::new("port", help, kind).value("P").required("port = 80")
}

impl Deref for ServeConfig {
    type Target = ServeSettings;

    fn deref(&self) -> &ServeSettings {
        &self.settings
    }
}

impl ServeConfig {
    /// The settings of `[serve]` that all services have, in the order in which help lists them; the scheduler is one of `schedulers`.
    pub fn declarations(schedulers: &[SchedulerRegistration]) -> Vec<Setting> {
        let mut settings = vec![ports(1).setting(None)];
        settings.extend(SchedulingConfig::keys(schedulers));
        settings.extend(ServeSettings::declarations());
        settings
    }

    /// The keys of `[serve]`, those of the applications in `registry` included.
    pub(crate) fn keys(registry: &Registry) -> Vec<Setting> {
        let applications = &registry.applications;
        let names: Vec<_> = applications.iter().map(|known| known.name).collect();
        let service = Setting {
            form: Form::Text,
            kind: "word".to_owned(),
            bounds: Some(names.join(", ")),
            example: "\"http\"".to_owned(),
            ..Setting::table("service", "The application that is served.", Vec::new()).required()
        };
        let own = applications.iter().flat_map(|known| {
            let scope = format!("service = \"{}\"", known.name);
            known.settings.iter().map(move |setting| setting.clone().within(scope.clone()))
        });
        let common = ServeConfig::declarations(&registry.schedulers);
        [service].into_iter().chain(common).chain(own).collect()
    }

    /// The listeners: one at each port.
    pub fn listeners(&self) -> Vec<ListenerConfig> {
        let request_timeout = self.application.facts().request_timeout;
        let listener = |port: &u16| {
            let mut listener = ListenerConfig::new(*port);
            listener.handshake_timeout = self.handshake_timeout;
            listener.idle_timeout = Some(self.idle_timeout);
            listener.request_timeout = request_timeout;
            self.set(&mut listener.tcp);
            listener
        };
        self.ports.iter().map(listener).collect()
    }

    /// How the application connects, if it does: from the ports that are given for it.
    pub fn outgoing(&self) -> OutgoingConfig {
        let mut outgoing = OutgoingConfig::default();
        if let Some(ports) = self.application.facts().opens.and_then(|opens| opens.source_ports) {
            outgoing.ports = ports;
        }
        self.set(&mut outgoing.tcp);
        outgoing
    }

    /// The bounds of the whole service.
    pub fn limits(&self) -> Limits {
        Limits {
            connections: self.connections,
            half_open: self.half_open,
            syn_cookies: self.syn_cookies,
            time_wait: self.time_wait,
            memory: self.connection_memory,
            shard_memory: self.shard_memory,
            longest_request: self.longest_request.max(self.application.facts().longest_request),
            reply_memory: self.reply_memory,
            ..Limits::default()
        }
    }

    fn set(&self, tcp: &mut rheostat_tcp::Config) {
        tcp.congestion = self.congestion;
        tcp.send_buffer = self.send_buffer;
        tcp.receive_buffer = self.receive_buffer;
        tcp.initial_send_buffer = tcp.initial_send_buffer.min(self.send_buffer);
        tcp.initial_receive_buffer = tcp.initial_receive_buffer.min(self.receive_buffer);
    }

    /// Reads the table, which names an application and a scheduler of `registry`; `None` when nothing can be made of it. Ports are from
    /// `least_port` on.
    pub(crate) fn read(
        table: &mut Table<'_>,
        registry: &Registry,
        least_port: u64,
        findings: &mut Findings,
    ) -> Option<ServeConfig> {
        let applications = &registry.applications;
        let numbered = applications.iter().enumerate();
        let names: Vec<_> = numbered.map(|(number, known)| (known.name, number)).collect();
        let served = table.require("service", "service = \"http\"", findings, read_choice(&names));
        let ports = ports(least_port).read(table, findings);
        let scheduling = SchedulingConfig::read(table, &registry.schedulers, findings);
        let settings = ServeSettings::read(table, findings);
        let Some(served) = served.map(|number| &applications[number]) else {
            // Which of them have a meaning is not known.
            applications.iter().for_each(|known| known.ignore(table));
            return None;
        };
        for other in applications.iter().filter(|other| *other != served) {
            other.refuse(table, findings);
        }
        let application = served.read(table, findings);
        Some(ServeConfig {
            application: application?,
            ports: ports?,
            scheduling,
            settings: settings?,
        })
    }
}

/// A conversion to ports: one, or a list without repetition.
fn read_ports(least: u64, value: &Value<'_>, findings: &mut Findings) -> Option<Vec<u16>> {
    let ports = list(read_integer(least..=65_535))(value, findings)?;
    let ports: Vec<u16> = ports.into_iter().map(|port| port as u16).collect();
    let is_repeated = |(index, port): (usize, &u16)| *port > 0 && ports[..index].contains(port);
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

/// The settings that the description has in words of its own.
const DESCRIBED: [&str; 6] = [
    "beside_kernel",
    "connections",
    "connection_memory",
    "congestion",
    "idle_timeout",
    "drain_time",
];

impl fmt::Display for ServeConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ports: Vec<_> = self.ports.iter().map(u16::to_string).collect();
        let noun = if ports.len() == 1 { "port" } else { "ports" };
        let beside = if self.beside_kernel { " beside the kernel" } else { "" };
        let is = |(_, algorithm): &&(&str, Algorithm)| *algorithm == self.congestion;
        let congestion = CONGESTION.iter().find(is).map_or("", |(name, _)| name);
        write!(
            f,
            "{}, {noun} {}{beside}; {}; {} connections, {} of data; {congestion}, idle for {}, drained for {}",
            self.application,
            ports.join(", "),
            self.scheduling.scheduler,
            self.connections,
            Bytes(self.connection_memory as u64),
            Span(self.idle_timeout),
            Span(self.drain_time)
        )?;
        let key = |difference: &str| difference.split(' ').next().map(str::to_owned);
        let differences =
            self.scheduling.differences().into_iter().chain(self.settings.differences());
        let others = differences
            .filter(|difference| !key(difference).is_some_and(|key| DESCRIBED.contains(&&*key)));
        others.into_iter().try_for_each(|difference| write!(f, "; {difference}"))
    }
}
