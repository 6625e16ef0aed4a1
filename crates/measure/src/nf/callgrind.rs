//! Instructions per packet, as callgrind counts them.
//!
//! A row is run twice in a process of its own under `valgrind --tool=callgrind`, for few packets and for more. Both runs set up
//! alike and open the same flows, so what the longer one executes more is what its additional packets take. Callgrind
//! counts the instructions of all threads but the main one, and none of the kernel's. The main thread passes no packets: it calibrates
//! the clock, which takes another number of instructions each time, and waits. It needs no hardware counters.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use super::Spec;
use crate::error::MeasureError;

/// Packets of the shorter and of the longer run, beyond those that open the flows.
const PACKETS: [u64; 2] = [50_000, 300_000];

/// Counts the instructions of rows.
#[derive(Clone, Debug)]
pub struct Callgrind {
    /// The command `rheo` whose rows are counted.
    rheo: PathBuf,
    valgrind: PathBuf,
}

/// What a run came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CallgrindCount {
    instructions: u64,
    packets: u64,
}

impl Callgrind {
    /// Uses the `valgrind` that the search path names first.
    ///
    /// # Errors
    /// [`MeasureError::NoValgrind`] when there is none.
    pub fn new(rheo: PathBuf) -> Result<Callgrind, MeasureError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let valgrind = find(&path).ok_or(MeasureError::NoValgrind)?;
        Ok(Callgrind { rheo, valgrind })
    }

    /// Instructions per packet of a row, source and sink included. Takes about 50 s with 64,000 flows on a 2.5 GHz Xeon,
    /// most of it to open them, and 20 s with 1,000.
    pub(super) fn per_packet(&self, spec: &Spec) -> Result<f64, MeasureError> {
        let [short, long] = PACKETS.map(|packets| self.count(spec, packets));
        let (short, long) = (short?, long?);
        CallgrindCount::difference(short, long).ok_or_else(|| MeasureError::Callgrind {
            command: self.command_line(spec, PACKETS[1]),
            problem: format!("{long:?} is not more than {short:?}"),
        })
    }

    /// Runs a row for `packets` packets.
    fn count(&self, spec: &Spec, packets: u64) -> Result<CallgrindCount, MeasureError> {
        let failed = |problem: String| MeasureError::Callgrind {
            command: self.command_line(spec, packets),
            problem,
        };
        let folder = tempfile::Builder::new().prefix("rheo-callgrind-").tempdir()?;
        let counts = folder.path().join("counts");
        let output = Command::new(&self.valgrind)
            .args(["--tool=callgrind", "--fair-sched=try", "--separate-threads=yes"])
            .arg(option("--callgrind-out-file=", &counts))
            .arg(&self.rheo)
            .args(arguments(spec, packets))
            .stdin(Stdio::null())
            .output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(failed(format!("{}: {}", output.status, last_lines(&said))));
        }
        let passed = String::from_utf8_lossy(&output.stdout);
        let packets = packets_passed(&passed)
            .ok_or_else(|| failed(format!("it does not state its packets: {}", passed.trim())))?;
        let instructions = workers_total(folder.path())?.map_err(failed)?;
        Ok(CallgrindCount { instructions, packets })
    }

    fn command_line(&self, spec: &Spec, packets: u64) -> String {
        format!("{} {}", self.rheo.display(), arguments(spec, packets).join(" "))
    }
}

/// The arguments with which `rheo` runs a row for `packets` packets.
fn arguments(spec: &Spec, packets: u64) -> Vec<String> {
    spec.arguments().into_iter().chain(["--packets".into(), packets.to_string()]).collect()
}

impl CallgrindCount {
    /// Instructions per packet of what `long` has more than `short`.
    fn difference(short: CallgrindCount, long: CallgrindCount) -> Option<f64> {
        let instructions = long.instructions.checked_sub(short.instructions)?;
        let packets = long.packets.checked_sub(short.packets).filter(|packets| *packets > 0)?;
        Some(instructions as f64 / packets as f64)
    }
}

/// The first file named `valgrind` in the folders of a search path.
fn find(path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path).map(|folder| folder.join("valgrind")).find(|file| file.is_file())
}

fn option(name: &str, value: &Path) -> std::ffi::OsString {
    let mut option = std::ffi::OsString::from(name);
    option.push(value);
    option
}

/// What `rheo bench nf --packets` prints for its one row.
fn packets_passed(output: &str) -> Option<u64> {
    output.lines().find_map(|line| line.strip_prefix("packets: ")?.trim().parse().ok())
}

/// The instructions of all threads but the main one, from a folder with a file for each: `counts-01`, that of the main thread, and on.
fn workers_total(folder: &Path) -> io::Result<Result<u64, String>> {
    let mut sum = None;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let thread = name.strip_prefix("counts-").and_then(|number| number.parse::<u32>().ok());
        if thread.is_none_or(|number| number == MAIN_THREAD) {
            continue;
        }
        match total(&fs::read_to_string(&path)?) {
            Some(count) => sum = Some(sum.unwrap_or(0) + count),
            None => return Ok(Err(format!("callgrind's file {name} has no total"))),
        }
    }
    Ok(sum.ok_or_else(|| "callgrind counted no thread but the main one".to_owned()))
}

/// The number that callgrind gives the first thread.
const MAIN_THREAD: u32 = 1;

/// The instructions in a file of callgrind's (Callgrind Format Specification, "totals" or, in older versions, "summary").
fn total(counts: &str) -> Option<u64> {
    let of =
        |name| counts.lines().rev().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    of("totals:").or_else(|| of("summary:"))
}

fn last_lines(said: &str) -> String {
    let lines: Vec<&str> = said.trim().lines().collect();
    lines[lines.len().saturating_sub(8)..].join("\n")
}

#[cfg(test)]
mod tests {
    //! Timed: processes.

    use std::os::unix::fs::PermissionsExt;

    use rheostat_traffic::Distribution;

    use super::*;
    use crate::memory::{FrameSize, SourceKind};
    use crate::nf::{ChainKind, SHARDS, Selection};

    fn spec() -> Spec {
        let selection = Selection {
            chains: vec![ChainKind::FirewallNat],
            flows: vec![64_000],
            distributions: vec![Distribution::Zipf(1.1)],
            sizes: vec![FrameSize::Smallest],
            sources: vec![SourceKind::Replay],
            new_flow_shares: vec![0.0],
            lanes: vec![2],
            shards: vec![SHARDS],
            seed: 1,
        };
        selection.specs()[0]
    }

    /// In place of valgrind: a script, which knows where to write its counts from its arguments.
    fn instead_of_valgrind(folder: &Path, script: &str) -> Callgrind {
        let valgrind = folder.join("valgrind");
        fs::write(
            &valgrind,
            format!(
                "#!/bin/sh\nfor word; do case $word in --callgrind-out-file=*) \
            out=${{word#*=}};; esac; last=$word; done\n{script}\n"
            ),
        )
        .unwrap();
        fs::set_permissions(&valgrind, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find(folder.as_os_str()).as_deref(), Some(&*valgrind));
        Callgrind { rheo: "rheo".into(), valgrind }
    }

    #[test]
    fn what_both_runs_execute_cancels() {
        let folder = tempfile::tempdir().unwrap();
        // The main thread does not count. Two others execute 9 million to set up and 321 for each packet, and the longer run passes
        // some more than requested.
        let callgrind = instead_of_valgrind(
            folder.path(),
            "passed=$((last + last / 1000))\n\
             printf 'totals: %s\\n' $((7777 * passed)) > \"$out-01\"\n\
             printf 'events: Ir\\n\\ntotals: %s\\n' $((9000000 + 300 * passed)) > \"$out-02\"\n\
             printf 'events: Ir\\n\\ntotals: %s\\n' $((21 * passed)) > \"$out-03\"\n\
             echo \"packets: $passed\"",
        );
        assert_eq!(callgrind.per_packet(&spec()).unwrap(), 321.0);
    }

    #[test]
    fn a_run_that_fails_or_says_nothing_gives_no_figure() {
        let folder = tempfile::tempdir().unwrap();
        for (script, problem) in [
            ("echo 'nothing left' >&2; exit 3", "exit status: 3: nothing left"),
            ("echo hello", "it does not state its packets: hello"),
            ("echo 'packets: 7'; echo 'events: Ir' > \"$out-02\"", "counts-02 has no total"),
            ("echo 'packets: 7'; echo 'totals: 9' > \"$out-01\"", "no thread but the main one"),
            ("echo 'packets: 7'; echo 'totals: 9' > \"$out-02\"", "is not more than"),
        ] {
            let callgrind = instead_of_valgrind(folder.path(), script);
            let error = callgrind.per_packet(&spec()).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
            assert!(error.contains("`rheo bench nf --chain fw-nat"), "{error}");
        }
    }

    #[test]
    fn no_valgrind_is_found_where_there_is_none() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(find(folder.path().as_os_str()), None);
        // A folder is no program.
        fs::create_dir(folder.path().join("valgrind")).unwrap();
        assert_eq!(find(folder.path().as_os_str()), None);
    }

    #[test]
    fn totals_are_read_in_both_forms() {
        assert_eq!(total("events: Ir\nsummary: 12\n\ntotals: 345\n"), Some(345));
        assert_eq!(total("events: Ir\nsummary: 12\n"), Some(12));
        assert_eq!(total("events: Ir\n"), None);
    }

    #[test]
    fn a_row_is_asked_for_by_the_options_of_the_command() {
        let words = "bench nf --chain fw-nat --flows 64000 --spread zipf-1.1 --size 64 --source replay --new 0 --lanes 2 \
                     --packets 5000";
        assert_eq!(arguments(&spec(), 5_000).join(" "), words);
    }
}
