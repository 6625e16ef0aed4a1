//! `rheo new`: the project it writes, and what it refuses. `.ci/external` builds and tests such a project.
//!
//! Timed: processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn new(folder: &Path, arguments: &[&str]) -> Output {
    let mut rheo = Command::new(env!("CARGO_BIN_EXE_rheo"));
    rheo.current_dir(folder).arg("new").args(arguments).output().expect("rheo starts")
}

/// All files below `folder`.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    let inside = |path: PathBuf| if path.is_dir() { files(&path) } else { vec![path] };
    entries.flat_map(inside).collect()
}

#[test]
fn a_project_has_its_names_and_depends_on_the_checkout() {
    let folder = tempfile::tempdir().unwrap();
    let output = new(folder.path(), &["function", "syn-limit"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("cd syn-limit && cargo test"));
    let project = folder.path().join("syn-limit");
    let read = |file: &str| fs::read_to_string(project.join(file)).expect(file);
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let dependency = format!("rheostat = {{ path = \"{}\" }}", checkout.display());
    assert!(read("Cargo.toml").contains(&dependency), "{}", read("Cargo.toml"));
    assert!(read("src/main.rs").contains(".function::<syn_limit::SynLimit>(\"syn_limit\")"));
    assert!(read("src/syn_limit.rs").contains("impl FromSettings for SynLimit"));
    assert!(read("syn-limit.toml").contains("[function.syn_limit]"));
    assert!(read("tests/configuration.rs").contains("CARGO_BIN_EXE_syn-limit"));
    assert!(read("README.md").starts_with("# syn-limit\n"));
    assert_eq!(read("Cargo.lock"), fs::read_to_string(checkout.join("Cargo.lock")).unwrap());
    for file in files(&project) {
        let text = fs::read_to_string(&file).unwrap();
        assert!(!text.contains("{{"), "{} has a placeholder", file.display());
    }
}

#[test]
fn a_service_has_its_names_and_no_placeholder() {
    let folder = tempfile::tempdir().unwrap();
    assert!(new(folder.path(), &["service", "line-count"]).status.success());
    let project = folder.path().join("line-count");
    let read = |file: &str| fs::read_to_string(project.join(file)).expect(file);
    assert!(read("src/main.rs").contains(".application(\"line_count\", || line_count::LineCount)"));
    assert!(read("line-count.toml").contains("service = \"line_count\""));
    for file in files(&project) {
        let text = fs::read_to_string(&file).unwrap();
        assert!(!text.contains("{{"), "{} has a placeholder", file.display());
    }
}

#[test]
fn a_project_can_depend_on_a_commit() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["function", "quota", "--rheostat", "https://example.org/rheostat.git#1a2b3c"];
    assert!(new(folder.path(), &arguments).status.success());
    let manifest = fs::read_to_string(folder.path().join("quota/Cargo.toml")).unwrap();
    let dependency = "{ git = \"https://example.org/rheostat.git\", rev = \"1a2b3c\" }";
    assert!(manifest.contains(dependency), "{manifest}");
}

#[test]
fn what_cannot_be_written_is_refused_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("quota")).unwrap();
    fs::write(folder.path().join("quota/own.rs"), "kept").unwrap();
    for (arguments, expected) in [
        (&["function", "quota"][..], "`quota` exists"),
        (&["function", "../quota"], "is no name for a project"),
        (&["function", "Quota"], "is no name for a project"),
        (&["function", "match"], "a meaning of its own"),
        (&["function", "firewall"], "a function or a service `firewall` already"),
        (&["service", "http"], "a function or a service `http` already"),
        (&["function", "own", "--rheostat", "/nowhere"], "is no checkout of rheostat"),
        (&["function", "own", "--rheostat", "https://example.org/r"], "write URL#REV"),
    ] {
        let output = new(folder.path(), arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.starts_with("error: ") && errors.contains(expected), "{errors}");
    }
    assert_eq!(files(folder.path()), [folder.path().join("quota/own.rs")]);
}
