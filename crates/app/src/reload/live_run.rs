//! The parts of a run that a reload changes.

use std::error::Error;
use std::sync::{Arc, Mutex};

use rheostat_base::LaneId;
use rheostat_control::config::BalanceConfig;
use rheostat_control::{BalancingChange, Config};
use rheostat_functions::lb::{HealthBoard, LbConfig};
use rheostat_ip::RunLimit;
use rheostat_observe::{HealthLines, LogWriter, PortBoard};
use rheostat_steer::policy::{Policy, Settings};

use super::live_chain::PendingChain;
use super::live_network::NextNetwork;
use super::{LiveChain, LiveNetwork, lock};
use crate::app::App;
use crate::chains::{BuiltChain, Logs};
use crate::log;
use crate::run_times::RunTimes;

/// The parts of a run that a reload changes. By default it has none.
#[derive(Debug, Default)]
pub(crate) struct LiveRun {
    /// `None` for a service over TCP.
    pub(crate) chain: Option<LiveChain>,
    /// `None` where devices have no addresses.
    pub(crate) network: Option<LiveNetwork>,
    pub(crate) balancing: LiveBalancing,
    pub(crate) times: RunTimes,
    /// Of the chain and the network layer together.
    pub(crate) errors: Option<RunLimit>,
}

/// The policy that moves shards.
#[derive(Debug, Default)]
pub(crate) struct LiveBalancing {
    change: Option<BalancingChange>,
    lanes: usize,
    reports_shards: bool,
    offloading: usize,
    config: Mutex<(BalanceConfig, Settings)>,
}

/// Another configuration of a run, which is not in force.
pub(super) struct Prepared {
    chain: Option<BuiltChain>,
    health: Option<LogWriter>,
    network: Option<NextNetwork>,
    policy: Option<Box<dyn Policy>>,
}

/// A configuration that is in force, and that lanes may not go by yet.
#[derive(Debug, Default)]
pub(super) struct Pending(Option<PendingChain>);

impl LiveBalancing {
    /// That of a run of `config` with so many lanes, of which these parts are reported.
    pub(crate) fn new(
        change: BalancingChange,
        config: &Config,
        lanes: usize,
        reports_shards: bool,
    ) -> LiveBalancing {
        let offloading = config.workers.offloading.of(lanes);
        let config = Mutex::new((config.balance.clone(), config.settings(lanes)));
        let change = Some(change);
        LiveBalancing { change, lanes, reports_shards, offloading, config }
    }

    /// How it is decided which lane owns which shard.
    pub(crate) fn config(&self) -> BalanceConfig {
        lock(&self.config).0.clone()
    }

    /// What policies plan with.
    pub(crate) fn settings(&self) -> Settings {
        lock(&self.config).1
    }
}

impl LiveRun {
    /// Where the health of backends is changed, if the chain has a load balancer.
    pub(crate) fn board(&self) -> Option<Arc<HealthBoard>> {
        self.chain.as_ref()?.board()
    }

    /// How many ports the chain's NAT has in use, if it has one.
    pub(crate) fn ports(&self) -> Option<Arc<PortBoard>> {
        self.chain.as_ref()?.ports()
    }

    /// Ends what goes on beside the run, whose lanes have ended.
    pub(crate) fn close(&self) {
        self.chain.iter().for_each(LiveChain::close);
    }

    pub(super) fn has_offloading_lanes(&self) -> bool {
        self.balancing.offloading > 0
    }

    pub(super) fn reports_shards(&self) -> bool {
        self.balancing.reports_shards
    }

    /// Makes what `next` needs in place of `config`, as far as it can fail, and changes nothing. With `dry_run`, no log is opened.
    ///
    /// # Errors
    /// The first part that cannot be made.
    pub(super) fn prepare(
        &self,
        app: &App,
        config: &Config,
        next: &Config,
        dry_run: bool,
    ) -> Result<Prepared, Box<dyn Error + Send + Sync>> {
        let logs = if dry_run { Logs::LeftAlone } else { Logs::Written };
        let network = self.network.as_ref().map(|network| network.prepare(config, next));
        let network = network.transpose()?;
        let chain = match &self.chain {
            Some(live) if config.chain != next.chain => Some(live.prepare(app, next, logs)?),
            Some(live) if logs == Logs::Written => live.reopen_logs().map(|()| None)?,
            _ => None,
        };
        let board = chain.as_ref().and_then(|chain| chain.beside.control::<HealthBoard>());
        let checks = network.as_ref().and_then(|network| network.checks.clone());
        let health = match (checks.zip(board), next.function::<LbConfig>()) {
            (Some((checks, board)), Some(lb)) if logs == Logs::Written => {
                checks.assume(|service, backend| board.is_dead(service, backend));
                let lines = HealthLines::new(checks, board);
                Some(match &lb.log {
                    Some(path) => LogWriter::append(path, lines)?,
                    None => LogWriter::start_without_file(lines)?,
                })
            }
            _ => None,
        };
        let is_same = (&config.balance, config.slo) == (&next.balance, next.slo);
        let policy = (!is_same).then(|| next.policy(self.balancing.lanes));
        Ok(Prepared { chain, health, network, policy })
    }

    /// Puts `next` in force in place of `config`: lanes take it over at their next burst.
    ///
    /// # Errors
    /// When the kernel's routes have changed meanwhile so that those of `next` are wrong, or the chain is one of other functions: then
    /// nothing has changed.
    pub(super) fn put_in_force(
        &self,
        prepared: Prepared,
        config: &Config,
        next: &Config,
    ) -> Result<Pending, Box<dyn Error + Send + Sync>> {
        let Prepared { chain, health, network, policy } = prepared;
        // The network can refuse when the routes of the kernel have changed. A chain was asked when it was made.
        if let (Some(live), Some(network)) = (&self.network, network) {
            live.put_in_force(network, config, next)?;
        }
        let live = self.chain.as_ref();
        let chain = live.zip(chain).map(|(live, chain)| live.put_in_force(chain, health));
        let pending = Pending(chain.transpose()?);
        log::configure(&next.observe);
        if let Some(errors) = &self.errors {
            let policy = next.network.policy;
            errors.set(policy.errors_per_second, policy.errors_at_once);
        }
        if let (Some(policy), Some(change)) = (policy, &self.balancing.change) {
            change.set(policy, next.balance.clone());
            *lock(&self.balancing.config) =
                (next.balance.clone(), next.settings(self.balancing.lanes));
        }
        self.times.set(next);
        Ok(pending)
    }

    /// The lanes that may still go by the configuration before.
    pub(super) fn pending(&self, pending: &Pending) -> Vec<LaneId> {
        let chain = self.chain.as_ref().zip(pending.0.as_ref());
        chain.map(|(live, chain)| live.pending(chain)).unwrap_or_default()
    }

    /// All lanes go by the new one.
    pub(super) fn finish(&self, pending: Pending) {
        if let (Some(live), Some(chain)) = (&self.chain, pending.0) {
            live.finish(chain);
        }
    }

    /// A lane may still go by the one before.
    pub(super) fn keep(&self, pending: Pending) {
        if let (Some(live), Some(chain)) = (&self.chain, pending.0) {
            live.keep(chain);
        }
    }
}
