//! What a service came to.

use std::collections::BTreeMap;
use std::fmt;

use rheostat_io::ImpairMonitor;
use rheostat_observe::SCHEMA;
use rheostat_run::RunReport;
use rheostat_serve::registry::ApplicationReport;
use rheostat_serve::{RequestStage, RequestTimes, ServeControl, StageSummary, Totals};
use serde::Serialize;

/// The summary of a service that is over.
#[derive(Debug, Serialize)]
pub(super) struct ServeSummary {
    /// The version of the fields.
    schema: u32,
    /// Connections that were established.
    connections: u64,
    /// The counters of the service by the names that `rheo status` has.
    service: TotalsJson,
    /// The same beside the other fields.
    #[serde(flatten)]
    totals: TotalsJson,
    /// The counters of the MIB of TCP (RFC 4022).
    tcp: BTreeMap<&'static str, u64>,
    /// What a bad network before the device did, each way.
    #[serde(skip_serializing_if = "Option::is_none")]
    faults: Option<Faults>,
    /// The application's own part, by its name.
    #[serde(flatten)]
    application: BTreeMap<&'static str, serde_json::Value>,
    #[serde(skip)]
    application_text: String,
    /// The counters of the application, by their names.
    #[serde(rename = "application", skip_serializing_if = "BTreeMap::is_empty")]
    counters: BTreeMap<&'static str, u64>,
    /// Where the time of requests went.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_times: Option<TimesJson>,
    /// Packets that devices sent.
    packets_sent: u64,
    /// System calls that devices made to send them; left out where none counts any.
    #[serde(skip_serializing_if = "Option::is_none")]
    send_calls: Option<u64>,
    /// Packets dropped by lanes and devices, by reason.
    dropped: BTreeMap<&'static str, u64>,
    /// Invariants that did not hold.
    violations: Vec<String>,
}

/// Packets with faults, of both directions.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Faults {
    lost: u64,
    duplicated: u64,
    reordered: u64,
}

impl Faults {
    fn of(monitors: &[ImpairMonitor]) -> Faults {
        let mut faults = Faults::default();
        for counts in monitors.iter().flat_map(ImpairMonitor::counts) {
            faults.lost += counts.lost;
            faults.duplicated += counts.duplicated;
            faults.reordered += counts.reordered;
        }
        faults
    }
}

#[derive(Debug)]
struct TotalsJson(Totals);

impl Serialize for TotalsJson {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.named())
    }
}

/// Nanoseconds by stage: of sampled requests, and means of the slowest.
#[derive(Debug)]
struct TimesJson(RequestTimes);

impl Serialize for TimesJson {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let TimesJson(times) = self;
        let of = |summary: &StageSummary| {
            serde_json::json!({
                "mean_ns": summary.mean_ns,
                "p50_ns": summary.p50.as_nanos() as u64,
                "p99_ns": summary.p99.as_nanos() as u64,
                "p999_ns": summary.p999.as_nanos() as u64,
            })
        };
        let names = || RequestStage::ALL.map(RequestStage::name).into_iter();
        let stages: BTreeMap<_, _> = names().zip(times.stages.iter().map(of)).collect();
        let slowest: BTreeMap<_, _> = names().zip(times.slowest_means()).collect();
        let json = serde_json::json!({
            "sampled": times.sampled,
            "total": of(&times.total),
            "stages": stages,
            "slowest": times.slowest.len(),
            "slowest_mean_ns": slowest,
        });
        json.serialize(serializer)
    }
}

/// The JSON of an application's part; its text where that is none.
pub(super) fn value(part: &dyn ApplicationReport) -> serde_json::Value {
    let json = part.json();
    serde_json::from_str(&json).unwrap_or(serde_json::Value::String(json))
}

impl ServeSummary {
    pub(super) fn new(
        report: &RunReport,
        control: &ServeControl,
        faults: &[ImpairMonitor],
        (name, part): (&'static str, Option<Box<dyn ApplicationReport>>),
    ) -> ServeSummary {
        let dropped = report.last.dropped().map(|(reason, count)| (reason.name(), count)).collect();
        let totals = control.totals();
        let send_calls: u64 = report.last.devices.iter().map(|device| device.send_calls).sum();
        ServeSummary {
            schema: SCHEMA,
            connections: totals.accepted,
            service: TotalsJson(totals),
            totals: TotalsJson(totals),
            tcp: totals.mib().into_iter().collect(),
            faults: (!faults.is_empty()).then(|| Faults::of(faults)),
            application: part.iter().map(|part| (name, value(&**part))).collect(),
            application_text: part.as_ref().map_or_else(String::new, |part| part.text()),
            counters: control.metrics().iter().collect(),
            request_times: control.request_times().map(TimesJson),
            packets_sent: report.last.lanes.iter().map(|lane| lane.sent).sum(),
            send_calls: Some(send_calls).filter(|calls| *calls > 0),
            dropped,
            violations: report.violations.iter().map(ToString::to_string).collect(),
        }
    }

    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("names and numbers")
    }
}

impl fmt::Display for ServeSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, count) in self.totals.0.named().filter(|(_, count)| *count > 0) {
            writeln!(f, "{:>24}  {count}", name.replace('_', " "))?;
        }
        // By the names that `rheo status` has, too.
        for (name, count) in self.tcp.iter().filter(|(_, count)| **count > 0) {
            writeln!(f, "{name:>24}  {count}")?;
        }
        f.write_str(&self.application_text)?;
        for (name, count) in &self.counters {
            writeln!(f, "{:>24}  {count}", name.replace('_', " "))?;
        }
        if let Some(TimesJson(times)) = &self.request_times {
            writeln!(f, "{times}")?;
        }
        writeln!(f, "{:>24}  {}", "packets sent", self.packets_sent)?;
        if let Some(calls) = self.send_calls {
            writeln!(f, "{:>24}  {calls}", "system calls to send")?;
        }
        for (reason, count) in &self.dropped {
            writeln!(f, "{:>24}  {count} {reason}", "dropped")?;
        }
        if let Some(Faults { lost, duplicated, reordered }) = self.faults {
            writeln!(
                f,
                "{:>24}  {lost} lost, {duplicated} doubled, {reordered} reordered",
                "faults"
            )?;
        }
        let account = if self.violations.is_empty() { "ok" } else { "broken" };
        write!(f, "{:>24}  {account}", "account")
    }
}
