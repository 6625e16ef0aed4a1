//! `kind = "pcap"`: a capture read as if it arrived, another written with what leaves.

use std::fmt;
use std::path::PathBuf;

use rheostat_io::DeviceFacts;
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::convert::number::number;
use rheostat_settings::reader::convert::{choice, path};
use rheostat_settings::reader::{Table, Value};

use super::SimConfig;

/// A device made of two capture files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PcapConfig {
    /// The capture (pcap or pcapng) whose packets arrive. A run needs one; a configuration may leave
    /// it to the command line.
    pub input: Option<PathBuf>,
    /// The capture to write with the packets that leave; without it they are counted only.
    pub output: Option<PathBuf>,
    /// How fast the packets arrive.
    pub pace: Pace,
}

/// How fast a capture is played.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Pace {
    /// As fast as it is taken.
    #[default]
    Max,
    /// At this multiple of the recorded speed; 1 is as recorded. Between 0.001 and 1,000,000.
    Times(f64),
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pace::Max => f.write_str("as fast as possible"),
            Pace::Times(1.0) => f.write_str("at the recorded pace"),
            Pace::Times(factor) => write!(f, "at {factor} times the recorded pace"),
        }
    }
}

impl PcapConfig {
    /// The keys that only this kind has.
    pub(super) const KEYS: [&str; 3] = ["input", "output", "pace"];

    pub(super) fn facts(&self) -> DeviceFacts {
        DeviceFacts {
            reads_capture: true,
            comes_as_taken: self.pace == Pace::Max,
            ring_bytes: 1_024 * SimConfig::DESCRIPTOR,
            ..DeviceFacts::PLAYED
        }
    }

    pub(super) fn read(table: &mut Table<'_>, findings: &mut Findings) -> PcapConfig {
        PcapConfig {
            input: table.read("input", findings, path),
            output: table.read("output", findings, path),
            pace: table.read("pace", findings, pace).unwrap_or_default(),
        }
    }
}

fn pace(value: &Value<'_>, findings: &mut Findings) -> Option<Pace> {
    if value.is_text() {
        return choice(&[("max", Pace::Max), ("recorded", Pace::Times(1.0))])(value, findings);
    }
    number(0.001..=1e6)(value, findings).map(Pace::Times)
}
