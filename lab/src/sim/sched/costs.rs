//! What a request costs beside the application's work: a file of costs.

use std::path::{Path, PathBuf};
use std::{fs, io};

use rheostat_measure::record::Header;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::costs::Distribution;

/// A cost in nanoseconds: a number, or a distribution as it was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Cost {
    /// Always the same.
    Constant(f64),
    /// Drawn for each use.
    Measured(Distribution),
}

impl Cost {
    /// The mean in nanoseconds.
    pub fn mean_ns(&self) -> f64 {
        match self {
            Cost::Constant(ns) => *ns,
            Cost::Measured(distribution) => {
                (0..RANKS).map(|rank| distribution.quantile(share(rank))).sum::<f64>()
                    / RANKS as f64
            }
        }
    }

    /// Evenly likely values, in picoseconds.
    pub(super) fn ranks(&self) -> Vec<u64> {
        let ps = |ns: f64| (ns * 1e3).round() as u64;
        match self {
            Cost::Constant(ns) => vec![ps(*ns)],
            Cost::Measured(distribution) => {
                (0..RANKS).map(|rank| ps(distribution.quantile(share(rank)))).collect()
            }
        }
    }

    fn problem(&self) -> Option<&'static str> {
        match self {
            Cost::Constant(ns) if !(0.0..1e9).contains(ns) => {
                Some("has to be at least 0 and below a second")
            }
            Cost::Measured(distribution) if !distribution.is_sound() => {
                Some("has quantiles that are missing or not ascending")
            }
            _ => None,
        }
    }

    /// So much more each time.
    pub(crate) fn plus(&self, ns: f64) -> Cost {
        match self {
            Cost::Constant(own) => Cost::Constant(own + ns),
            Cost::Measured(distribution) => {
                let mut moved = distribution.clone();
                moved.quantiles.iter_mut().for_each(|(_, own)| *own += ns);
                moved.raw.iter_mut().for_each(|own| *own += ns);
                Cost::Measured(moved)
            }
        }
    }

    /// So many times as much each time.
    pub(crate) fn times(&self, factor: f64) -> Cost {
        match self {
            Cost::Constant(ns) => Cost::Constant(ns * factor),
            Cost::Measured(distribution) => {
                let mut scaled = distribution.clone();
                scaled.quantiles.iter_mut().for_each(|(_, ns)| *ns *= factor);
                scaled.raw.iter_mut().for_each(|ns| *ns *= factor);
                Cost::Measured(scaled)
            }
        }
    }
}

/// Values of a distribution that are told apart.
const RANKS: usize = 256;

fn share(rank: usize) -> f64 {
    (rank as f64 + 0.5) / RANKS as f64
}

/// A file of costs of requests over TCP, in JSON. All fields but `header` and `core_to_core_ns` are required.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RequestCosts {
    /// Where they are from, in a line.
    pub about: String,
    /// Command, commit and machine, if they were measured.
    pub header: Option<Header>,
    /// What a cache line took from one worker's core to the other's, before and behind the measurement: the least and the greatest, in
    /// nanoseconds. Hand-offs, locks and what sharing costs are of that distance.
    pub core_to_core_ns: Option<[f64; 2]>,
    /// Packet delivery and TCP in, of a request that is one segment.
    pub tcp_in_ns: Cost,
    /// TCP out, of a reply that is one segment.
    pub tcp_out_ns: Cost,
    /// Parsing the request.
    pub parse_ns: Cost,
    /// What a dispatcher spends to give a request to a member of which none is outstanding (k = 1).
    pub handoff_give_k1_ns: Cost,
    /// What it spends to take the reply.
    pub handoff_take_k1_ns: Cost,
    /// As `handoff_give_k1_ns`, with up to two outstanding (k = 2).
    pub handoff_give_k2_ns: Cost,
    /// As `handoff_take_k1_ns`, with up to two outstanding.
    pub handoff_take_k2_ns: Cost,
    /// What a member spends to take a request and to return its reply.
    pub handoff_member_ns: Cost,
    /// From the end of the giver's work until the taker sees it; each way.
    pub handoff_latency_ns: Cost,
    /// From ringing for a worker that sleeps until it runs.
    pub wake_ns: Cost,
    /// How long a shared queue's lock is held to take a request from it, by the worker that held it last.
    pub queue_lock_free_ns: Cost,
    /// The same by another worker than the last, when the lock is free.
    pub queue_lock_taken_ns: Cost,
    /// The same, when the worker had to wait for the lock.
    pub queue_lock_contended_ns: Cost,
    /// Taking a connection's lock, by the worker that held it last.
    pub connection_lock_same_ns: Cost,
    /// The same by another worker.
    pub connection_lock_other_ns: Cost,
    /// What TCP in takes longer on another worker than the connection's last: its state is in another cache.
    pub connection_move_ns: Cost,
    /// What a request costs more where workers share queues and connections, beside locks and moves: its reply has a turn of its own.
    pub sharing_ns: Cost,
    /// Finding the queue to steal from.
    pub steal_ns: Cost,
    /// What a poll costs beside its requests: handing replies to the device, and what is done once in each poll.
    pub flush_ns: Cost,
    /// How many requests share a poll at most. Where each connection has one worker, their replies leave at its end.
    pub poll_burst: u32,
}

/// Why there are no costs.
#[derive(Debug, Error)]
pub enum RequestCostsError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is something else.
    #[error(
        "{}: {problem}; `rheo sim sched --print-costs` prints a file of costs with all fields",
        path.display()
    )]
    Wrong {
        /// The file.
        path: PathBuf,
        /// What is wrong, with the field.
        problem: String,
    },
}

/// The thesis's costs in the format of the file.
const THESIS: &str = include_str!("../../../costs/requests-thesis.json");
/// Costs that were measured on a machine whose processors were 250 ns from one another.
const SHIPPED: &str = include_str!("../../../costs/requests-epyc.json");

impl RequestCosts {
    /// What the thesis says, or implies: TCP in 1.81 us, TCP out 0.19 us, 0.5 us for both ways of a hand-off. Locks are not told, so they are
    /// assumed: see the file's `about`.
    pub fn thesis() -> RequestCosts {
        // The file is part of the program, and a test reads it.
        RequestCosts::parse(Path::new("requests-thesis.json"), THESIS)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// Measured costs that come with rheostat, for machines whose own cannot be measured; `about` names their machine.
    pub fn shipped() -> RequestCosts {
        // The file is part of the program, and a test reads it.
        RequestCosts::parse(Path::new("requests-epyc.json"), SHIPPED)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// Costs from a file.
    ///
    /// # Errors
    /// [`RequestCostsError`], which names the file and the field.
    pub fn open(path: &Path) -> Result<RequestCosts, RequestCostsError> {
        let text = fs::read_to_string(path)
            .map_err(|source| RequestCostsError::Read { path: path.to_owned(), source })?;
        RequestCosts::parse(path, &text)
    }

    /// Costs from the text of a file at `path`.
    ///
    /// # Errors
    /// [`RequestCostsError::Wrong`], which names the file and the field.
    pub fn parse(path: &Path, text: &str) -> Result<RequestCosts, RequestCostsError> {
        let wrong = |problem: String| RequestCostsError::Wrong { path: path.to_owned(), problem };
        let fields: Map<String, Value> =
            serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        RequestCosts::of(Fields(fields)).map_err(wrong)
    }

    fn of(mut fields: Fields) -> Result<RequestCosts, String> {
        let costs = RequestCosts {
            about: fields.take("about")?,
            header: fields.take_optional("header")?,
            core_to_core_ns: fields.take_optional("core_to_core_ns")?,
            tcp_in_ns: fields.cost("tcp_in_ns")?,
            tcp_out_ns: fields.cost("tcp_out_ns")?,
            parse_ns: fields.cost("parse_ns")?,
            handoff_give_k1_ns: fields.cost("handoff_give_k1_ns")?,
            handoff_take_k1_ns: fields.cost("handoff_take_k1_ns")?,
            handoff_give_k2_ns: fields.cost("handoff_give_k2_ns")?,
            handoff_take_k2_ns: fields.cost("handoff_take_k2_ns")?,
            handoff_member_ns: fields.cost("handoff_member_ns")?,
            handoff_latency_ns: fields.cost("handoff_latency_ns")?,
            wake_ns: fields.cost("wake_ns")?,
            queue_lock_free_ns: fields.cost("queue_lock_free_ns")?,
            queue_lock_taken_ns: fields.cost("queue_lock_taken_ns")?,
            queue_lock_contended_ns: fields.cost("queue_lock_contended_ns")?,
            connection_lock_same_ns: fields.cost("connection_lock_same_ns")?,
            connection_lock_other_ns: fields.cost("connection_lock_other_ns")?,
            connection_move_ns: fields.cost("connection_move_ns")?,
            steal_ns: fields.cost("steal_ns")?,
            sharing_ns: fields.cost("sharing_ns")?,
            flush_ns: fields.cost("flush_ns")?,
            poll_burst: fields.take("poll_burst")?,
        };
        match fields.0.keys().next() {
            None => Ok(costs),
            Some(field) => Err(format!("`{field}` is not a field of this file")),
        }
    }

    /// The text of their file.
    pub fn to_text(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Mean nanoseconds of TCP for a request: in, parsing, out, and its part of a poll with as many requests as it can have.
    pub fn network_ns(&self) -> f64 {
        let own = [&self.tcp_in_ns, &self.parse_ns, &self.tcp_out_ns].map(Cost::mean_ns);
        own.iter().sum::<f64>() + self.flush_ns.mean_ns() / f64::from(self.poll_burst.max(1))
    }

    /// The mean of `queue_lock_taken_ns`, by which the cost of locks is named.
    pub fn lock_ns(&self) -> f64 {
        self.queue_lock_taken_ns.mean_ns()
    }

    /// The same costs with locks so much dearer or cheaper that `queue_lock_taken_ns` is `lock_ns` on average: all costs of
    /// queue locks, connection locks and steals change in proportion. Where they are 0, they become what the thesis's
    /// costs have.
    #[must_use]
    pub fn with_lock(&self, lock_ns: f64) -> RequestCosts {
        if self.lock_ns() <= 0.0 {
            let thesis = RequestCosts::thesis();
            let factor = lock_ns / thesis.lock_ns();
            return self.with_locks_of(&thesis, factor);
        }
        self.with_locks_of(self, lock_ns / self.lock_ns())
    }

    fn with_locks_of(&self, other: &RequestCosts, factor: f64) -> RequestCosts {
        RequestCosts {
            queue_lock_free_ns: other.queue_lock_free_ns.times(factor),
            queue_lock_taken_ns: other.queue_lock_taken_ns.times(factor),
            queue_lock_contended_ns: other.queue_lock_contended_ns.times(factor),
            connection_lock_same_ns: other.connection_lock_same_ns.times(factor),
            connection_lock_other_ns: other.connection_lock_other_ns.times(factor),
            steal_ns: other.steal_ns.times(factor),
            ..self.clone()
        }
    }

    /// Nothing costs anything.
    #[cfg(test)]
    pub(super) fn free() -> RequestCosts {
        let text = serde_json::to_string(&RequestCosts::thesis()).unwrap();
        let mut fields: Map<String, Value> = serde_json::from_str(&text).unwrap();
        for (name, value) in &mut fields {
            if name.ends_with("_ns") && !value.is_null() {
                *value = 0.0.into();
            }
        }
        RequestCosts::of(Fields(fields)).unwrap()
    }
}

/// The fields of a file that have not been read yet.
struct Fields(Map<String, Value>);

impl Fields {
    fn take_optional<T: serde::de::DeserializeOwned>(
        &mut self,
        name: &str,
    ) -> Result<Option<T>, String> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => serde_json::from_value(value)
                .map(Some)
                .map_err(|error| format!("`{name}`: {error}")),
        }
    }

    fn take<T: serde::de::DeserializeOwned>(&mut self, name: &str) -> Result<T, String> {
        self.take_optional(name)?.ok_or_else(|| format!("`{name}` is missing"))
    }

    fn cost(&mut self, name: &str) -> Result<Cost, String> {
        // Not by the untagged form alone, whose errors name no field of a distribution.
        let cost = match self.take::<Value>(name)? {
            Value::Number(number) => Cost::Constant(number.as_f64().unwrap_or(f64::NAN)),
            value @ Value::Object(_) => {
                let distribution = serde_json::from_value(value);
                Cost::Measured(distribution.map_err(|error| format!("`{name}`: {error}"))?)
            }
            _ => {
                return Err(format!(
                    "`{name}` is neither a number of nanoseconds nor a distribution"
                ));
            }
        };
        match cost.problem() {
            None => Ok(cost),
            Some(problem) => Err(format!("`{name}` {problem}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(change: impl Fn(&mut Map<String, Value>)) -> String {
        let mut fields = serde_json::from_str(THESIS).unwrap();
        change(&mut fields);
        let text = serde_json::to_string(&fields).unwrap();
        RequestCosts::parse(Path::new("my.json"), &text).unwrap_err().to_string()
    }

    #[test]
    fn the_thesis_has_two_microseconds_of_tcp_and_half_of_one_for_a_hand_off() {
        let costs = RequestCosts::thesis();
        assert_eq!(costs.network_ns(), 2_000.0);
        assert_eq!(costs.handoff_give_k1_ns.mean_ns() + costs.handoff_take_k1_ns.mean_ns(), 500.0);
        assert_eq!(RequestCosts::parse(Path::new("x"), &costs.to_text()).unwrap(), costs);
    }

    #[test]
    fn shipped_costs_were_measured_and_name_their_machine() {
        let costs = RequestCosts::shipped();
        let machine = costs.header.as_ref().unwrap().machine.processor.as_str();
        assert!(costs.about.contains(machine), "{}", costs.about);
        assert!(costs.network_ns() > 0.0 && costs.lock_ns() > 0.0);
    }

    #[test]
    fn errors_name_the_file_and_the_field() {
        let text = wrong(|fields| drop(fields.remove("steal_ns")));
        assert!(
            text.starts_with("my.json: `steal_ns` is missing; `rheo sim sched --print-costs`"),
            "{text}"
        );
        let text = wrong(|fields| drop(fields.insert("tcp_in_ns".into(), "fast".into())));
        assert!(text.starts_with("my.json: `tcp_in_ns` is neither a number"), "{text}");
        let text = wrong(|fields| drop(fields.insert("tcp_out_ns".into(), Value::from(-1.0))));
        assert!(text.starts_with("my.json: `tcp_out_ns` has to be at least 0"), "{text}");
        let text = wrong(|fields| drop(fields.insert("tcp_outs_ns".into(), Value::from(1.0))));
        assert!(text.starts_with("my.json: `tcp_outs_ns` is not a field"), "{text}");
        let half = serde_json::json!({ "count": 1, "interrupted": 0, "raw": [] });
        let text = wrong(|fields| drop(fields.insert("wake_ns".into(), half.clone())));
        assert!(text.starts_with("my.json: `wake_ns`: missing field `quantiles`"), "{text}");
        let falling = serde_json::json!({ "count": 1, "interrupted": 0, "quantiles": [[0.0, 2.0], [1.0, 1.0]], "raw": [] });
        let text = wrong(|fields| drop(fields.insert("wake_ns".into(), falling.clone())));
        assert!(text.starts_with("my.json: `wake_ns` has quantiles"), "{text}");
        assert!(
            RequestCosts::parse(Path::new("my.json"), "[]")
                .unwrap_err()
                .to_string()
                .starts_with("my.json: ")
        );
        let missing = RequestCosts::open(Path::new("/nowhere/costs.json")).unwrap_err();
        assert!(missing.to_string().starts_with("/nowhere/costs.json: "));
    }

    #[test]
    fn a_measured_cost_has_the_mean_of_its_quantiles() {
        let measured = Distribution {
            count: 3,
            interrupted: 0,
            quantiles: vec![(0.0, 100.0), (0.5, 200.0), (1.0, 500.0)],
            raw: Vec::new(),
        };
        let cost = Cost::Measured(measured);
        assert!((cost.mean_ns() - 250.0).abs() < 1e-6);
        assert_eq!(cost.ranks().len(), RANKS);
        assert!((cost.times(2.0).mean_ns() - 500.0).abs() < 1e-6);
        assert!((cost.plus(30.0).mean_ns() - 280.0).abs() < 1e-6);
        assert_eq!(Cost::Constant(7.0).plus(30.0).mean_ns(), 37.0);
    }

    #[test]
    fn locks_are_scaled_together() {
        let costs = RequestCosts::thesis().with_lock(40.0);
        assert_eq!((costs.lock_ns(), costs.queue_lock_free_ns.mean_ns()), (40.0, 8.0));
        assert_eq!(
            (costs.connection_lock_other_ns.mean_ns(), costs.tcp_in_ns.mean_ns()),
            (40.0, 1_810.0)
        );
        assert_eq!(RequestCosts::free().with_lock(40.0).queue_lock_contended_ns.mean_ns(), 40.0);
    }
}
