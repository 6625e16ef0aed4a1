//! The reference as a page of the documentation.

use std::fmt::Write as _;

use rheostat_settings::declared::{Form, Setting};

use super::Reference;
use crate::in_place::InPlace;

const HEAD: &str = "# Configuration

<!-- Written by `RHEO_BLESS=1 cargo test -p rheostat-control reference`; edit the declarations in the code instead. -->

Every section of a configuration, and every key with its type, its default and its meaning. `rheo check --explain KEY` prints the \
same for one key or section. A key without a default may be left out, unless it is required. A running instance changes the keys with \
`in place` by `rheo reload`; for the others it takes a new run. [How to change a running configuration](reload.md) shows both.
";

impl Reference {
    /// The page.
    pub fn to_markdown(&self) -> String {
        let mut page = HEAD.to_owned();
        for section in &self.sections {
            write_table(&mut page, section.key, section);
        }
        page
    }
}

fn write_table(page: &mut String, name: &str, table: &Setting) {
    let header = match table.form {
        Form::Tables => format!("[[{name}]]"),
        _ => format!("[{name}]"),
    };
    let mut help = table.help.to_owned();
    help[..1].make_ascii_uppercase();
    let stop = if help.ends_with('.') { "" } else { "." };
    let only = table.conditions().map_or_else(String::new, |only| format!(" Only with {only}."));
    let _ = write!(page, "\n## `{header}`\n\n{help}{stop}{only}\n");
    let (tables, keys): (Vec<_>, Vec<_>) = table.keys.iter().partition(|key| key.is_table());
    if !keys.is_empty() {
        page.push_str("\n| key | type | default | change | meaning |\n|---|---|---|---|---|\n");
    }
    for key in keys {
        let kind = match &key.bounds {
            Some(bounds) => format!("{}: {bounds}", key.kind),
            None => key.kind.clone(),
        };
        let default = match key.shown_default() {
            _ if key.is_required => "required".to_owned(),
            Some(default) => format!("`{default}`"),
            None => String::new(),
        };
        let change = match InPlace::of(&format!("{name}.{}", key.key)) {
            Some(InPlace::Yes) => "in place",
            _ => "new run",
        };
        let only = key.conditions().map_or_else(String::new, |only| format!(" Only with {only}."));
        let example = match (key.is_required || key.default.is_none(), key.example.as_str()) {
            (true, example) if !example.is_empty() && key.form != Form::Switch => {
                format!(" Such as `{example}`.")
            }
            _ => String::new(),
        };
        let meaning = format!("{}{only}{example}", key.help);
        let cell = |text: &str| text.replace('|', "\\|");
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {change} | {} |",
            key.key,
            cell(&kind),
            cell(&default),
            cell(&meaning)
        );
    }
    for inner in tables {
        write_table(page, &format!("{name}.{}", inner.key), inner);
    }
}
