//! The name of a project, and the names in its code that come from it.

use thiserror::Error;

use crate::app::App;

/// Letters of a name at most.
const LONGEST: usize = 64;

/// Names that Rust or cargo keep for themselves, beside `rheostat`, the name of the dependency.
const RESERVED: [&str; 45] = [
    "abstract", "alloc", "as", "async", "await", "become", "box", "break", "const", "continue",
    "core", "crate", "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen",
    "if", "impl", "in", "let", "loop", "match", "mod", "move", "mut", "pub", "ref", "return",
    "rheostat", "self", "static", "std", "struct", "super", "test", "trait", "true", "try", "type",
];
const RESERVED_TOO: [&str; 11] = [
    "unsafe", "use", "where", "while", "yield", "virtual", "macro", "override", "priv", "typeof",
    "unsized",
];

/// Why a project cannot have a name.
#[derive(Debug, Error)]
pub(crate) enum NameError {
    #[error(
        "`{0}` is no name for a project: write lower-case letters, digits and `-`, a letter first, 64 at most"
    )]
    Letters(String),
    #[error("`{0}` has a meaning of its own in Rust or for cargo; choose another name")]
    Reserved(String),
    #[error("there is a function or a service `{0}` already; choose another name")]
    Taken(String),
}

/// A name that a project, its function and its type can have.
pub(super) struct Name {
    project: String,
}

impl Name {
    /// `name`, if no function and no service of `app` has it.
    pub(super) fn new(name: &str, app: &App) -> Result<Name, NameError> {
        let is_letter = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '-');
        let is_word = name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.len() <= LONGEST
            && name.chars().all(is_letter)
            && name.split('-').all(|part| !part.is_empty());
        let name = name.to_owned();
        if !is_word {
            return Err(NameError::Letters(name));
        }
        if RESERVED.iter().chain(&RESERVED_TOO).any(|reserved| *reserved == name) {
            return Err(NameError::Reserved(name));
        }
        let functions = app.registry.functions.iter().map(|function| function.name);
        let services = app.registry.applications.iter().map(|application| application.name);
        if functions.chain(services).any(|taken| taken == name) {
            return Err(NameError::Taken(name));
        }
        Ok(Name { project: name })
    }

    /// `text` with the names in place of `{{name}}` (the project), `{{function}}`, `{{module}}`, `{{reason}}` and `{{Type}}`.
    pub(super) fn fill(&self, text: String) -> String {
        let module = self.project.replace('-', "_");
        let capital = |part: &str| {
            let (first, rest) = part.split_at(1.min(part.len()));
            first.to_uppercase() + rest
        };
        let name: String = self.project.split('-').map(capital).collect();
        text.replace("{{name}}", &self.project)
            .replace("{{function}}", &module)
            .replace("{{module}}", &module)
            .replace("{{reason}}", &module)
            .replace("{{Type}}", &name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_code_come_from_the_name_of_the_project() {
        let name = Name::new("syn-limit", &App::new()).expect("a good name");
        let text = name.fill("{{name}} {{function}} {{module}} {{Type}}".to_owned());
        assert_eq!(text, "syn-limit syn_limit syn_limit SynLimit");
    }

    #[test]
    fn bad_names_are_refused_with_the_reason() {
        let app = App::new();
        let refused = |name: &str| Name::new(name, &app).err().expect("refused").to_string();
        for name in ["", "-a", "a-", "a--b", "A", "1a", "a_b", "a/b", "..", "ä", &"a".repeat(65)] {
            assert!(refused(name).contains("lower-case letters"), "{name}");
        }
        for name in ["fn", "test", "rheostat", "unsafe"] {
            assert!(refused(name).contains("a meaning of its own"), "{name}");
        }
        for name in ["nat", "resp"] {
            assert!(refused(name).contains("a function or a service"), "{name}");
        }
        assert!(Name::new(&"a".repeat(64), &app).is_ok());
    }
}
