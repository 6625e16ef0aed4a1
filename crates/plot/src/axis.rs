//! What an axis shows.

use super::Unit;

/// An axis: what it is about, in which unit, and how values are spread along it.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What is shown, such as `latency of 95 % of the packets`.
    pub label: String,
    /// What its ticks count.
    pub unit: Unit,
    pub(super) kind: AxisKind,
    pub(super) from: Option<f64>,
}

/// How values are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AxisKind {
    /// Evenly.
    Linear,
    /// By their ratios; zeros have a place of their own at the end.
    Log,
    /// Shares by their number of nines: 90 %, 99 % and 99.9 % are evenly spaced.
    Nines,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: impl Into<String>, unit: Unit) -> Axis {
        Axis { label: label.into(), unit, kind: AxisKind::Linear, from: None }
    }

    /// A logarithmic axis. Zeros are drawn below its break, values below zero not at all.
    pub fn log(label: impl Into<String>, unit: Unit) -> Axis {
        Axis { label: label.into(), unit, kind: AxisKind::Log, from: None }
    }

    /// An axis of shares below 1 that gives the tail its room: as much from 90 to 99 % as from 99 to 99.9 %.
    pub fn nines(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), unit: Unit::Share, kind: AxisKind::Nines, from: None }
    }

    /// The axis begins there at the latest: at 0 for amounts, at 1 for ratios.
    #[must_use]
    pub fn from(mut self, value: f64) -> Axis {
        self.from = Some(value);
        self
    }
}
