//! What is said about wrong configurations: for each `tests/mistakes/*.toml`, the report beside it.
//! With `RHEO_BLESS` set, the reports are written instead of compared; read the difference then.

use std::fs;
use std::path::{Path, PathBuf};

use rheostat_control::Config;

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
        let said = match Config::parse(&text, name) {
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
