//! Commands of the laboratory: `rheo` runs `rheo-lab` for them.
//!
//! Timed: processes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// `rheo` in a folder of its own, where nothing else is.
fn alone(folder: &Path) -> PathBuf {
    let rheo = folder.join("rheo");
    fs::copy(env!("CARGO_BIN_EXE_rheo"), &rheo).unwrap();
    rheo
}

/// A laboratory that prints its arguments and ends with 7.
fn put(folder: &Path) {
    let program = folder.join("rheo-lab");
    fs::write(&program, "#!/bin/sh\nprintf '<%s>' \"$@\"\nexit 7\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
}

fn run(rheo: &Path, path: &Path, arguments: &[&str]) -> Output {
    Command::new(rheo).args(arguments).env("PATH", path).output().unwrap()
}

const COMMANDS: [&[&str]; 6] = [
    &["bench", "balance", "--lanes", "2"],
    &["bench", "report"],
    &["sim", "balance", "--cores", "16", "-o", "x y.html"],
    &["sim", "--help"],
    &["advise", "--service", "10us"],
    &["reproduce", "--", "-x"],
];

#[test]
fn the_laboratory_gets_the_arguments_and_gives_its_exit_status() {
    let folder = tempfile::tempdir().unwrap();
    let [own, path] = ["own", "path"].map(|name| folder.path().join(name));
    for folder in [&own, &path] {
        fs::create_dir(folder).unwrap();
    }
    let rheo = alone(&own);
    for at in [&path, &own] {
        put(at);
        for arguments in COMMANDS {
            let output = run(&rheo, &path, arguments);
            let printed = String::from_utf8(output.stdout).unwrap();
            let wanted: String = arguments.iter().map(|word| format!("<{word}>")).collect();
            assert_eq!((printed, output.status.code()), (wanted, Some(7)), "{arguments:?}");
        }
        // Those beside the program come first.
        fs::remove_file(path.join("rheo-lab")).unwrap();
        put(&own);
        put(&path);
    }
}

#[test]
fn without_a_laboratory_one_line_says_how_to_build_it() {
    let folder = tempfile::tempdir().unwrap();
    let rheo = alone(folder.path());
    for (arguments, command) in
        COMMANDS.iter().zip(["bench balance", "bench report", "sim", "sim", "advise", "reproduce"])
    {
        let output = run(&rheo, Path::new("/no/such/folder"), arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(
            said.starts_with(&format!("error: `rheo {command}` is a command of rheo-lab")),
            "{said}"
        );
        assert!(said.contains("`cargo build --release -p rheostat-lab`"), "{said}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn bench_nf_needs_no_laboratory() {
    let folder = tempfile::tempdir().unwrap();
    let rheo = alone(folder.path());
    let arguments = ["bench", "nf", "--chain", "harness", "--flows", "1k", "--lanes", "1"];
    let quick = ["--spread", "uniform", "--windows", "1", "--window", "10ms", "--json"];
    let output = run(&rheo, Path::new("/no/such/folder"), &[&arguments[..], &quick].concat());
    let printed = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<serde_json::Value> =
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [header, row] = &rows[..] else { panic!("{printed}") };
    assert!(header["commit"].is_string());
    assert_eq!((&row["chain"], &row["lanes"]), (&"harness".into(), &1.into()));
}
