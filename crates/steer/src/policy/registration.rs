//! Policies by name: what each one is, and how it is made.

use std::fmt;

use thiserror::Error;

use super::{NAMES, Objectives, Policy, Scaling};

/// A policy that configurations and commands can name.
#[derive(Clone, Copy)]
pub struct PolicyRegistration {
    /// Its name in a configuration, which [`Policy::name`] returns, too.
    pub name: &'static str,
    /// How it moves shards, in a few words for `--help`; empty if its author gives none.
    pub summary: &'static str,
    /// What a run has to know of it.
    pub facts: PolicyFacts,
    /// Makes it.
    pub make: MakePolicy,
}

/// Makes a policy with these settings. Each policy uses those that it knows.
pub type MakePolicy = &'static (dyn Fn(&Settings) -> Box<dyn Policy> + Send + Sync);

/// What a run has to know of a policy before it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyFacts {
    /// Whether it ever moves a shard. Loads of shards are measured for such a policy.
    pub moves: bool,
    /// Whether it decides which flows leave their lanes. Classes of traffic are measured for such a policy.
    pub plans_offloading: bool,
    /// Whether it can move the connections of TCP services.
    pub serves: bool,
}

impl PolicyFacts {
    /// A policy that moves shards, of functions and of services, and nothing else.
    pub const MOVES_SHARDS: PolicyFacts =
        PolicyFacts { moves: true, plans_offloading: false, serves: true };
}

/// The settings of policies that are not their own.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Settings {
    /// When lanes are added and parked.
    pub scaling: Scaling,
    /// What latencies packets may have: for `dyssect`.
    pub objectives: Objectives,
    /// How many lanes may offload: none where flows cannot leave their lanes. For `dyssect`.
    pub offloading: usize,
    /// How many working lanes an offloading lane serves at least; 0 stands for the policy's own figure. For `dyssect`.
    pub min_working_per_offloading: usize,
}

/// No policy has this name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no policy `{name}`; {}write one of {}", hint(name, known), known.join(", "))]
pub struct UnknownPolicy {
    /// The name.
    pub name: String,
    /// The names there are.
    pub known: Vec<&'static str>,
}

impl PolicyRegistration {
    /// An own policy that moves shards, of functions and of services ([`PolicyFacts::MOVES_SHARDS`]).
    ///
    /// The registration is kept for the rest of the program, and `make` with it.
    pub fn new<P, M>(name: &'static str, make: M) -> PolicyRegistration
    where
        P: Policy + 'static,
        M: Fn(&Settings) -> P + Send + Sync + 'static,
    {
        let make = move |settings: &Settings| -> Box<dyn Policy> { Box::new(make(settings)) };
        let make: MakePolicy = Box::leak(Box::new(make));
        PolicyRegistration { name, summary: "", facts: PolicyFacts::MOVES_SHARDS, make }
    }

    /// The policy of this name among those that are registered.
    ///
    /// # Errors
    /// [`UnknownPolicy`], which lists the names there are.
    pub fn named(
        registered: &[PolicyRegistration],
        name: &str,
    ) -> Result<PolicyRegistration, UnknownPolicy> {
        let found = registered.iter().find(|policy| policy.name == name);
        found.copied().ok_or_else(|| UnknownPolicy {
            name: name.to_owned(),
            known: registered.iter().map(|policy| policy.name).collect(),
        })
    }

    /// The policy with these settings.
    pub fn make(&self, settings: &Settings) -> Box<dyn Policy> {
        (self.make)(settings)
    }
}

/// By the name: no two that are registered have the same.
impl PartialEq for PolicyRegistration {
    fn eq(&self, other: &PolicyRegistration) -> bool {
        self.name == other.name
    }
}

impl Eq for PolicyRegistration {}

impl fmt::Debug for PolicyRegistration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PolicyRegistration").field(&self.name).finish()
    }
}

/// The policy that comes along which `name` spells in another way: RSS++ is `rsspp`. `None` when it spells none.
pub fn spelled_as(name: &str) -> Option<&'static str> {
    spelled_among(name, &NAMES)
}

fn spelled_among(name: &str, known: &[&'static str]) -> Option<&'static str> {
    let plain = |name: &str| -> String {
        let letters = name.chars().filter(|c| !matches!(c, '-' | '_' | ' '));
        letters.map(|c| if c == '+' { 'p' } else { c.to_ascii_lowercase() }).collect()
    };
    let name = plain(name);
    known.iter().copied().find(|known| plain(known) == name)
}

fn hint(name: &str, known: &[&'static str]) -> String {
    spelled_among(name, known).map_or_else(String::new, |known| format!("did you mean `{known}`? "))
}

#[cfg(test)]
mod tests {
    use super::super::{ALL, Rss, by_name};
    use super::*;

    #[test]
    fn policies_have_the_names_that_they_are_registered_by() {
        for policy in ALL {
            assert_eq!(policy.make(&Settings::default()).name(), policy.name);
        }
        assert_eq!(
            by_name("rss++").err().unwrap().to_string(),
            "there is no policy `rss++`; did you mean `rsspp`? write one of rss, rsspp, local-search, \
             traffic-class, dyssect, auto"
        );
    }

    #[test]
    fn another_spelling_of_a_policy_is_recognised() {
        for (written, meant) in [("RSS++", "rsspp"), ("Local Search", "local-search")] {
            assert_eq!(spelled_as(written), Some(meant));
        }
        assert_eq!(spelled_as("fastest"), None);
    }

    #[test]
    fn an_own_policy_is_made_with_its_settings_and_listed_in_errors() {
        let own = PolicyRegistration::new("own", |settings: &Settings| {
            assert_eq!(settings.offloading, 3);
            Rss
        });
        let registered = [ALL[0], own];
        let found = PolicyRegistration::named(&registered, "own").unwrap();
        assert_eq!(found, own);
        let settings = Settings { offloading: 3, ..Settings::default() };
        assert_eq!(found.make(&settings).name(), "rss");
        let unknown = PolicyRegistration::named(&registered, "OWN").unwrap_err();
        assert_eq!(unknown.known, ["rss", "own"]);
        assert!(unknown.to_string().contains("did you mean `own`?"), "{unknown}");
    }
}
