//! The network layer of a run, which can be configured anew.

use std::sync::Arc;

use rheostat_control::{Config, FollowedRoutes};
use rheostat_functions::lb::check::HealthChecks;
use rheostat_ip::{Network, NetworkUpdate, RouteError};

use crate::network::{self, WiringError};

/// The network layer of a run.
#[derive(Debug)]
pub(crate) struct LiveNetwork {
    network: Arc<Network>,
    /// The routes beside the kernel's, where these are followed.
    followed: Option<FollowedRoutes>,
}

/// Another configuration of the network layer, which is not in force.
pub(super) struct NextNetwork {
    update: NetworkUpdate,
    /// The health checks of a load balancer, where they are new.
    pub(super) checks: Option<Arc<HealthChecks>>,
}

impl LiveNetwork {
    /// The network layer of a run.
    pub(crate) fn new(network: Arc<Network>, followed: Option<FollowedRoutes>) -> LiveNetwork {
        LiveNetwork { network, followed }
    }

    /// The network layer of `next` in place of that of `config`.
    ///
    /// # Errors
    /// [`WiringError`] when routes are wrong, or there is no address to check backends from.
    pub(super) fn prepare(
        &self,
        config: &Config,
        next: &Config,
    ) -> Result<NextNetwork, WiringError> {
        let (update, checks) = network::update_of(&self.network, config, next)?;
        self.network.check_update(&update).map_err(rheostat_ip::NetworkError::from)?;
        Ok(NextNetwork { update, checks })
    }

    /// Puts what was prepared in force. `config` is the configuration before.
    ///
    /// # Errors
    /// [`RouteError`] when a route has become wrong since; then nothing has changed.
    pub(super) fn put_in_force(
        &self,
        prepared: NextNetwork,
        config: &Config,
        next: &Config,
    ) -> Result<(), RouteError> {
        let update = prepared.update;
        match &self.followed {
            Some(followed) => followed.give(update.routes.clone(), |routes| {
                self.network.update(NetworkUpdate { routes: routes.to_vec(), ..update.clone() })
            })?,
            None => self.network.update(update)?,
        }
        let (before, after) = (&config.network.neighbours, &next.network.neighbours);
        for gone in before.iter().filter(|known| !after.iter().any(|new| new.is_at(known))) {
            self.network.unset_neighbour(gone.device, gone.address);
        }
        for new in after.iter().filter(|new| !before.contains(new)) {
            self.network.set_neighbour(new.device, new.address, new.mac.0);
        }
        Ok(())
    }
}
