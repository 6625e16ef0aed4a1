//! The configuration that a run goes by, as people read it.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rheostat_control::Config;

/// The text of a configuration, and the command line whose options stay in force over it. A reload replaces the text.
#[derive(Debug, Default)]
pub(crate) struct ActiveConfig {
    command: String,
    file: Mutex<ActiveFile>,
}

/// The file in force.
#[derive(Debug, Default)]
struct ActiveFile {
    /// Keys of the file that options of the command line replace.
    hidden: Vec<String>,
    text: String,
}

impl ActiveConfig {
    /// That of this process, started with `config`.
    pub(crate) fn of(config: &Config) -> ActiveConfig {
        let words: Vec<_> = std::env::args().map(|word| printable(&word)).collect();
        ActiveConfig { command: words.join(" "), file: Mutex::new(ActiveFile::of(config)) }
    }

    /// `config` has taken the place of the one before.
    pub(crate) fn replace(&self, config: &Config) {
        *self.file() = ActiveFile::of(config);
    }

    fn file(&self) -> MutexGuard<'_, ActiveFile> {
        // Whole even after a thread panicked with it.
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ActiveFile {
    fn of(config: &Config) -> ActiveFile {
        ActiveFile { hidden: config.hidden().to_vec(), text: config.source().to_owned() }
    }
}

/// A word of a command line in one line, in quotes where a shell needs some.
fn printable(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,@%+[]".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.escape_debug()),
    }
}

impl fmt::Display for ActiveConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file();
        if !self.command.is_empty() {
            writeln!(f, "# Started with: {}", self.command)?;
            writeln!(f, "# Options of the command line stay in force over the file.")?;
            if !file.hidden.is_empty() {
                writeln!(f, "# They replace {}.", file.hidden.join(", "))?;
            }
            writeln!(f)?;
        }
        f.write_str(&file.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_follows_the_command_line_in_comments() {
        let words = ["rheo", "run", "a b.toml", "x\ny = 1"].map(printable);
        let text = "[run]\nduration = \"3s\"\n".to_owned();
        let file = ActiveFile { hidden: vec!["workers.lanes".to_owned()], text };
        let active = ActiveConfig { command: words.join(" "), file: Mutex::new(file) };
        let shown = active.to_string();
        assert!(
            shown.starts_with("# Started with: rheo run 'a b.toml' 'x\\ny = 1'\n# "),
            "{shown}"
        );
        assert!(shown.contains("\n# They replace workers.lanes.\n"), "{shown}");
        assert!(shown.ends_with("\n\n[run]\nduration = \"3s\"\n"), "{shown}");
    }
}
