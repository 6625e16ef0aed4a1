//! The keys of `[serve]` that name a scheduler, and set what it leaves open.

use rheostat_base::choice::Outstanding;
use rheostat_packet::BURST;
use rheostat_run::Sharing;
use rheostat_serve::scheduler::{AvailableScheduler, SchedulerRegistration};
use rheostat_settings::declared::kind::{Kind, boolean, integer};
use rheostat_settings::declared::{Form, Setting};
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::convert::{choice, text};
use rheostat_settings::reader::{Table, Value};
use rheostat_settings::suggestion::one_of;

/// A scheduler with application workers, for settings that have a meaning with one only.
const DISPATCHER: &str = "scheduler = \"dispatcher-1:1\"";
/// A scheduler with shared receive queues, likewise.
const SHARED: &str = "scheduler = \"inline-cfcfs\"";

/// The scheduler of a service with its settings.
#[derive(Clone, Debug, PartialEq)]
pub struct SchedulingConfig {
    /// Which workers do what of a request.
    pub scheduler: AvailableScheduler,
    /// Requests that an application worker with a central queue may hold: 1 or 2.
    pub outstanding: u32,
    /// Packets that a lane takes at a time of a receive queue that others take from, too.
    pub burst: usize,
    /// Whether lanes and application workers may share cores in turn.
    pub share_cores: bool,
}

rheostat_settings::keys! {
    struct Keys(schedulers: &[SchedulerRegistration]) {
        /// Which workers do what of a request.
        scheduler: AvailableScheduler = named(schedulers), value("NAME"), default(AvailableScheduler::default());
        /// Requests that an application worker of a dispatcher with a central queue may hold: 1, or 2 to hide the hand-off.
        outstanding: u32 = integer(1..=2), value("K"), default(1), with(DISPATCHER);
        /// Packets that a lane takes at a time of a receive queue that others take from, too. More than 1 does more short requests,
        /// and those taken along wait for each other.
        burst: usize = integer(1..=BURST as u64), value("N"), default(1), with(SHARED);
        /// Let the workers of a dispatcher share cores in turn where there are fewer, which is refused otherwise: to try one out.
        share_cores: bool = boolean(), default(false), excludes("place"), with(DISPATCHER);
    }
}

impl SchedulingConfig {
    /// Requests that a member of a dispatcher's central queue may hold.
    pub fn outstanding(&self) -> Outstanding {
        Outstanding::new(self.outstanding).unwrap_or(Outstanding::ONE)
    }

    /// How lanes share receive queues, if they do.
    pub fn sharing(&self) -> Option<Sharing> {
        self.scheduler.sharing().map(|sharing| sharing.in_bursts_of(self.burst))
    }

    /// The keys, of which `scheduler` names one of `schedulers`.
    pub(super) fn keys(schedulers: &[SchedulerRegistration]) -> Vec<Setting> {
        Keys::new(schedulers).settings()
    }

    /// Reads the keys. One that is wrong has its default.
    pub(super) fn read(
        table: &mut Table<'_>,
        schedulers: &[SchedulerRegistration],
        findings: &mut Findings,
    ) -> SchedulingConfig {
        let keys = Keys::new(schedulers);
        let scheduler = keys.scheduler.read_or_default(table, findings);
        let plan = scheduler.plan();
        let unless = |has_meaning: bool, condition| (!has_meaning).then_some(condition);
        let central = unless(plan.has_central_queue(), DISPATCHER);
        let shared = unless(plan.sharing().is_some(), SHARED);
        let members = unless(plan.members().is_some(), DISPATCHER);
        SchedulingConfig {
            outstanding: keys.outstanding.read_if(central, table, findings).unwrap_or(1),
            burst: keys.burst.read_if(shared, table, findings).unwrap_or(1),
            share_cores: keys.share_cores.read_if(members, table, findings).unwrap_or(false),
            scheduler,
        }
    }

    /// The settings beside the scheduler that differ from their default, each as `key value`.
    pub(super) fn differences(&self) -> Vec<String> {
        let keys = Keys::new(&[]);
        let differences = [
            keys.outstanding.difference(&self.outstanding),
            keys.burst.difference(&self.burst),
            keys.share_cores.difference(&self.share_cores),
        ];
        differences.into_iter().flatten().collect()
    }
}

/// One of `schedulers` by its name.
fn named(schedulers: &[SchedulerRegistration]) -> Kind<AvailableScheduler> {
    let names: Vec<_> = schedulers.iter().map(|scheduler| scheduler.name).collect();
    let (bounds, known) = (names.join(", "), schedulers.to_vec());
    let read = move |value: &Value<'_>, findings: &mut Findings| {
        let name = text(value, findings)?;
        match SchedulerRegistration::named(&known, name) {
            Some(Ok(scheduler)) => return Some(scheduler),
            Some(Err(error)) => {
                let finding = value.mistake(format!("`{}`: {error}", value.name()));
                findings.push(finding.help(format!("write {}", one_of(names.iter().copied()))));
            }
            None => {
                let names: Vec<_> = names.iter().map(|name| (*name, ())).collect();
                choice(&names)(value, findings);
            }
        }
        None
    };
    Kind::new(Form::Text, read, AvailableScheduler::to_string)
        .within(bounds)
        .noun("word")
        .such_as("\"inline-dfcfs\"")
}
