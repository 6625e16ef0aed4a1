//! What drawing packets took that simulated NICs receive, in the summary.

use std::fmt;

use rheostat_io::SourceWork;
use serde::{Deserialize, Serialize};

/// The source of one simulated NIC whose packets a thread draws ahead. Its time is in no lane's load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SourceMetrics {
    /// The device.
    pub device: String,
    /// Packets drawn, those included that were due only after the end.
    pub drawn: u64,
    /// Packets due before the thread had drawn them, which lanes drew: work that is not theirs.
    pub late: u64,
    /// Processor time of the thread, in seconds.
    pub cpu_seconds: f64,
    /// Replies of the device's peer, those included that were due only after the end.
    #[serde(default)]
    pub replies: u64,
    /// Replies that arrived later than they were due, because the lane that sent the packet was interrupted.
    #[serde(default)]
    pub late_replies: u64,
}

impl SourceMetrics {
    /// The metrics of a device.
    pub fn of((device, work): &(String, SourceWork)) -> SourceMetrics {
        let SourceWork { drawn, late, cpu, replies, late_replies } = *work;
        let (device, cpu_seconds) = (device.clone(), cpu.as_secs_f64());
        SourceMetrics { device, drawn, late, cpu_seconds, replies, late_replies }
    }
}

/// A line for people.
impl fmt::Display for SourceMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SourceMetrics { device, drawn, late, cpu_seconds, replies, late_replies } = self;
        write!(f, "{device}: {drawn} packets drawn in {cpu_seconds:.3} s of CPU ({late} late)")?;
        if *late > 0 {
            f.write_str(": lanes drew these, which is in their load")?;
        }
        match replies {
            0 => Ok(()),
            _ => write!(f, "; {replies} replies ({late_replies} late)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_time_of_the_source_stands_apart_and_late_packets_are_told() {
        let cpu = Duration::from_millis(12);
        let work = SourceWork { drawn: 70, cpu, ..SourceWork::default() };
        let metrics = SourceMetrics::of(&("lan".to_owned(), work));
        assert_eq!(metrics.to_string(), "lan: 70 packets drawn in 0.012 s of CPU (0 late)");
        let late = SourceMetrics { late: 3, ..metrics.clone() }.to_string();
        assert!(late.ends_with("(3 late): lanes drew these, which is in their load"), "{late}");
        let answered = SourceMetrics { replies: 9, late_replies: 2, ..metrics.clone() }.to_string();
        assert!(answered.ends_with("(0 late); 9 replies (2 late)"), "{answered}");
        let json = serde_json::to_value(&metrics).unwrap();
        assert_eq!(json["cpu_seconds"], 0.012);
        assert_eq!(serde_json::from_value::<SourceMetrics>(json).unwrap(), metrics);
    }
}
