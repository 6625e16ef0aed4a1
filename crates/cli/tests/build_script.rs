//! The commit in the binary: it follows HEAD and changed sources, and nothing is linked again because git wrote its index.
//!
//! Timed: processes.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Runs a program in the folder and returns all that it printed.
fn run(folder: &Path, program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    // Of the build of this test.
    for (name, _) in std::env::vars_os() {
        let is_of_build = ["CARGO_", "RUSTC", "RUSTFLAGS", "GIT_"];
        if is_of_build.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    if let Some(home) = std::env::var_os("CARGO_HOME") {
        command.env("CARGO_HOME", home);
    }
    let output = command.args(arguments).current_dir(folder).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "{program} {arguments:?}: {text}");
    text
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let own = ["-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "commit.gpgsign=false"];
    run(folder, "git", &[&own, arguments].concat())
}

fn build(folder: &Path) -> String {
    run(folder, env!("CARGO"), &["build", "--offline", "--verbose"])
}

fn commit_in_binary(folder: &Path) -> String {
    build(folder);
    run(folder, "target/debug/probe", &[]).trim().to_owned()
}

#[test]
fn the_commit_follows_head_and_sources_and_not_the_index() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"crates/cli\"]\n");
    let package = "[package]\nname = \"probe\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
    write("crates/cli/Cargo.toml", package);
    write("crates/cli/build.rs", include_str!("../../app/build.rs"));
    write("crates/cli/src/main.rs", "fn main() { println!(\"{}\", env!(\"RHEO_COMMIT\")); }\n");
    write("crates/tcp/src/lib.rs", "// one\n");
    write("notes.md", "one\n");
    write(".gitignore", "/target\n");
    git(folder, &["init", "--quiet"]);
    run(folder, env!("CARGO"), &["generate-lockfile", "--offline"]);
    git(folder, &["add", "."]);
    git(folder, &["commit", "--quiet", "--message", "one"]);
    let head = || git(folder, &["rev-parse", "--short=12", "HEAD"]).trim().to_owned();
    assert_eq!(commit_in_binary(folder), head());

    // What git writes into its index, and notes, concern no binary.
    write("notes.md", "two\n");
    git(folder, &["add", "notes.md"]);
    git(folder, &["status"]);
    let said = build(folder);
    assert!(said.contains("Fresh probe"), "{said}");

    write("crates/tcp/src/lib.rs", "// two\n");
    assert_eq!(commit_in_binary(folder), head() + "+changes");
    git(folder, &["commit", "--quiet", "--all", "--message", "two"]);
    assert_eq!(commit_in_binary(folder), head());
}
