//! The reference of configurations against their readers: same keys, and examples that are read.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use rheostat_control::{Config, Finding, Reference};
use rheostat_settings::declared::{Form, Setting};

use crate::registry;

/// The settings from a section to one of its keys.
type Trail<'r> = Vec<&'r Setting>;

fn paths(reference: &Reference) -> Vec<Trail<'_>> {
    fn add<'r>(above: &Trail<'r>, settings: &'r [Setting], paths: &mut Vec<Trail<'r>>) {
        for setting in settings {
            let mut path = above.clone();
            path.push(setting);
            paths.push(path.clone());
            add(&path, &setting.keys, paths);
        }
    }
    let mut paths = Vec::new();
    add(&Vec::new(), reference.sections(), &mut paths);
    paths
}

/// The lines with which alone a table has this key: those of its scope, and of its conditions, and of theirs.
fn conditions(setting: &Setting, beside: &[Setting]) -> Vec<String> {
    let own = setting.condition.into_iter().chain(setting.scope.as_deref());
    let own = own.filter_map(|lines| lines.split('`').next());
    let mut lines = Vec::new();
    for line in own {
        let key = line.split(" = ").next().unwrap_or_default();
        let other = beside.iter().find(|other| other.key == key);
        let value = if line.contains('…') {
            // A table whose keys depend on it.
            format!("{key} = {{ cid_length = 2 }}")
        } else {
            line.to_owned()
        };
        lines.push(value);
        for further in other.map(|other| conditions(other, beside)).into_iter().flatten() {
            let key = further.split(" = ").next().unwrap_or_default().to_owned();
            if !lines.iter().any(|line: &String| line.starts_with(&format!("{key} = "))) {
                lines.push(further);
            }
        }
    }
    let mut keys = BTreeSet::new();
    lines.retain(|line| keys.insert(line.split(" = ").next().unwrap_or_default().to_owned()));
    lines
}

/// Whether a table has the key of this line.
fn has(table: &Setting, line: &str) -> bool {
    table.keys.iter().any(|setting| line.starts_with(&format!("{} = ", setting.key)))
}

/// A configuration that has the last table of `path`, with `lines` in it, and what the tables above need for it: `above`, too.
fn text(path: &[&Setting], above: &[String], lines: &str) -> String {
    let mut text = String::new();
    let mut name = String::new();
    for (depth, table) in path.iter().enumerate() {
        let _ = write!(name, "{}{}", if depth == 0 { "" } else { "." }, table.key);
        let header = match table.form {
            Form::Tables => format!("[[{name}]]\n"),
            _ => format!("[{name}]\n"),
        };
        text += &header;
        if let Some(next) = path.get(depth + 1) {
            let of_table = above.iter().filter(|line| has(table, line));
            for line in conditions(next, &table.keys).iter().chain(of_table) {
                text += &format!("{line}\n");
            }
        }
    }
    text + lines
}

fn findings(text: &str) -> Vec<Finding> {
    match Config::parse(text, "reference", &registry::all()) {
        Ok((_, warnings)) => warnings.findings().to_vec(),
        Err(mistakes) => mistakes.findings().to_vec(),
    }
}

/// The words between backticks behind the last "are".
fn listed(help: &str) -> BTreeSet<String> {
    let (_, list) = help.rsplit_once(" are ").unwrap_or(("", help));
    list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn each_table_has_the_keys_that_its_reader_accepts() {
    let registry = registry::all();
    let reference = Reference::of(&registry);
    let tables: Vec<_> =
        paths(&reference).into_iter().filter(|path| path[path.len() - 1].is_table()).collect();
    assert!(tables.len() > 30, "{}", tables.len());
    for path in tables {
        let table = path[path.len() - 1];
        // Every scope is a table of its own: those of other scopes are refused by name, so they are known, too.
        let text = text(&path, &[], "no_such_key = 1\n");
        let found = findings(&text);
        let unknown = found.iter().find(|finding| finding.message().contains("`no_such_key`"));
        let unknown = unknown.unwrap_or_else(|| panic!("not refused in\n{text}{found:?}"));
        let accepted = listed(unknown.advice().unwrap_or_default());
        let declared: BTreeSet<String> =
            table.keys.iter().map(|setting| setting.key.to_owned()).collect();
        assert_eq!(declared, accepted, "declared (left), accepted (right) in\n{text}");
    }
}

#[test]
fn the_sections_are_those_that_a_configuration_may_have() {
    let registry = registry::all();
    let reference = Reference::of(&registry);
    let found = findings("[no_such_section]\n[serve]\n[chain]\n[function]\n");
    let unknown = found.iter().find(|finding| finding.message().contains("`no_such_section`"));
    let accepted = listed(unknown.and_then(Finding::advice).unwrap_or_default());
    let declared = reference.sections().iter().map(|section| section.key.to_owned()).collect();
    assert_eq!(accepted, declared);
}

#[test]
fn each_example_is_read() {
    let registry = registry::all();
    let reference = Reference::of(&registry);
    let (mut count, mut without) = (0, Vec::new());
    for path in paths(&reference) {
        let (setting, above) = path.split_last().expect("a section or a key");
        if setting.is_table() {
            continue;
        }
        let table = above[above.len() - 1];
        let (own, of_above): (Vec<_>, Vec<_>) =
            conditions(setting, &table.keys).into_iter().partition(|line| has(table, line));
        let conditions: String = own.iter().map(|line| format!("{line}\n")).collect();
        if setting.example.is_empty() {
            without.push(setting.key);
            continue;
        }
        let line = format!("{} = {}\n", setting.key, setting.example);
        let given = conditions.contains(&line);
        let text = text(above, &of_above, &(conditions + if given { "" } else { &line }));
        let found = findings(&text);
        let position = text.rfind(line.as_str()).expect("it was written");
        let on_line = |finding: &&Finding| {
            finding.is_mistake()
                && finding
                    .places()
                    .any(|place| (position..position + line.len()).contains(&place.start))
        };
        let about = found.iter().find(on_line);
        // Other devices, and settings of other tables, are not there.
        let is_alone = |finding: &&Finding| {
            [
                "no device is named",
                "on no device's link",
                "is not in the chain",
                "no packet is of the priority class",
            ]
            .iter()
            .any(|part| finding.message().contains(part))
        };
        if let Some(finding) = about.filter(|finding| !is_alone(finding)) {
            panic!("{}: {} in\n{text}", finding.key(), finding.message());
        }
        count += 1;
    }
    assert!(without.is_empty(), "{without:?} have no example");
    assert!(count > 150, "{count} examples");
}

#[test]
fn each_key_has_a_help_line_and_a_type() {
    let registry = registry::all();
    let reference = Reference::of(&registry);
    for entry in reference.entries() {
        let Setting { help, kind, .. } = entry.setting;
        assert!(!kind.is_empty() && !help.is_empty(), "{}", entry.name);
        let is_sentence = help.ends_with('.') || entry.setting.is_table();
        assert!(is_sentence, "{}: `{help}` does not end as a sentence", entry.name);
    }
}

#[test]
fn a_key_is_found_by_its_name_or_its_end_and_a_mistyped_one_has_near_names() {
    let registry = registry::all();
    let reference = Reference::of(&registry);
    let names = |key: &str| -> Result<Vec<String>, Vec<String>> {
        reference.find(key).map(|found| found.into_iter().map(|entry| entry.name).collect())
    };
    let one = |name: &str| Ok(vec![name.to_owned()]);
    assert_eq!(names("workers.lanes"), one("workers.lanes"));
    assert_eq!(names("lanes"), one("workers.lanes"));
    assert_eq!(names("[[function.lb.service]]"), one("function.lb.service"));
    assert_eq!(names("function.nat.forward[0].external"), one("function.nat.forward.external"));
    assert_eq!(names("serve.idle-timeout"), one("serve.idle_timeout"));
    let nearest = |key: &str| names(key).unwrap_err().into_iter().next();
    assert_eq!(nearest("function.nat.qota").as_deref(), Some("function.nat.quota"));
    assert_eq!(nearest("fnction.nat.quota").as_deref(), Some("function.nat.quota"));
    assert_eq!(names("lnaes"), Err(vec!["workers.lanes".to_owned()]));
    assert_eq!(names("colourless_green"), Err(Vec::new()));
    assert!(names("").is_err());
}

#[test]
fn the_page_of_the_documentation_is_what_is_declared() {
    let page = Reference::of(&registry::all()).to_markdown();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    if std::env::var_os("RHEO_BLESS").is_some() {
        fs::write(&file, &page).unwrap();
    }
    let written = fs::read_to_string(&file).unwrap_or_default();
    assert!(written == page, "docs/configuration.md is old: write it with RHEO_BLESS=1");
}
