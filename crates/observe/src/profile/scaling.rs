//! A profile, for programs.

use rheostat_run::LaneSample;
use rheostat_state::object::Recipe;
use rheostat_state::txn::{ObjectInfo, Profile};
use serde::{Deserialize, Serialize};

use super::Bottleneck;
use super::bottleneck::expected_gain;
use super::rank::{Pair, of_cause, ranked};

/// The busiest lane's packets over the mean, from which on a finer packet set is advised (NFOS reports the imbalance
/// for that purpose, section 6, and leaves open how much is too much).
const UNEVEN: f64 = 1.5;
/// Packets per lane below which lanes are uneven by chance.
const ENOUGH: u64 = 100;

/// What keeps a run from scaling. The fields are those of the JSON output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScalingProfile {
    /// The functions of the chain, in their order.
    pub functions: Vec<String>,
    /// Lanes.
    pub lanes: usize,
    /// How long was looked, in seconds.
    pub seconds: f64,
    /// Packets that lanes processed meanwhile.
    pub packets: u64,
    /// Whether the functions share objects; without, there are no transactions.
    pub shares: bool,
    /// Transactions that took effect, of one or several packets each.
    pub commits: u64,
    /// Attempts that were undone.
    pub aborts: u64,
    /// Aborts ÷ attempts.
    pub abort_rate: f64,
    /// Transactions that had to run alone, because they had been undone too often.
    pub serial: u64,
    /// Aborts whose cause was noted.
    pub sampled: u64,
    /// How long lanes worked, in seconds of all of them together.
    pub busy_seconds: f64,
    /// Of that, what went into attempts that were undone, if they take as long as those that take effect: an upper
    /// bound, since a conflict is often seen before the attempt is over.
    pub lost_seconds: f64,
    /// The causes, those of most aborts first, whatever operations they are about; of one cause, the operations of most
    /// aborts first.
    pub causes: Vec<Bottleneck>,
    /// The busiest lane's packets over the mean: 1 when all have as many; `null` without packets.
    pub imbalance: Option<f64>,
    /// What else there is to say.
    pub notes: Vec<String>,
}

/// What a profile is made of.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// The functions of the chain.
    pub functions: &'a [String],
    /// How long was looked, in seconds.
    pub seconds: f64,
    /// What each lane has counted meanwhile.
    pub lanes: &'a [LaneSample],
    /// The shared objects and what became of transactions meanwhile; `None` where functions share nothing.
    pub shared: Option<(&'a [ObjectInfo], &'a Profile)>,
}

impl ScalingProfile {
    /// Makes a profile of what was observed.
    pub fn of(observed: &Observed<'_>) -> ScalingProfile {
        let packets: Vec<u64> = observed.lanes.iter().map(processed).collect();
        let busy: u64 = observed.lanes.iter().map(|lane| lane.busy_ns).sum();
        let imbalance = imbalance(&packets);
        let mut profile = ScalingProfile {
            functions: observed.functions.to_vec(),
            lanes: observed.lanes.len(),
            seconds: observed.seconds,
            packets: packets.iter().sum(),
            shares: observed.shared.is_some(),
            commits: 0,
            aborts: 0,
            abort_rate: 0.0,
            serial: 0,
            sampled: 0,
            busy_seconds: busy as f64 / 1e9,
            lost_seconds: 0.0,
            causes: Vec::new(),
            imbalance,
            notes: Vec::new(),
        };
        match observed.shared {
            Some((objects, transactions)) => profile.add(objects, transactions),
            None => profile.notes.push(
                "the functions share no objects, so lanes have nothing to conflict about"
                    .to_owned(),
            ),
        }
        profile.note_imbalance(&packets);
        profile
    }

    /// The part of the lanes' work that went into attempts that were undone, 0 to 1.
    pub fn lost_share(&self) -> f64 {
        if self.busy_seconds > 0.0 { self.lost_seconds / self.busy_seconds } else { 0.0 }
    }

    fn add(&mut self, objects: &[ObjectInfo], transactions: &Profile) {
        let total = transactions.total();
        self.commits = total.commits;
        self.aborts = total.aborts;
        self.abort_rate = total.abort_rate();
        self.serial = total.alone;
        self.sampled = transactions.noted();
        self.lost_seconds = self.busy_seconds * self.abort_rate;
        let pairs = ranked(&transactions.conflicts, objects);
        let causes =
            pairs.iter().map(|pair| self.bottleneck(pair, of_cause(pair, &pairs), objects));
        self.causes = causes.collect();
        self.note_transactions();
    }

    /// What is to be said of a pair whose cause was noted `of_cause` times in all.
    fn bottleneck(&self, pair: &Pair, of_cause: u64, objects: &[ObjectInfo]) -> Bottleneck {
        let of_aborts = self.aborts as f64 / self.sampled.max(1) as f64;
        let share = pair.count as f64 / self.sampled.max(1) as f64;
        let (aborts, avoided) = (pair.count as f64 * of_aborts, of_cause as f64 * of_aborts);
        let object = &objects[usize::from(pair.object.0)];
        let mut recipes = pair.cause.recipes().iter().map(|recipe| advice(*recipe, object));
        Bottleneck {
            object: object.name.clone(),
            kind: object.kind.name().to_owned(),
            operations: pair.operations(),
            cause: pair.cause.describe().to_owned(),
            source: pair.source(),
            share,
            aborts: aborts.round() as u64,
            lost_seconds: share * self.lost_seconds,
            recipe: recipes.next().unwrap_or_else(|| "none is known".to_owned()),
            others: recipes.collect(),
            gain: expected_gain(self.commits + self.aborts, avoided),
        }
    }

    fn note_transactions(&mut self) {
        if self.lanes == 1 {
            self.notes.push(
                "one lane alone has no conflicts: profile with --lanes 2 or more, up to as many as are to be used"
                    .to_owned(),
            );
        }
        if self.aborts > 0 && self.sampled == 0 {
            self.notes.push(
                "no cause was noted: of a running instance, one abort in 256 is looked at; look for longer"
                    .to_owned(),
            );
        }
    }

    fn note_imbalance(&mut self, packets: &[u64]) {
        let is_uneven = self.imbalance.is_some_and(|imbalance| imbalance > UNEVEN);
        if is_uneven && self.packets >= ENOUGH * packets.len() as u64 {
            self.notes.push(format!(
                "lanes are uneven (over {UNEVEN}): a packet set of more fields distinguishes more packets and \
                 spreads them better; where a few flows are heavy, [balance] policy = \"rsspp\" helps"
            ));
        }
    }
}

/// What to do, and by which setting, if the object's author has said so.
fn advice(recipe: Recipe, object: &ObjectInfo) -> String {
    match object.setting(recipe) {
        Some(setting) => format!("{}: {setting}", recipe.describe()),
        None => recipe.describe().to_owned(),
    }
}

/// Packets that a lane has processed: those that came to it, less those it gave to others.
fn processed(lane: &LaneSample) -> u64 {
    (lane.received + lane.handoff_in).saturating_sub(lane.handoff_out)
}

/// The greatest over the mean.
fn imbalance(packets: &[u64]) -> Option<f64> {
    let sum: u64 = packets.iter().sum();
    let most = *packets.iter().max()?;
    (sum > 0).then(|| most as f64 * packets.len() as f64 / sum as f64)
}
