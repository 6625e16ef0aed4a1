//! Cases: packets in and packets expected, as text. `docs/cases.md` is the reference of the language.
//!
//! A case runs in virtual time on simulated devices, on one, two and four lanes, with and without the fast path; its outcome
//! is the same on each. It checks every packet that leaves, every drop with its reason, checksums, and that all buffers and
//! packets are accounted for.

mod chain;
mod compare;
mod control;
mod error;
mod family;
mod link;
mod names;
mod packet;
mod port;
mod record;
mod replay;
mod rig;
mod script;
mod subject;
mod topology;
mod way;

use std::fs;
use std::path::{Path, PathBuf};

use rheostat_base::Time;

pub use error::CaseError;
pub use replay::{
    Effect, LONGEST_PACKET, PacketDecision, Replay, ReplayError, flow as flow_of_frame,
};
pub use subject::{MakeChain, Subject};

use packet::PacketSpec;
use script::{Expected, Script};

/// A case that was read.
#[derive(Clone, Debug)]
pub struct Case {
    script: Script,
}

impl Case {
    /// Reads a case from text. Errors call it `name`.
    ///
    /// # Errors
    /// [`CaseError::Unreadable`] with the first line that is no line of a case.
    pub fn parse(name: &str, text: &str) -> Result<Case, CaseError> {
        Script::parse(name, text).map(|script| Case { script })
    }

    /// Reads a case from a file.
    ///
    /// # Errors
    /// [`CaseError::Unreadable`] when the file cannot be read, or is no case.
    pub fn load(path: &Path) -> Result<Case, CaseError> {
        let name = path.display().to_string();
        let text = fs::read_to_string(path)
            .map_err(|error| CaseError::unreadable(&name, None, error.to_string()))?;
        Case::parse(&name, &text)
    }

    /// Runs the case in every way: on one, two and four lanes, with all, most and no packets on the fast path; over IPv6 and
    /// on shared state, too, if it says so. Returns how many steps were taken.
    ///
    /// # Errors
    /// [`CaseError::Failed`] with the first expectation that does not hold; [`CaseError::Unreadable`] when the chain cannot
    /// be made, or `subject` has a chain of its own and the case has lines about one.
    pub fn run(&self, subject: &Subject<'_>) -> Result<usize, CaseError> {
        let variants = self.variants()?;
        let mut steps = 0;
        for way in way::all() {
            for (script, variant) in &variants {
                let counted = rig::run(script, subject, way);
                steps += counted.map_err(|error| error.in_way(way, variant))?;
            }
        }
        Ok(steps)
    }

    /// The case as it is written, and in the other forms that it states.
    fn variants(&self) -> Result<Vec<(Script, &'static str)>, CaseError> {
        let mut variants = vec![(self.script.clone(), "")];
        if self.script.also_ipv6 {
            variants.push((self.script.over_ipv6()?, "over IPv6"));
        }
        if self.script.also_shared {
            variants.push((self.script.on_shared_state(), "on shared state"));
        }
        Ok(variants)
    }

    /// The names of the reasons for which it expects packets to be dropped.
    pub fn drops(&self) -> impl Iterator<Item = &str> {
        let expected = self.script.steps.iter().flat_map(|step| &step.expected);
        expected.filter_map(|(_, expected)| match expected {
            Expected::Drop(reason) => Some(reason.as_str()),
            _ => None,
        })
    }
}

/// The Ethernet frame that the words of a case describe, such as `10.0.0.1:1000 > 198.51.100.1:80 tcp S seq 1`, and the
/// time of an `at TIME` in front of it.
///
/// # Errors
/// The mistake, for people, when the words describe none.
pub fn frame(words: &str) -> Result<(Option<Time>, Vec<u8>), String> {
    let words: Vec<&str> = words.split_whitespace().collect();
    match words[..] {
        ["at", time, ref packet @ ..] => {
            Ok((Some(script::parse_time(time)?), PacketSpec::parse(packet)?.build()?))
        }
        ref packet => Ok((None, PacketSpec::parse(packet)?.build()?)),
    }
}

/// A frame in the words of a case. Payloads are in it by their length alone.
pub fn words(frame: &[u8]) -> String {
    packet::tell(frame)
}

/// The files of cases that a path names: the file itself, or all `*.case` of a folder, in order.
///
/// # Errors
/// [`CaseError::Unreadable`] when a folder cannot be read, or has no case.
pub fn files(path: &Path) -> Result<Vec<PathBuf>, CaseError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let name = path.display().to_string();
    let wrong = |problem: String| CaseError::unreadable(&name, None, problem);
    let entries = fs::read_dir(path).map_err(|error| wrong(error.to_string()))?;
    let files = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut files: Vec<_> =
        files.collect::<Result<_, _>>().map_err(|error| wrong(error.to_string()))?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "case"));
    files.sort();
    match files.is_empty() {
        true => Err(wrong("the folder has no file that ends in `.case`".to_owned())),
        false => Ok(files),
    }
}
