//! The configuration that a run goes by, as people read it.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use rheostat_control::Config;

/// The text of a configuration, and the command line whose options stay in force over it. A reload replaces the text.
#[derive(Debug, Default)]
pub(crate) struct ActiveConfig {
    command: String,
    /// Keys of the file that options of the command line replace.
    hidden: Vec<String>,
    text: Mutex<String>,
}

impl ActiveConfig {
    /// That of this process, started with `config`.
    pub(crate) fn of(config: &Config) -> ActiveConfig {
        let words: Vec<_> = std::env::args().map(|word| printable(&word)).collect();
        ActiveConfig {
            command: words.join(" "),
            hidden: config.hidden().to_vec(),
            text: Mutex::new(config.source().to_owned()),
        }
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
        if !self.command.is_empty() {
            writeln!(f, "# Started with: {}", self.command)?;
            writeln!(f, "# Options of the command line stay in force over the file.")?;
            if !self.hidden.is_empty() {
                writeln!(f, "# They replace {}.", self.hidden.join(", "))?;
            }
            writeln!(f)?;
        }
        f.write_str(&self.text.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_follows_the_command_line_in_comments() {
        let words = ["rheo", "run", "a b.toml", "x\ny = 1"].map(printable);
        let text = Mutex::new("[run]\nduration = \"3s\"\n".to_owned());
        let hidden = vec!["workers.lanes".to_owned()];
        let active = ActiveConfig { command: words.join(" "), hidden, text };
        let shown = active.to_string();
        assert!(
            shown.starts_with("# Started with: rheo run 'a b.toml' 'x\\ny = 1'\n# "),
            "{shown}"
        );
        assert!(shown.contains("\n# They replace workers.lanes.\n"), "{shown}");
        assert!(shown.ends_with("\n\n[run]\nduration = \"3s\"\n"), "{shown}");
    }
}
