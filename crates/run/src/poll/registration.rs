//! Polling policies by name: what each one is, and its keys of `[polling]`.

use std::fmt;

use rheostat_settings::declared::Setting;
use rheostat_settings::document;
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::Table;
use rheostat_settings::reader::convert::choice;

use super::{PollPolicy, Polling};

/// A polling policy that configurations and commands can name.
#[derive(Clone, Copy)]
pub struct PollingRegistration {
    /// Its name in a configuration, which [`Polling::name`] returns, too.
    pub name: &'static str,
    /// What a worker without packets does, in a few words for `--help`; empty if its author gives none.
    pub summary: &'static str,
    /// Its keys of `[polling]`, which are refused with other policies.
    pub keys: fn() -> Vec<Setting>,
    /// Reads them. A key that is absent or wrong has its default.
    pub read: ReadPolling,
}

/// Reads the settings of a polling policy from `[polling]`.
pub type ReadPolling = &'static (dyn Fn(&mut Table<'_>, &mut Findings) -> Polling + Send + Sync);

impl PollingRegistration {
    /// An own policy without settings, of workers with lanes of their own ([`Polling::new`]).
    ///
    /// The registration is kept for the rest of the program, and `make` with it.
    pub fn new<P, M>(name: &'static str, make: M) -> PollingRegistration
    where
        P: PollPolicy + 'static,
        M: Fn(usize) -> P + Send + Sync + 'static,
    {
        let polling = Polling::new(name, make);
        let read = move |_: &mut Table<'_>, _: &mut Findings| polling.clone();
        PollingRegistration { name, summary: "", keys: Vec::new, read: Box::leak(Box::new(read)) }
    }

    /// The policy with the settings that it has by default.
    pub fn with_defaults(&self) -> Polling {
        let empty = document::parse("").expect("an empty text is a document");
        Table::read_root(&empty, &mut Findings::default(), |table, findings| {
            (self.read)(table, findings)
        })
    }

    /// Reads `[polling]`: the policy that it names among those that are registered, or the first, with its settings.
    pub fn read(
        registered: &[PollingRegistration],
        table: &mut Table<'_>,
        findings: &mut Findings,
    ) -> Polling {
        let names: Vec<_> = registered.iter().map(|policy| (policy.name, *policy)).collect();
        let named = table.read("policy", findings, choice(&names));
        let keys = |policy: &PollingRegistration| -> Vec<&'static str> {
            (policy.keys)().iter().map(|setting| setting.key).collect()
        };
        let Some(policy) = named.or(registered.first().copied().filter(|_| !table.has("policy")))
        else {
            // Whose keys they are is not known.
            registered.iter().for_each(|policy| table.ignore(&keys(policy)));
            return Polling::default();
        };
        for other in registered.iter().filter(|other| other.name != policy.name) {
            let own = keys(&policy);
            let foreign = keys(other).into_iter().filter(|key| !own.contains(key));
            let foreign: Vec<_> = foreign.collect();
            table.refuse(&foreign, &format!("policy = \"{}\"", other.name), findings);
        }
        (policy.read)(table, findings)
    }
}

impl fmt::Debug for PollingRegistration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PollingRegistration").field(&self.name).finish()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use rheostat_settings::declared::{Declaration, kind};
    use rheostat_settings::reader::convert::text;

    use super::super::{ALL, Busy};
    use super::*;

    #[test]
    fn policies_have_the_names_that_they_are_registered_by_with_their_defaults() {
        let described: Vec<_> = ALL.iter().map(|policy| policy.with_defaults()).collect();
        for (policy, polling) in ALL.iter().zip(&described) {
            assert_eq!(polling.name(), policy.name);
        }
        let words: Vec<_> = described.iter().map(ToString::to_string).collect();
        assert_eq!(
            words,
            [
                "busy",
                "interrupt after 20us",
                "metronome for a vacation of 10us, interrupt when idle for 100ms",
                "step-sleep up to 100us"
            ]
        );
        assert!(
            ALL.iter()
                .all(|policy| policy.with_defaults().never_sleeps() == (policy.name == "busy"))
        );
    }

    #[test]
    fn a_key_that_two_policies_have_is_read_by_either() {
        let own = PollingRegistration {
            name: "own",
            summary: "",
            keys: || vec![Declaration::new("spin", "", kind::text()).setting(None)],
            read: &|table, findings| {
                let spin = table.read("spin", findings, text).unwrap_or_default();
                Polling::new("own", Busy::new).described(format!("own with {spin}"))
            },
        };
        let registered = [ALL[1], own];
        let document = document::parse("policy = \"own\"\nspin = \"1us\"\n").unwrap();
        let mut findings = Findings::default();
        let read = Table::read_root(&document, &mut findings, |table, findings| {
            PollingRegistration::read(&registered, table, findings)
        });
        assert_eq!((read.name(), read.to_string().as_str()), ("own", "own with 1us"));
        assert!(findings.into_list().is_empty());
    }
}
