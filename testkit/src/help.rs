//! The examples in the help of a program's commands: each fits a narrow terminal and pastes into a shell as one command that the
//! program accepts.

use clap::Command;

/// Columns of the narrowest terminal for which examples are written.
const COLUMNS: usize = 80;

/// Each command with the words that call it, the first without.
fn all_commands(root: Command) -> Vec<(String, Command)> {
    let mut root = root.term_width(COLUMNS);
    root.build();
    let mut all = Vec::new();
    let mut left = vec![(root.get_name().to_owned(), root)];
    while let Some((name, command)) = left.pop() {
        let visible = command.get_subcommands().filter(|command| !command.is_hide_set());
        left.extend(visible.map(|inner| (format!("{name} {}", inner.get_name()), inner.clone())));
        all.push((name, command));
    }
    all
}

/// The lines below `Examples:` of the help of a command, as it is printed.
fn examples(command: &Command) -> Vec<String> {
    let help = command.clone().term_width(COLUMNS).render_long_help().to_string();
    let below = help.lines().skip_while(|line| *line != "Examples:").skip(1);
    below.take_while(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// What a shell makes of the lines: words of each command up to a redirection or another command.
fn commands_of(lines: &[String]) -> Vec<Vec<String>> {
    let mut commands = Vec::new();
    let mut text = String::new();
    for line in lines.iter().map(|line| line.trim()).filter(|line| !line.starts_with('#')) {
        match line.strip_suffix('\\') {
            Some(part) => text += part,
            None => commands.push(words(&(std::mem::take(&mut text) + line))),
        }
    }
    assert_eq!(text, "", "the last line continues");
    commands
}

/// Words as a shell splits them, with single quotes as the only ones.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for letter in command.chars() {
        match letter {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            _ => words.last_mut().expect("there is one").push(letter),
        }
    }
    assert!(!is_quoted, "a quotation mark is missing: {command}");
    let is_next = |word: &String| [">", "|", "&&"].contains(&word.as_str());
    words.retain(|word| !word.is_empty());
    words.split(is_next).next().unwrap_or_default().to_vec()
}

/// Checks the examples of all commands of `root` that call `rheo`: how many there are, and what is wrong with them.
pub fn check(root: &Command) -> (usize, Vec<String>) {
    let (mut checked, mut faults) = (0, Vec::new());
    for (name, command) in all_commands(root.clone()) {
        let lines = examples(&command);
        let written = command.get_after_long_help().or(command.get_after_help());
        let written = written.map(ToString::to_string).unwrap_or_default();
        for line in &lines {
            let is_whole = written.lines().any(|own| own == line);
            if line.chars().count() > COLUMNS || !is_whole {
                faults.push(format!("{name}: longer than {COLUMNS} columns: {line}"));
            }
        }
        let commands = commands_of(&lines);
        for words in commands.iter().filter(|words| words[0] == "rheo") {
            checked += 1;
            if let Err(error) = root.clone().try_get_matches_from(words) {
                faults.push(format!("{name}: `{}`: {error}", words.join(" ")));
            }
        }
    }
    (checked, faults)
}

#[cfg(test)]
mod tests {
    use clap::Command as Program;

    use super::*;

    #[test]
    fn examples_are_split_as_a_shell_does() {
        let lines = ["  # said", "  rheo bench ab \\", "    --a 'x  y' > z", "  rheo run a | jq ."];
        let commands = commands_of(&lines.map(str::to_owned));
        assert_eq!(
            commands,
            [vec!["rheo", "bench", "ab", "--a", "x  y"], vec!["rheo", "run", "a"]]
        );
    }

    #[test]
    fn an_example_that_is_no_command_and_one_that_is_too_long_are_faults() {
        let long = format!("  rheo run {}", "x".repeat(80));
        let help = format!("Examples:\n  rheo run a\n  rheo walk a\n{long}");
        let run = Program::new("run").arg(clap::Arg::new("file"));
        let (checked, faults) = check(&Program::new("rheo").subcommand(run).after_help(help));
        assert_eq!(checked, 3);
        assert!(faults.iter().any(|fault| fault.contains("rheo walk a")), "{faults:?}");
        assert!(faults.iter().any(|fault| fault.contains("longer than 80")), "{faults:?}");
    }
}
