//! The sections of a configuration: what is to be run, as it is read from TOML.

pub mod balance;
mod chain;
pub(crate) mod class;
mod description;
pub mod device;
pub mod log;
pub mod network;
pub mod observe;
pub mod pool;
pub mod run;
pub mod serve;
pub(crate) mod slo;
pub mod state;
pub mod steering;
pub mod workers;

use rheostat_nf::registry::{ConfiguredFunction, FunctionSettings};
use rheostat_run::poll::{Polling, PollingRegistration};
use rheostat_steer::ClassRules;
use rheostat_steer::policy::{Objectives, Policy, Settings};
use thiserror::Error;

pub use balance::BalanceConfig;
pub use description::Description;
pub use device::{DeviceConfig, DeviceKind};
pub use log::{LogFormat, LogTargets};
pub use network::NetworkConfig;
pub use observe::ObserveConfig;
pub use pool::PoolConfig;
pub use run::RunConfig;
pub use serve::{SchedulingConfig, ServeConfig, ServeSettings};
pub use state::StateConfig;
pub use steering::SteeringConfig;
pub use workers::WorkersConfig;

use crate::registry::Registry;
use rheostat_settings::declared::{DeclaredSettings, Form, Setting};
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::Table;

/// The sections of a configuration: what is to be run. Those of a checked one are in a [`Config`](crate::Config): every value lies
/// in its range, and no two contradict each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Sections {
    /// How long, and from which random numbers.
    pub run: RunConfig,
    /// The cores that work, and the lanes they run.
    pub workers: WorkersConfig,
    /// The buffers that hold packets.
    pub pool: PoolConfig,
    /// Where packets come from and go to: one device for both sides, or one for each. Rules refer to
    /// them by their position here.
    pub devices: Vec<DeviceConfig>,
    /// Where packets go that are addressed to no device.
    pub network: NetworkConfig,
    /// The functions that packets pass, from inside in this order; none forwards everything.
    pub chain: Vec<ConfiguredFunction>,
    /// The service over TCP that is run in place of the chain.
    pub serve: Option<ServeConfig>,
    /// How much the run remembers.
    pub state: StateConfig,
    /// How packets find their lane.
    pub steering: SteeringConfig,
    /// How it is decided which lane owns which shard.
    pub balance: BalanceConfig,
    /// Which traffic is told apart.
    pub classes: ClassRules,
    /// What latencies its packets may have.
    pub slo: Objectives,
    /// What a worker does when it has no packets.
    pub polling: Polling,
    /// What is reported while the run goes on.
    pub observe: ObserveConfig,
}

/// The keys of `[polling]`, those of every policy included.
pub(crate) fn polling_keys(policies: &[PollingRegistration]) -> Vec<Setting> {
    let names: Vec<_> = policies.iter().map(|policy| policy.name).collect();
    let policy = Setting {
        form: Form::Text,
        kind: "word".to_owned(),
        bounds: Some(names.join(", ")),
        default: names.first().map(|name| (*name).to_owned()),
        example: "\"metronome\"".to_owned(),
        ..Setting::table("policy", "What workers without packets do.", Vec::new())
    };
    let own = policies.iter().flat_map(|policy| {
        let scope = format!("policy = \"{}\"", policy.name);
        (policy.keys)().into_iter().map(move |setting| setting.within(scope.clone()))
    });
    [policy].into_iter().chain(own).collect()
}

/// A device that a run cannot begin with.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MissingInput {
    /// The device reads a capture whose file is not named.
    #[error(
        "device `{device}` reads a capture, but no file is given: \
         set `input` in its `[[device]]` table, or pass --device {device}=pcap:FILE{short}"
    )]
    Capture {
        /// The device.
        device: String,
        /// The short flag, where it would do.
        short: &'static str,
    },
    /// The device is an interface whose name is not given.
    #[error(
        "device `{device}` is an interface, but none is given: \
         set `interface` in its `[[device]]` table, or pass --device {device}={kind}:INTERFACE"
    )]
    Interface {
        /// The device.
        device: String,
        /// Its kind.
        kind: &'static str,
    },
}

impl Sections {
    /// What policies plan with in a run of so many lanes.
    pub fn settings(&self, lanes: usize) -> Settings {
        self.balance.settings(self.slo, self.workers.offloading.of(lanes))
    }

    /// The policy of a run of so many lanes.
    pub fn policy(&self, lanes: usize) -> Box<dyn Policy> {
        self.balance.policy.make(&self.settings(lanes))
    }

    /// Whether every device that reads a capture, or is an interface, was given one, which a
    /// configuration may leave to the command line and a run may not.
    pub fn check_inputs(&self) -> Result<(), MissingInput> {
        let short = if self.devices.len() == 1 { ", or --input FILE" } else { "" };
        // A port of a bridge without a capture only sends, if another has one.
        let is_bridge = self.bridges();
        let has_input = self.devices.iter().any(|device| device.input().is_some());
        let missing = |device: &DeviceConfig| {
            let name = device.name.clone();
            match &device.kind {
                DeviceKind::Pcap(_) if is_bridge && has_input => None,
                DeviceKind::Pcap(pcap) if pcap.input.is_none() => {
                    Some(MissingInput::Capture { device: name, short })
                }
                DeviceKind::Live(live) if live.interface.is_none() => {
                    Some(MissingInput::Interface { device: name, kind: live.word() })
                }
                _ => None,
            }
        };
        self.devices.iter().find_map(missing).map_or(Ok(()), Err)
    }

    /// Whether the devices are ports of a bridge.
    pub(crate) fn bridges(&self) -> bool {
        self.chain.iter().any(|function| function.facts().bridges)
    }

    /// The settings of a function, if the chain has one with settings of this type.
    pub fn function<T: FunctionSettings>(&self) -> Option<&T> {
        self.chain.iter().find_map(ConfiguredFunction::get)
    }

    pub(crate) fn read(
        root: &mut Table<'_>,
        registry: &Registry,
        findings: &mut Findings,
    ) -> Sections {
        let run = root.section("run", findings, RunConfig::read).flatten();
        let workers = root.section("workers", findings, WorkersConfig::checked);
        let pool = root.section("pool", findings, PoolConfig::read).flatten();
        let is_service = root.has("serve");
        let devices = root.sections("device", findings, |table, findings| {
            DeviceConfig::read(table, is_service, &registry.devices, findings)
        });
        let devices: Vec<_> = devices.into_iter().flatten().collect();
        let network = NetworkConfig::read(root, &devices, findings);
        // The kernel picks a port of its sockets in place of 0.
        let has_host = devices.iter().any(|device| device.kind == DeviceKind::Host);
        let least_port = if has_host { 0 } else { 1 };
        let serve = root.section("serve", findings, |table, findings| {
            ServeConfig::read(table, registry, least_port, findings)
        });
        let serve = serve.flatten();
        let chain = match is_service && !root.has("chain") && !root.has("function") {
            true => {
                root.ignore(&["chain", "function"]);
                Vec::new()
            }
            false => chain::read(root, &devices, registry, findings),
        };
        let state = root.section("state", findings, StateConfig::read);
        let steering = root.section("steering", findings, SteeringConfig::read).flatten();
        let balance = root.section("balance", findings, |table, findings| {
            BalanceConfig::read(table, &registry.policies, findings)
        });
        let classes = class::read(root, &devices, findings);
        let slo = root.section("slo", findings, slo::read);
        let polling = root.section("polling", findings, |table, findings| {
            PollingRegistration::read(&registry.polling, table, findings)
        });
        let observe = root.section("observe", findings, ObserveConfig::read).flatten();
        Sections {
            run: run.unwrap_or_default(),
            workers: workers.unwrap_or_default(),
            pool: pool.unwrap_or_default(),
            devices,
            network,
            chain,
            serve,
            state: state.unwrap_or_default(),
            steering: steering.unwrap_or_default(),
            balance: balance.unwrap_or_else(|| BalanceConfig {
                policies: registry.policies.clone(),
                ..BalanceConfig::default()
            }),
            classes,
            slo: slo.unwrap_or_default(),
            polling: polling.unwrap_or_default(),
            observe: observe.unwrap_or_default(),
        }
    }
}
