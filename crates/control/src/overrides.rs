//! What the command line sets in place of the configuration.

mod joined;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use rheostat_base::unit;
use rheostat_io::DeviceRegistration;
use rheostat_steer::policy::{PolicyRegistration, UnknownPolicy};
use thiserror::Error;

use self::joined::join_devices;
use crate::config::device::live::{LiveKind, is_interface_name};
use crate::config::device::{
    Argument, DeviceKind, KINDS, LinkAddress, LiveConfig, NamedKind, PcapConfig, RegisteredDevice,
    SimConfig, kinds, planned_kinds,
};
use crate::config::{DeviceConfig, LogFormat, LogTargets, Sections, WorkersConfig};
use crate::registry::Registry;
use rheostat_settings::declared::{DeclaredSettings, Setting};
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;
use rheostat_settings::suggestion::{enumerate, nearest, one_of};

/// Flags that take the place of settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    /// `--device NAME=KIND:ARG`, any number of times.
    pub devices: Vec<DeviceOverride>,
    /// `--input FILE`: the one device reads this capture.
    pub input: Option<PathBuf>,
    /// `--output FILE`: the one device writes this capture.
    pub output: Option<PathBuf>,
    /// `--policy NAME`: this policy moves shards.
    pub policy: Option<String>,
    /// `--polling NAME`: workers poll by this policy, with the settings of the file if it names the same one, and
    /// otherwise with those it has by default.
    pub polling: Option<String>,
    /// `--workers N`.
    pub workers: Option<u16>,
    /// `--lanes N`.
    pub lanes: Option<u16>,
    /// `--duration TIME`.
    pub duration: Option<Duration>,
    /// How long a run lasts where neither `--duration` nor the file states it.
    pub usual_duration: Option<Duration>,
    /// `--seed N`.
    pub seed: Option<u64>,
    /// `--control PATH`.
    pub control: Option<PathBuf>,
    /// `--http ADDR:PORT`.
    pub http: Option<SocketAddr>,
    /// `--log LEVELS`, or `RHEO_LOG`.
    pub log: Option<LogTargets>,
    /// `--log-format FORMAT`.
    pub log_format: Option<LogFormat>,
}

/// `NAME=KIND:ARG`: the device `NAME` becomes one of another kind.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceOverride {
    /// The device, as the configuration names it.
    pub name: String,
    /// What is to stand behind it.
    pub kind: KindOverride,
}

/// `KIND:ARG` of a device.
#[derive(Clone, Debug, PartialEq)]
pub enum KindOverride {
    /// `pcap:FILE`: packets come from this capture. The configuration's pace and output
    /// stay.
    Pcap(PathBuf),
    /// `sim:RATE`: generated packets come at this rate, in packets per second. The other settings of
    /// the configuration stay.
    Sim(u64),
    /// `af_xdp:INTERFACE`, `af_packet:INTERFACE` or `tap:INTERFACE`. The other settings
    /// of the configuration stay if the kind does; `,ring=N` behind it replaces that one, too.
    Live {
        /// The device.
        config: LiveConfig,
        /// Whether its ring was given.
        has_ring: bool,
    },
    /// `host:ADDRESS`: the kernel's sockets at these addresses, separated by commas.
    Host(Vec<IpAddr>),
    /// A device of a registered kind, in place of all that the configuration has.
    Registered(RegisteredDevice),
}

impl KindOverride {
    /// The keys of the device's table that it takes the place of.
    fn keys(&self) -> &'static [&'static str] {
        match self {
            KindOverride::Pcap(_) => &["kind", "input"],
            KindOverride::Sim(_) => &["kind", "rate"],
            KindOverride::Live { has_ring: true, .. } => &["kind", "interface", "ring"],
            KindOverride::Live { has_ring: false, .. } => &["kind", "interface"],
            KindOverride::Host(_) => &["kind", "address"],
            KindOverride::Registered(_) => &["kind", "argument"],
        }
    }
}

/// Why the value of `--device` could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OverrideError {
    /// Not `NAME=KIND:ARG`.
    #[error("`{0}` is not NAME=KIND:ARG; write, for example, lan=af_xdp:eth1 or wan=pcap:in.pcap")]
    Form(String),
    /// A kind that will come.
    #[error(
        "kind `{0}` is not available in this build yet; available: {known}",
        known = KINDS.each_ref().map(|kind| kind.name).join(", ")
    )]
    Planned(String),
    /// No kind of device.
    #[error("`{kind}` is not a kind of device{hint}; available: {known}")]
    Kind {
        /// What stands there.
        kind: String,
        /// What may have been meant.
        hint: String,
        /// The kinds there are.
        known: String,
    },
    /// The argument of a registered kind could not be read.
    #[error("`{argument}` of device `{name}`: {reason}")]
    Argument {
        /// The device.
        name: String,
        /// What stands there.
        argument: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No name that an interface can have.
    #[error(
        "`{interface}` cannot be the interface of `{name}`: names have 1 to 15 characters, without \
         spaces and `/`; `ip -brief link` lists them"
    )]
    Interface {
        /// The device.
        name: String,
        /// What stands there.
        interface: String,
    },
    /// No address.
    #[error(
        "`{address}` is no address of `{name}`; write, for example, {name}=host:127.0.0.1 or {name}=host:[::1]"
    )]
    Address {
        /// The device.
        name: String,
        /// What stands there.
        address: String,
    },
    /// The ring of an interface could not be read.
    #[error("the ring of `{name}`: {reason}; write, for example, {name}=af_packet:eth1,ring=8192")]
    Ring {
        /// The device.
        name: String,
        /// What is wrong with the ring.
        reason: String,
    },
    /// The rate of a simulated NIC could not be read.
    #[error("the rate of `{name}`: {reason}; write, for example, {name}=sim:2Mpps")]
    Rate {
        /// The device.
        name: String,
        /// What is wrong with the rate.
        reason: String,
    },
}

impl FromStr for DeviceOverride {
    type Err = OverrideError;

    fn from_str(text: &str) -> Result<DeviceOverride, OverrideError> {
        DeviceOverride::parse(text, &[])
    }
}

impl DeviceOverride {
    /// Reads `NAME=KIND:ARG`, where the kind is one that comes along or is registered.
    ///
    /// # Errors
    /// [`OverrideError`] lists the kinds there are, or states the form of the argument.
    pub fn parse(
        text: &str,
        registered: &[DeviceRegistration],
    ) -> Result<DeviceOverride, OverrideError> {
        let form = || OverrideError::Form(text.to_owned());
        let (name, rest) = text.split_once('=').ok_or_else(form)?;
        let (word, argument) = rest.split_once(':').ok_or_else(form)?;
        if name.is_empty() || argument.is_empty() {
            return Err(form());
        }
        let kinds = kinds(registered);
        let kind = match kinds.iter().find(|(known, _)| *known == word) {
            Some((_, NamedKind::BuiltIn(kind))) => match kind.argument {
                Argument::Capture => KindOverride::Pcap(PathBuf::from(argument)),
                Argument::Rate => KindOverride::Sim(rate(name, argument)?),
                Argument::Interface(kind) => live(name, kind, argument)?,
                Argument::Addresses => host(name, argument)?,
            },
            Some((_, NamedKind::Registered(kind))) => match (kind.from_argument)(argument) {
                Ok(own) => KindOverride::Registered(RegisteredDevice(own)),
                Err(reason) => {
                    let (name, argument) = (name.to_owned(), argument.to_owned());
                    return Err(OverrideError::Argument { name, argument, reason });
                }
            },
            None if planned_kinds(registered).contains(&word) => {
                return Err(OverrideError::Planned(word.to_owned()));
            }
            None => {
                let names: Vec<_> = kinds.iter().map(|(known, _)| *known).collect();
                let hint = nearest(word, names.iter().copied())
                    .map_or_else(String::new, |known| format!(" (did you mean `{known}`?)"));
                let known = names.join(", ");
                return Err(OverrideError::Kind { kind: word.to_owned(), hint, known });
            }
        };
        Ok(DeviceOverride { name: name.to_owned(), kind })
    }
}

/// The separator of an interface and its ring.
const RING: &str = ",ring=";

/// An interface, and its ring if one is given.
fn live(name: &str, kind: LiveKind, text: &str) -> Result<KindOverride, OverrideError> {
    let (text, ring) = match text.rsplit_once(RING) {
        Some((text, ring)) => (text, Some(ring)),
        None => (text, None),
    };
    let mut config = LiveConfig::new(kind, Some(interface(name, text)?));
    if let Some(ring) = ring {
        let wrong = |reason: String| OverrideError::Ring { name: name.to_owned(), reason };
        config.ring = match ring.parse::<u64>() {
            Ok(ring) if LiveConfig::RINGS.contains(&ring) => (ring as u32).next_power_of_two(),
            Ok(_) | Err(_) => {
                let (least, most) = (LiveConfig::RINGS.start(), LiveConfig::RINGS.end());
                return Err(wrong(format!("`{ring}` is not a number between {least} and {most}")));
            }
        };
    }
    Ok(KindOverride::Live { config, has_ring: ring.is_some() })
}

/// Addresses of this machine, those of IPv6 in brackets or without.
fn host(name: &str, text: &str) -> Result<KindOverride, OverrideError> {
    let address = |text: &str| {
        let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let wrong = || OverrideError::Address { name: name.to_owned(), address: text.to_owned() };
        inner.unwrap_or(text).parse().map_err(|_| wrong())
    };
    Ok(KindOverride::Host(text.split(',').map(address).collect::<Result<_, _>>()?))
}

/// A name that the kernel would take for an interface.
fn interface(name: &str, text: &str) -> Result<String, OverrideError> {
    if !is_interface_name(text) {
        return Err(OverrideError::Interface { name: name.to_owned(), interface: text.to_owned() });
    }
    Ok(text.to_owned())
}

fn rate(name: &str, text: &str) -> Result<u64, OverrideError> {
    let wrong = |reason: String| OverrideError::Rate { name: name.to_owned(), reason };
    let rate = unit::parse_packet_rate(text).map_err(|error| wrong(error.to_string()))?;
    if SimConfig::RATES.contains(&rate) {
        Ok(rate)
    } else {
        let (least, most) = (SimConfig::RATES.start(), SimConfig::RATES.end());
        Err(wrong(format!("`{text}` is not between {least} and {most} packets per second")))
    }
}

impl Overrides {
    /// Puts the flags in place of the settings. A flag that does not fit the configuration is a
    /// mistake that names the flag.
    pub(crate) fn apply(
        &self,
        config: &mut Sections,
        registry: &Registry,
        findings: &mut Findings,
    ) {
        for device in &self.devices {
            device.apply(&mut config.devices, findings);
        }
        if self.input.is_some() || self.output.is_some() {
            match config.bridges() {
                true => {
                    findings.hide("device");
                    self.apply_to_ports(&mut config.devices);
                }
                false if join_devices(config) => findings.hide("device"),
                false => {}
            }
        }
        if !config.bridges() {
            self.apply_captures(&mut config.devices, findings);
        }
        if let Some(name) = &self.policy {
            findings.forget_place("balance.policy");
            match PolicyRegistration::named(&registry.policies, name) {
                Ok(policy) => config.balance.policy = policy,
                Err(UnknownPolicy { known, .. }) => {
                    findings.push(unknown_name("--policy", name, "policy", &known));
                }
            }
        }
        if let Some(name) = &self.polling {
            findings.forget_place("polling.policy");
            match registry.polling.iter().find(|policy| policy.name == name) {
                // The same policy keeps the file's settings.
                Some(policy) if policy.name == config.polling.name() => {}
                Some(policy) => config.polling = policy.with_defaults(),
                None => {
                    let known: Vec<_> = registry.polling.iter().map(|policy| policy.name).collect();
                    findings.push(unknown_name("--polling", name, "polling policy", &known));
                }
            }
        }
        let WorkersConfig { count, lanes, .. } = &mut config.workers;
        for (key, given, number) in [("count", self.workers, count), ("lanes", self.lanes, lanes)] {
            let Some(given) = given else { continue };
            *number = Some(given);
            findings.forget_place(&format!("workers.{key}"));
            check_bounds(&WorkersConfig::declarations(), key, given, findings);
        }
        config.run.seed = self.seed.or(config.run.seed);
        if self.seed.is_some() {
            findings.hide("run.seed");
        }
        if let Some(path) = &self.control {
            findings.forget_place("observe.control");
            config.observe.control = Some(path.clone());
        }
        if let Some(address) = self.http {
            findings.forget_place("observe.http");
            config.observe.http = Some(address);
        }
        if let Some(log) = &self.log {
            findings.forget_place("observe.log");
            config.observe.log.clone_from(log);
        }
        if let Some(format) = self.log_format {
            findings.forget_place("observe.log_format");
            config.observe.log_format = format;
        }
        config.run.duration = self.duration.or(config.run.duration).or(self.usual_duration);
        if self.duration.is_some() {
            findings.hide("run.duration");
        }
        if self.duration.is_some_and(|duration| duration.is_zero()) {
            let finding = Finding::mistake("--duration", "--duration 0 leaves no time to run");
            findings.push(finding.help("write, for example, --duration 10s"));
        }
    }

    /// At a bridge, `--input` is what arrives on the first port and `--output` what leaves on the second; nothing
    /// arrives on any other.
    fn apply_to_ports(&self, ports: &mut [DeviceConfig]) {
        for (index, port) in ports.iter_mut().enumerate() {
            port.kind = DeviceKind::Pcap(PcapConfig {
                input: self.input.clone().filter(|_| index == 0),
                output: self.output.clone().filter(|_| index == 1),
                ..PcapConfig::default()
            });
        }
    }

    /// `--input` and `--output` make the one device a pair of captures, whatever it was.
    fn apply_captures(&self, devices: &mut [DeviceConfig], findings: &mut Findings) {
        let flags = [("--input", &self.input), ("--output", &self.output)];
        if let [device] = devices {
            let given = flags.iter().any(|(_, file)| file.is_some());
            let change = |captures: &mut PcapConfig| {
                captures.input = self.input.clone().or(captures.input.take());
                captures.output = self.output.clone().or(captures.output.take());
            };
            if self.input.is_some() {
                findings.forget_place("device[0].input");
            }
            if self.output.is_some() {
                findings.forget_place("device[0].output");
            }
            if given {
                findings.hide("device[0].kind");
                change_captures(&mut device.kind, change);
            }
        } else if findings.clean("device") {
            for (flag, _) in flags.iter().filter(|(_, file)| file.is_some()) {
                findings.push(not_one_device(flag, devices));
            }
        }
    }
}

/// Refuses the number of a flag that is out of the bounds of its setting.
fn check_bounds(settings: &[Setting], key: &str, number: u16, findings: &mut Findings) {
    let Some(setting) = settings.iter().find(|setting| setting.key == key) else { return };
    let Some(range) = setting.range.clone() else { return };
    if !range.contains(&number.into()) {
        let flag = format!("--{}", setting.flag());
        let message = format!("{flag} {number} is out of range");
        let help = format!("write a number between {} and {}", range.start(), range.end());
        findings.push(Finding::mistake(flag, message).help(help));
    }
}

/// The mistake of a flag that names none of the `known` ones.
fn unknown_name(flag: &str, name: &str, noun: &str, known: &[&str]) -> Finding {
    let names = || known.iter().copied();
    let meant = nearest(name, names())
        .map_or_else(String::new, |known| format!("did you mean `{known}`? "));
    let message = format!("{flag} `{name}` is no {noun}");
    Finding::mistake(flag, message).help(format!("{meant}write {}", one_of(names())))
}

impl DeviceOverride {
    fn apply(&self, devices: &mut [DeviceConfig], findings: &mut Findings) {
        let Some(index) = devices.iter().position(|device| device.name == self.name) else {
            if findings.clean("device") {
                findings.push(self.unknown_device(devices));
            }
            return;
        };
        let DeviceConfig { kind, addresses, .. } = &mut devices[index];
        for key in self.kind.keys() {
            findings.hide(&format!("device[{index}].{key}"));
        }
        match &self.kind {
            KindOverride::Host(own) => {
                *kind = DeviceKind::Host;
                // Those that the command line of `rheo serve` has besides stand in the file that it writes.
                if !own.iter().all(|own| addresses.iter().any(|known| known.address == *own)) {
                    *addresses = own.iter().copied().map(LinkAddress::of_host).collect();
                }
            }
            KindOverride::Pcap(file) => {
                change_captures(kind, |captures| captures.input = Some(file.clone()));
                findings.forget_place(&format!("device[{index}].input"));
            }
            KindOverride::Sim(rate) => match kind {
                DeviceKind::Sim(sim) => sim.rate = Some(*rate),
                _ => {
                    *kind =
                        DeviceKind::Sim(SimConfig { rate: Some(*rate), ..SimConfig::default() });
                }
            },
            KindOverride::Live { config: live, has_ring } => match kind {
                DeviceKind::Live(old) if old.kind() == live.kind() => {
                    old.interface.clone_from(&live.interface);
                    if *has_ring {
                        old.ring = live.ring;
                    }
                }
                // What every kind of live device has alike stays.
                DeviceKind::Live(old) => {
                    let on_loss = old.on_loss;
                    *kind = DeviceKind::Live(LiveConfig { on_loss, ..live.clone() });
                }
                _ => *kind = DeviceKind::Live(live.clone()),
            },
            KindOverride::Registered(own) => *kind = DeviceKind::Registered(own.clone()),
        }
    }

    fn unknown_device(&self, devices: &[DeviceConfig]) -> Finding {
        let names = || devices.iter().map(|device| device.name.as_str());
        let message = format!("--device names `{}`, which is no device of this file", self.name);
        let meant = nearest(&self.name, names())
            .map_or_else(String::new, |known| format!("did you mean `{known}`? "));
        let help = format!("{meant}the devices are {}", enumerate(names()));
        Finding::mistake("--device", message).help(help)
    }
}

/// Changes the capture files behind a device, which becomes a pair of them if it was something else.
fn change_captures(kind: &mut DeviceKind, change: impl FnOnce(&mut PcapConfig)) {
    let mut captures = match kind {
        DeviceKind::Pcap(captures) => std::mem::take(captures),
        _ => PcapConfig::default(),
    };
    change(&mut captures);
    *kind = DeviceKind::Pcap(captures);
}

fn not_one_device(flag: &str, devices: &[DeviceConfig]) -> Finding {
    let names = enumerate(devices.iter().map(|device| device.name.as_str()));
    let message = format!("{flag} needs a configuration with one device");
    let help = format!(
        "this one has {names}: set `input` and `output` in the file, or the input with \
         --device NAME=pcap:FILE for each"
    );
    Finding::mistake(flag, message).help(help)
}
