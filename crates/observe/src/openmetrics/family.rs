//! A family of metrics: one name with one meaning, and a sample for each value of its labels.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

use super::Snapshot;
use super::histogram::Buckets;

/// A family of metrics.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// The name, without the ends that formats add: `_total` of counters and the unit.
    pub name: &'static str,
    /// What its samples are.
    pub kind: Kind,
    /// The labels of its samples.
    pub labels: &'static [&'static str],
    /// The meaning.
    pub help: &'static str,
    samples: fn(&Snapshot, &mut Samples),
}

/// What the samples of a family are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A count, which only grows.
    Count,
    /// Seconds, which only grow.
    Seconds,
    /// A figure that may fall.
    Gauge,
    /// Seconds by how often they occurred.
    Times,
    /// Numbers of packets by how often they occurred.
    Sizes,
    /// Facts in the labels, of value 1.
    Facts,
}

/// One sample.
#[derive(Clone, Debug)]
enum Value {
    Count(u64),
    Real(f64),
    Buckets(Buckets),
}

/// The samples of a family, with the values of their labels.
#[derive(Debug, Default)]
pub(super) struct Samples(Vec<(Vec<String>, Value)>);

impl Samples {
    pub(super) fn count<const N: usize>(&mut self, labels: [&dyn fmt::Display; N], count: u64) {
        self.add(labels, Value::Count(count));
    }

    pub(super) fn real<const N: usize>(&mut self, labels: [&dyn fmt::Display; N], figure: f64) {
        self.add(labels, Value::Real(figure));
    }

    pub(super) fn buckets<const N: usize>(
        &mut self,
        labels: [&dyn fmt::Display; N],
        buckets: Buckets,
    ) {
        self.add(labels, Value::Buckets(buckets));
    }

    fn add<const N: usize>(&mut self, labels: [&dyn fmt::Display; N], value: Value) {
        self.0.push((labels.iter().map(ToString::to_string).collect(), value));
    }
}

impl Family {
    pub(super) const fn new(
        name: &'static str,
        kind: Kind,
        labels: &'static [&'static str],
        help: &'static str,
        samples: fn(&Snapshot, &mut Samples),
    ) -> Family {
        Family { name, kind, labels, help, samples }
    }

    /// The name that samples have in both formats.
    pub fn sample_name(&self) -> String {
        match self.kind {
            Kind::Count => format!("{}_total", self.name),
            Kind::Seconds => format!("{}_seconds_total", self.name),
            Kind::Gauge => self.name.to_owned(),
            Kind::Times => format!("{}_seconds", self.name),
            Kind::Sizes => format!("{}_packets", self.name),
            Kind::Facts => format!("{}_info", self.name),
        }
    }

    /// Writes its samples, if it has any.
    pub(super) fn encode(&self, snapshot: &Snapshot, to: &mut DescriptorEncoder) -> fmt::Result {
        let mut samples = Samples::default();
        (self.samples)(snapshot, &mut samples);
        if samples.0.is_empty() {
            return Ok(());
        }
        let packets = Unit::Other("packets".to_owned());
        let (kind, unit) = match self.kind {
            Kind::Count => (MetricType::Counter, None),
            Kind::Seconds => (MetricType::Counter, Some(&Unit::Seconds)),
            Kind::Gauge => (MetricType::Gauge, None),
            Kind::Times => (MetricType::Histogram, Some(&Unit::Seconds)),
            Kind::Sizes => (MetricType::Histogram, Some(&packets)),
            Kind::Facts => (MetricType::Info, None),
        };
        let mut encoder = to.encode_descriptor(self.name, self.help, unit, kind)?;
        for (values, value) in &samples.0 {
            let labels: Vec<_> = self.labels.iter().copied().zip(values.iter()).collect();
            if self.kind == Kind::Facts {
                encoder.encode_info(&labels)?;
                continue;
            }
            let mut sample = encoder.encode_family(&labels)?;
            match (value, self.kind) {
                (Value::Count(count), Kind::Gauge) => sample.encode_gauge(count)?,
                (Value::Count(count), _) => {
                    sample.encode_counter::<NoLabelSet, _, u64>(count, None)?
                }
                (Value::Real(figure), Kind::Gauge) => sample.encode_gauge(figure)?,
                (Value::Real(figure), _) => {
                    sample.encode_counter::<NoLabelSet, _, f64>(figure, None)?
                }
                (Value::Buckets(Buckets { sum, count, buckets }), _) => {
                    sample.encode_histogram::<NoLabelSet>(*sum, *count, buckets, None)?;
                }
            }
        }
        Ok(())
    }
}
