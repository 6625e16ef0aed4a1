//! What commands print. Everything passes [`line!`], which lets no control character of a name, value or message from outside reach a
//! terminal; reports of configurations have colours of their own, and [`report`] for that.

use std::fmt::Arguments;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use rheostat_base::printable::printable_lines;
use rheostat_control::Report;

/// As `println!`, but without a panic when the reader has closed its end: then nothing is written.
#[macro_export]
macro_rules! out {
    ($($argument:tt)*) => {
        $crate::terminal::line(&mut std::io::stdout(), format_args!($($argument)*))
    };
}

/// As `eprintln!`, but a terminal that was closed, or a full disk, ends nothing.
#[macro_export]
macro_rules! err {
    ($($argument:tt)*) => {
        $crate::terminal::line(&mut std::io::stderr(), format_args!($($argument)*))
    };
}

/// Writes text and the end of its line, with control characters as escapes. JSON stays JSON of the same meaning.
pub fn line(to: &mut impl Write, text: Arguments<'_>) {
    let _ = writeln!(to, "{}", printable_lines(&text.to_string()));
}

/// Prints what was found in a configuration on standard error, in colours if that is a terminal.
pub(crate) fn report(report: &Report) {
    let mut stderr = io::stderr();
    let _ = writeln!(stderr, "{}", report.render(stderr.is_terminal()).trim_end());
}

/// Prints what is wrong with the command line, or the help that it asks for, and returns the exit status for it.
pub fn usage(error: &clap::Error) -> ExitCode {
    match error.use_stderr() {
        // Without colours: values of the command line are part of the text.
        true => line(&mut io::stderr(), format_args!("{}", error.render().to_string().trim_end())),
        false => {
            let _ = error.print();
        }
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_keeps_its_lines_and_no_escape_byte() {
        let mut printed = Vec::new();
        line(&mut printed, format_args!("device `{}`:\n  up", "a\u{1b}]0;x\u{7}"));
        assert_eq!(String::from_utf8(printed).unwrap(), "device `a\\u001b]0;x\\u0007`:\n  up\n");
    }

    #[test]
    fn json_stays_json_of_the_same_meaning() {
        let name = "a\u{1b}\u{7f}\u{9b}b\n";
        let mut printed = Vec::new();
        line(&mut printed, format_args!("{}", serde_json::json!({ "name": name })));
        let printed = String::from_utf8(printed).unwrap();
        assert!(!printed.trim_end().contains(char::is_control));
        let read: serde_json::Value = serde_json::from_str(&printed).unwrap();
        assert_eq!(read["name"], name);
    }
}
