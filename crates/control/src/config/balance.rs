//! `[balance]`: who decides which lane owns which shard.

use std::fmt;
use std::time::Duration;

use rheostat_steer::policy::{self, Policy};

use crate::findings::Findings;
use crate::quantity::Span;
use crate::reader::Table;
use crate::reader::convert::choice;
use crate::reader::convert::number::duration;

/// Which policy moves shards between lanes, and how often it plans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BalanceConfig {
    /// One of [`policy::NAMES`].
    pub policy: &'static str,
    /// The time between two plans; the policy's own pace without it.
    pub interval: Option<Duration>,
}

impl Default for BalanceConfig {
    fn default() -> BalanceConfig {
        BalanceConfig { policy: "rss", interval: None }
    }
}

impl fmt::Display for BalanceConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.policy)?;
        match self.interval {
            Some(interval) => write!(f, " every {}", Span(interval)),
            None => Ok(()),
        }
    }
}

impl BalanceConfig {
    /// The policy, with its default parameters.
    pub fn policy(&self) -> Box<dyn Policy> {
        policy::by_name(self.policy).expect("the configuration takes known names only")
    }

    pub(crate) fn read(table: &mut Table<'_>, findings: &mut Findings) -> BalanceConfig {
        let names = policy::NAMES.map(|name| (name, name));
        let span = Duration::from_millis(1)..=Duration::from_secs(60);
        BalanceConfig {
            policy: table
                .read("policy", findings, choice(&names))
                .unwrap_or(BalanceConfig::default().policy),
            interval: table.read("interval", findings, duration(span)),
        }
    }
}
