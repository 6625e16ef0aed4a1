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
}

impl SourceMetrics {
    /// The metrics of a device.
    pub fn of((device, work): &(String, SourceWork)) -> SourceMetrics {
        let SourceWork { drawn, late, cpu } = *work;
        SourceMetrics { device: device.clone(), drawn, late, cpu_seconds: cpu.as_secs_f64() }
    }
}

/// A line for people.
impl fmt::Display for SourceMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SourceMetrics { device, drawn, late, cpu_seconds } = self;
        write!(
            f,
            "{device}: {drawn} packets drawn in {cpu_seconds:.3} s of CPU, {late} of them late"
        )?;
        match late {
            0 => Ok(()),
            _ => f.write_str(": lanes drew these, which is in their load"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_time_of_the_source_stands_apart_and_late_packets_are_told() {
        let work = SourceWork { drawn: 70, late: 0, cpu: Duration::from_millis(12) };
        let metrics = SourceMetrics::of(&("lan".to_owned(), work));
        assert_eq!(metrics.to_string(), "lan: 70 packets drawn in 0.012 s of CPU, 0 of them late");
        let late = SourceMetrics { late: 3, ..metrics.clone() }.to_string();
        assert!(
            late.ends_with("3 of them late: lanes drew these, which is in their load"),
            "{late}"
        );
        let json = serde_json::to_value(&metrics).unwrap();
        assert_eq!(json["cpu_seconds"], 0.012);
        assert_eq!(serde_json::from_value::<SourceMetrics>(json).unwrap(), metrics);
    }
}
