//! A reload: another configuration for a running instance.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

/// The longest configuration that a client may send, in bytes.
pub const LONGEST_CONFIGURATION: u64 = 16 << 20;

/// Which configuration, and whether it is to be in force.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReloadRequest {
    /// The configuration follows the line of the request, as it is in its file; without it, the instance reads its own file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<SentFile>,
    /// Whether it is only checked and compared.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// A file whose text a client sends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SentFile {
    /// Its name, for messages.
    pub name: String,
    /// Its length in bytes, [`LONGEST_CONFIGURATION`] at most: so many follow the line.
    pub bytes: u64,
}

/// What came of a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReloadResult {
    /// The configuration is in force on all lanes.
    Applied,
    /// Nothing in it differs from the one in force.
    Unchanged,
    /// It is wrong, or has changes that need a new run: nothing has changed.
    Refused,
    /// It is in force, but a lane had not applied it in time.
    Pending,
}

impl ReloadResult {
    /// All there are.
    pub const ALL: [ReloadResult; 4] = [
        ReloadResult::Applied,
        ReloadResult::Unchanged,
        ReloadResult::Refused,
        ReloadResult::Pending,
    ];

    /// Whether the instance does what its file says.
    pub fn is_success(self) -> bool {
        matches!(self, ReloadResult::Applied | ReloadResult::Unchanged)
    }
}

impl fmt::Display for ReloadResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ReloadResult::Applied => "applied",
            ReloadResult::Unchanged => "unchanged",
            ReloadResult::Refused => "refused",
            ReloadResult::Pending => "pending",
        })
    }
}

/// A reload that was carried out, or would be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reloaded {
    /// The file.
    pub file: String,
    /// How many times the configuration of the instance has changed since its start.
    pub generation: u64,
    /// What has changed; with a dry run, what would change.
    pub changes: Vec<ChangedKey>,
    /// What has changed in the file and has no effect: flags of the command line that the instance was started with hide it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<ChangedKey>,
    /// Warnings about the configuration, as `rheo check` prints them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub warnings: String,
    /// Whether nothing was to change.
    pub dry_run: bool,
    /// Seconds from the request until the configuration was in force on all lanes.
    pub seconds: f64,
}

/// A key of the configuration that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedKey {
    /// The key with its sections.
    pub key: String,
    /// The difference in words.
    pub text: String,
    /// The old value, where it is one value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The new value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// New items, where it is a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<usize>,
    /// Items that are gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<usize>,
    /// Items that have another place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<usize>,
}

/// The configuration of an instance, and its reloads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConfigState {
    /// How many times it has changed since the start.
    pub generation: u64,
    /// Reloads by what came of them.
    pub reloads: BTreeMap<ReloadResult, u64>,
    /// The last reload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<LastReload>,
}

/// The last reload of an instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LastReload {
    /// When it ended, in seconds since 1970 (UTC).
    pub time: f64,
    /// What came of it.
    pub result: ReloadResult,
    /// What has changed, or why nothing has.
    pub message: String,
}

impl ConfigState {
    /// Whether the instance does what its file said at the last reload.
    pub fn is_current(&self) -> bool {
        self.last.as_ref().is_none_or(|last| last.result.is_success())
    }

    /// Notes a reload that ended at `time`.
    pub fn note(&mut self, result: ReloadResult, message: String, time: SystemTime) {
        *self.reloads.entry(result).or_default() += 1;
        let time = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        self.last = Some(LastReload { time, result, message });
    }
}

impl fmt::Display for ConfigState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "generation {}", self.generation)?;
        let Some(LastReload { time, result, message }) = &self.last else { return Ok(()) };
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let ago = now.saturating_sub(Duration::from_secs_f64(time.max(0.0))).as_secs();
        // Reports of mistakes have many lines.
        let first = message.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let colon = if first.is_empty() { "" } else { ": " };
        write!(f, ", last reload {result} {ago} s ago{colon}{first}")
    }
}

/// What was reloaded, for people: a line for each change.
impl fmt::Display for Reloaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.changes.as_slice() {
            [] => write!(f, "{}: nothing has changed", self.file)?,
            changes => {
                let would = if self.dry_run { "would change" } else { "changed" };
                let count = changes.len();
                let s = if count == 1 { "" } else { "s" };
                write!(f, "{}: {count} key{s} {would}", self.file)?;
            }
        }
        for change in &self.changes {
            write!(f, "\n  {}", change.text)?;
        }
        for hidden in &self.hidden {
            write!(f, "\n  no effect, a flag of the command line hides it: {}", hidden.text)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_current_until_a_reload_is_refused() {
        let mut state = ConfigState::default();
        assert!(state.is_current());
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(7);
        state.note(ReloadResult::Refused, "\nx.toml: 1 mistake\n...".to_owned(), at);
        assert!(!state.is_current());
        assert!(state.to_string().ends_with("s ago: x.toml: 1 mistake"), "{state}");
        state.note(ReloadResult::Unchanged, String::new(), at);
        assert!(state.is_current());
        let json = serde_json::to_value(&state).unwrap();
        assert_eq!(json["reloads"], serde_json::json!({ "refused": 1, "unchanged": 1 }));
        assert_eq!(json["last"]["time"], 7.0);
    }
}
