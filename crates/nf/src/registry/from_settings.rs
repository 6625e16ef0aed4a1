//! Functions that are registered by their type alone: of a program's own, with settings as a type.

use std::any::{Any, type_name};
use std::fmt::{self, Debug};
use std::marker::PhantomData;
use std::sync::Arc;

use rheostat_base::OwnDropReason;
use rheostat_settings::device::Device;
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::Table;
use rheostat_settings::section::Section;

use super::{
    BuildCx, BuildError, Built, FixedKey, FlowPlace, FunctionFacts, FunctionSettings, Handed,
    Missing, Registration, RuleList,
};
use crate::chain::{Mode, OnObjects, Owned};
use crate::function::{NetworkFunction, NoShardState};
use crate::link::link_in;
use crate::listing::ListMethods;

/// A network function that is built of the settings in its table of a configuration.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be built from a configuration",
    label = "has no `FromSettings`",
    note = "implement `FromSettings` for it: `type Settings` (a type that serde reads, or `()`) and `from_settings`, beside \
            `NetworkFunction`"
)]
pub trait FromSettings: NetworkFunction + Sized {
    /// The keys of its table: a type that implements serde's `Deserialize`, or reads its keys itself; `()` for a function
    /// without settings.
    type Settings: Section + Debug + Send + Sync + 'static;

    /// Its purpose, in one sentence without subject and full stop.
    const SUMMARY: &'static str = "";

    /// The drop reasons that it adds to those of rheostat.
    const DROP_REASONS: &'static [&'static OwnDropReason] = &[];

    /// What the function lists while a run goes on: `Some(ListMethods::of())` for one that implements [`Lists`](crate::Lists).
    const LISTS: Option<ListMethods<Self>> = None;

    /// Builds the function, when a run starts.
    ///
    /// # Errors
    /// [`BuildError`] if it cannot be built of these settings; the run does not start then.
    fn from_settings(settings: &Self::Settings, cx: &BuildCx<'_>) -> Result<Self, BuildError>;

    /// What a function with other settings takes over when it takes this one's place while lanes run
    /// ([`BuildCx::predecessor`]): shared objects, for one. State of flows and shards goes on without it.
    fn handed(&self) -> Option<Handed> {
        None
    }

    /// The keys that are different in `next` and that cannot change while the function runs. Without it, all can.
    fn fixed(_settings: &Self::Settings, _next: &Self::Settings) -> Vec<FixedKey> {
        Vec::new()
    }

    /// Its rules, if it has some: they are listed while the run goes on. The function keeps the same counters.
    fn rules(&self) -> Option<Arc<dyn RuleList>> {
        None
    }

    /// Properties of the function with these settings that other parts of a configuration depend on; `facts` are those of
    /// its type.
    fn facts(_settings: &Self::Settings, facts: FunctionFacts) -> FunctionFacts {
        facts
    }
}

impl Registration {
    /// A function with state per flow and per shard, under this name.
    pub const fn of<F: FromSettings>(name: &'static str) -> Registration {
        Registration::in_mode::<F, Owned>(name)
    }

    /// A function on shared objects, under this name.
    pub const fn on_objects<F: FromSettings + NetworkFunction<Shard: NoShardState>>(
        name: &'static str,
    ) -> Registration
    where
        F::Flow: Clone,
    {
        Registration::in_mode::<F, OnObjects>(name)
    }

    const fn in_mode<F: FromSettings, M: Mode<F>>(name: &'static str) -> Registration {
        Registration {
            name,
            summary: F::SUMMARY,
            keys: F::Settings::keys,
            read: Some(|table, _, findings| read::<F, M>(table, findings)),
            default: default::<F, M>,
        }
    }
}

fn read<F: FromSettings, M: Mode<F>>(
    table: &mut Table<'_>,
    findings: &mut Findings,
) -> Option<Arc<dyn FunctionSettings>> {
    let settings = F::Settings::read(table, findings)?;
    Some(Arc::new(Typed::<F, M> { settings, function: PhantomData }))
}

fn default<F: FromSettings, M: Mode<F>>(
    _: &[Device],
) -> Result<Arc<dyn FunctionSettings>, Missing> {
    let mut findings = Findings::default();
    let settings = Table::read_absent("function.NAME", &mut findings, read::<F, M>);
    let help = || {
        let fixes = findings.into_list();
        let fixes: Vec<_> = fixes.iter().filter_map(|finding| finding.advice()).collect();
        format!("add its table; in it, {}", fixes.join(", "))
    };
    settings.ok_or_else(|| Missing {
        noun: type_name::<F>().rsplit("::").next().unwrap_or("function"),
        message: "the function has no settings",
        help: help(),
    })
}

/// The settings of an `F`.
struct Typed<F: FromSettings, M> {
    settings: F::Settings,
    function: PhantomData<fn() -> (F, M)>,
}

impl<F: FromSettings, M: Mode<F>> FunctionSettings for Typed<F, M> {
    fn facts(&self) -> FunctionFacts {
        let size = size_of::<F::Flow>();
        let flows = match (M::SHARED, size) {
            (false, _) => FlowPlace::Shards,
            (true, 0) => FlowPlace::Objects,
            (true, _) => FlowPlace::ObjectsAndShards,
        };
        F::facts(
            &self.settings,
            FunctionFacts { flows, large_state: size > 64, ..FunctionFacts::default() },
        )
    }

    fn build(&self, cx: &BuildCx<'_>) -> Result<Built, BuildError> {
        let function = F::from_settings(&self.settings, cx)?;
        let (handed, rules) = (function.handed(), function.rules());
        let link = link_in(function, M::of(cx.objects)).listed_by(F::LISTS);
        Ok(Built { handed, rules, ..Built::of(link) })
    }

    fn fixed(&self, next: &dyn FunctionSettings) -> Vec<FixedKey> {
        let next: &dyn Any = next;
        let next = next.downcast_ref::<Typed<F, M>>();
        next.map_or_else(Vec::new, |next| F::fixed(&self.settings, &next.settings))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:?}", self.settings);
        // The fields of a struct, without its name.
        let fields = text.split_once(" { ").and_then(|(_, fields)| fields.strip_suffix(" }"));
        match (fields, text.as_str()) {
            (None, "()") => writeln!(f, "{}", F::SUMMARY),
            (fields, text) => writeln!(f, "{}", fields.unwrap_or(text)),
        }
    }
}

impl<F: FromSettings, M> fmt::Debug for Typed<F, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.fmt(f)
    }
}

/// Settings need no equality of their own: all there is to them is printed.
impl<F: FromSettings, M> PartialEq for Typed<F, M> {
    fn eq(&self, other: &Typed<F, M>) -> bool {
        format!("{:?}", self.settings) == format!("{:?}", other.settings)
    }
}
