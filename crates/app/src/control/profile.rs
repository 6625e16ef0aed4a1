//! The reply of a running instance to the request what limits its scaling.

use std::thread;
use std::time::Duration;

use rheostat_observe::control::{ProfileRequest, Reply};
use rheostat_observe::profile::{Observed, ScalingProfile};

use super::instance::Instance;
use super::peer::Peer;

/// How long is looked, and how long at most.
const OVER: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_secs(60);
/// How often it is looked whether the client is still there.
const GLANCE: Duration = Duration::from_millis(50);

impl Instance {
    /// Looks at transactions and lanes for a while.
    pub(super) fn profile(&self, request: &ProfileRequest, peer: &Peer) -> Result<Reply, String> {
        let over = request.over_ms.map_or(OVER, Duration::from_millis).min(LONGEST);
        let transactions = || self.objects.as_ref().map(|objects| objects.profile());
        let (earlier, before) = (self.view.sample(), transactions());
        let end = self.view.now() + over;
        while self.view.now() < end {
            if peer.has_gone() || peer.run_is_over() {
                return Err("the run is over".to_owned());
            }
            thread::sleep(GLANCE.min(end.since(self.view.now())));
        }
        let (later, after) = (self.view.sample(), transactions());
        let pairs = later.lanes.iter().zip(&earlier.lanes);
        let lanes: Vec<_> = pairs.map(|(later, earlier)| later.since(earlier)).collect();
        let infos = self.objects.as_ref().map(|objects| objects.infos());
        let meanwhile = after.zip(before).map(|(after, before)| after.since(&before));
        let profile = ScalingProfile::of(&Observed {
            functions: &self.functions,
            seconds: later.seconds - earlier.seconds,
            lanes: &lanes,
            shared: infos.as_deref().zip(meanwhile.as_ref()),
        });
        Ok(Reply::Profile(Box::new(profile)))
    }
}
