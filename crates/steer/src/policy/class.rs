//! Classes of traffic, and what lanes measure of them.

use std::fmt;
use std::time::Duration;

/// A class of traffic. Priority flows never leave their working lane and are served first within a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// What the configuration selects for a low latency.
    Priority,
    /// All other traffic.
    Regular,
}

impl Class {
    /// All classes, by [`Class::index`].
    pub const ALL: [Class; 2] = [Class::Priority, Class::Regular];

    /// Its place in figures by class.
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Class::Priority => "priority",
            Class::Regular => "regular",
        })
    }
}

/// What one lane measured of the packets of one class over the last period.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClassLoad {
    /// Packets processed, sampled or not.
    pub packets: u64,
    /// CA²: the squared coefficient of variation of the times between arrivals.
    pub arrival_cv2: f64,
    /// CS²: that of the times packets take.
    pub service_cv2: f64,
    /// T: the mean time a packet takes.
    pub service: Duration,
    /// How long packets waited; `None` where arrivals are unknown.
    pub waits: Option<Waits>,
}

impl ClassLoad {
    /// Whether both variations are numbers that variations can be.
    pub(super) fn is_sound(&self) -> bool {
        let sound = |cv2: f64| cv2.is_finite() && cv2 >= 0.0;
        sound(self.arrival_cv2) && sound(self.service_cv2)
    }
}

/// How long sampled packets of one class waited in front of one lane, from arrival to the start of processing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// How many were sampled.
    pub samples: u64,
    /// Their mean wait.
    pub mean: Duration,
    /// The wait at the percentile of the objectives.
    pub tail: Duration,
}

/// What all lanes measured, by lane, then by class. `None` where a class had no packets.
pub type ClassLoads = Vec<[Option<ClassLoad>; Class::ALL.len()]>;
