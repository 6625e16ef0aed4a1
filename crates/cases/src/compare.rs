//! Outcomes of a step beside the expected ones.

use rheostat_base::DropReason;

use crate::error::CaseError;
use crate::names::CaseNames;
use crate::packet::tell;
use crate::port::CasePort;
use crate::record;
use crate::script::{Expected, Script, ScriptStep};

/// Everything that came of a step.
#[derive(Debug)]
pub(crate) struct ComparisonOutcome {
    pub(crate) sent: Vec<(CasePort, Vec<u8>)>,
    pub(crate) dropped: Vec<DropReason>,
    /// Those that a monitor made, in words.
    pub(crate) records: Vec<String>,
}

/// Compares the outcome of a step with the expected one. `arrived` has the packets so far, with their lines.
///
/// # Errors
/// [`CaseError::Failed`] with the first difference; [`CaseError::Unreadable`] where a name stands for nothing.
pub(crate) fn compare(
    script: &Script,
    step: &ScriptStep,
    arrived: &[(usize, Vec<u8>)],
    names: &mut CaseNames,
    outcome: ComparisonOutcome,
) -> Result<(), CaseError> {
    let ComparisonOutcome { sent, dropped, records } = outcome;
    let mut got: Vec<(String, Option<Vec<u8>>)> = sent
        .into_iter()
        .map(|(port, bytes)| (format!("{} {}", port.name(), tell(&bytes)), Some(bytes)))
        .collect();
    got.extend(dropped.iter().map(|reason| (format!("drop {}", reason.name()), None)));
    got.extend(records.into_iter().map(|record| (record, None)));
    for (line, expected) in &step.expected {
        let wrong = |problem| CaseError::unreadable(&script.name, Some(*line), problem);
        let frame_of = |line: usize| {
            let frame = arrived.iter().find(|(sent, _)| *sent == line);
            let frame = frame.map(|(_, frame)| frame.clone());
            frame.ok_or_else(|| wrong(format!("no packet was sent in line {line}")))
        };
        let (text, bytes) = match expected {
            Expected::Same(port) => {
                let own = frame_of(step.line)?;
                (format!("{} {}", port.name(), tell(&own)), Some(own))
            }
            Expected::SameAs(port, earlier) => {
                let bytes = frame_of(*earlier)?;
                (format!("{} {}", port.name(), tell(&bytes)), Some(bytes))
            }
            Expected::Packet(port, packet) => {
                let on_port = format!("{} ", port.name());
                let mut found = None;
                for (at, (told, frame)) in got.iter().enumerate() {
                    let Some(frame) = frame.as_ref().filter(|_| told.starts_with(&on_port)) else {
                        continue;
                    };
                    if packet.matches(frame, names).map_err(wrong)? {
                        found = Some(at);
                        break;
                    }
                }
                match found {
                    Some(at) => {
                        got.remove(at);
                        continue;
                    }
                    None => (format!("{on_port}{}", packet.text(names)), None),
                }
            }
            Expected::Check(check) => {
                if check.holds(names).map_err(wrong)? {
                    continue;
                }
                return Err(CaseError::failed(
                    &script.name,
                    Some(*line),
                    check.text(),
                    check.value(names),
                ));
            }
            Expected::Record(words) => {
                let whole = got.iter().find(|(told, _)| record::says(told, words));
                (whole.map_or_else(|| format!("record {words}"), |(told, _)| told.clone()), None)
            }
            Expected::Drop(reason) => (format!("drop {reason}"), None),
        };
        let is_it = |(told, frame): &(String, Option<Vec<u8>>)| {
            *told == text && (bytes.is_none() || *frame == bytes)
        };
        let Some(at) = got.iter().position(is_it) else {
            let got: Vec<_> = got
                .into_iter()
                .map(|(told, frame)| match (&bytes, frame) {
                    (Some(bytes), Some(frame)) if told == text => {
                        format!("{told}, {}", difference(bytes, &frame))
                    }
                    _ => told,
                })
                .collect();
            let got = if got.is_empty() { "nothing".to_owned() } else { got.join(", ") };
            return Err(CaseError::failed(&script.name, Some(*line), text, got));
        };
        got.remove(at);
    }
    match got.first() {
        Some((told, _)) => {
            Err(CaseError::failed(&script.name, Some(step.line), "nothing more", told))
        }
        None => Ok(()),
    }
}

/// Where two frames differ that the words of a case cannot tell apart.
fn difference(expected: &[u8], got: &[u8]) -> String {
    match expected.iter().zip(got).position(|(a, b)| a != b) {
        Some(at) => format!("but byte {at} is {:#04x} and not {:#04x}", got[at], expected[at]),
        None => format!("but {} bytes and not {}", got.len(), expected.len()),
    }
}
