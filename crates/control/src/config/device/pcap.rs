//! `kind = "pcap"`: a capture read as if it arrived, another written with what leaves.

use std::fmt;
use std::path::PathBuf;

use rheostat_io::DeviceFacts;
use rheostat_settings::declared::Form;
use rheostat_settings::declared::kind::{Kind, optional, path};
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::Value;
use rheostat_settings::reader::convert::choice;
use rheostat_settings::reader::convert::number::number;

use super::SimConfig;

rheostat_settings::settings! {
    /// A device made of two capture files.
    pub struct PcapConfig: Default {
        /// The capture (pcap or pcapng) whose packets arrive. A run needs one; a configuration may leave it to the command line.
        input: Option<PathBuf> = optional(path()), example("\"in.pcap\"");
        /// The capture to write with the packets that leave; without it they are counted only.
        output: Option<PathBuf> = optional(path()), example("\"out.pcap\"");
        /// How fast the packets arrive: max (as fast as they are taken), recorded, or a multiple of the recorded speed.
        pace: Pace = Kind::unshown(Form::Number, pace).noun("word or number").within("max, recorded, or 0.001 to 1000000"),
            default(Pace::Max), example("\"recorded\"");
    }
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
    pub(super) fn facts(&self) -> DeviceFacts {
        DeviceFacts {
            reads_capture: true,
            comes_as_taken: self.pace == Pace::Max,
            ring_bytes: 1_024 * SimConfig::DESCRIPTOR,
            ..DeviceFacts::PLAYED
        }
    }
}

fn pace(value: &Value<'_>, findings: &mut Findings) -> Option<Pace> {
    if value.is_text() {
        return choice(&[("max", Pace::Max), ("recorded", Pace::Times(1.0))])(value, findings);
    }
    number(0.001..=1e6)(value, findings).map(Pace::Times)
}
