//! What is said about wrong configurations: for each `tests/mistakes/*.toml`, the report beside it.
//! With `RHEO_BLESS` set, the reports are written instead of compared; read the difference then.

use std::fs;
use std::path::{Path, PathBuf};

use rheostat_control::Config;

use crate::registry;

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mistakes");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|e| e == "toml")).collect();
    files.sort();
    files
}

#[test]
fn every_mistake_is_told_with_its_place_and_fix() {
    assert!(files().len() >= 10, "the files have gone");
    for file in files() {
        let text = fs::read_to_string(&file).unwrap();
        let name = file.file_name().unwrap().to_str().unwrap();
        let said = match Config::parse(&text, name, &registry::all()) {
            Err(report) => report.render(false),
            Ok((_, warnings)) => panic!("{name} passed with {warnings}"),
        };
        let beside = file.with_extension("txt");
        if std::env::var_os("RHEO_BLESS").is_some() {
            fs::write(&beside, &said).unwrap();
        }
        let expected = fs::read_to_string(&beside).unwrap();
        assert_eq!(said, expected, "{name}: said (left) is not what {} has", beside.display());
    }
}

#[test]
fn a_wrong_user_is_no_mistake_of_the_group_beside_it() {
    let messages = |text: &str| {
        let report = Config::parse(text, "run.toml", &registry::all()).unwrap_err();
        let about = report.findings().iter().filter(|finding| finding.key().starts_with("run"));
        about.map(|finding| finding.message().to_owned()).collect::<Vec<_>>()
    };
    let wrong = messages("[run]\nuser = \"a user\"\ngroup = \"rheo\"\n");
    assert!(wrong.len() == 1 && wrong[0].contains("`user`"), "{wrong:?}");
    let alone = messages("[run]\ngroup = \"rheo\"\n");
    assert_eq!(alone, ["`group` has a meaning with `user = \"rheo\"` only"]);
}

#[test]
fn a_report_in_colours_has_no_control_character_of_the_file() {
    let hostile = "a\u{1b}]0;owned\u{7}\u{9b}2Jb";
    let escaped = r"a\u001b]0;owned\u0007b";
    for text in [
        format!("name = \"{hostile}\"\n"),
        format!("[[device]]\nname = \"{escaped}\"\nkind = \"{escaped}\"\n"),
        format!("[\"{escaped}\"]\n\"{escaped}\" = 1\n"),
    ] {
        let report = Config::parse(&text, hostile, &registry::all()).unwrap_err();
        let shown = report.render(true);
        assert!(!shown.contains("\u{1b}]") && !shown.contains(['\u{7}', '\u{9b}']), "{shown:?}");
        assert!(!report.render(false).contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
        // Programs get the name as it is.
        assert_eq!(report.file(), hostile);
    }
}
