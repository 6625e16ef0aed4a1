//! `--seed` repeats a run: what leaves is the same, byte by byte.
//!
//! Timed: processes.

use std::fs;
use std::path::Path;
use std::process::Command;

fn rheo(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rheo"));
    let output = command.args(arguments).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A configuration of the project with few ports, none of them the clients' own: what is given out is drawn.
fn configure(folder: &Path, name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs").join(name);
    let text = fs::read_to_string(path).unwrap();
    let [usual, few] = ["ports = \"1024-65535\"", "ports = \"1024-8191\""];
    assert!(text.contains(usual), "{name} has other ports");
    fs::write(folder.join(name), text.replace(usual, few)).unwrap();
}

#[test]
fn the_same_leaves_with_the_same_seed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let sized = ["--packets", "2k", "--flows", "100", "--seed", "1"];
    rheo(folder, &[&["gen", "--output", "in.pcapng"], &sized[..]].concat());
    for name in ["nat.toml", "nat-eim.toml"] {
        configure(folder, name);
        let left = |seed: &str| {
            let files = ["--input", "in.pcapng", "--output", "out.pcapng"];
            let run = ["run", name, "--lanes", "1", "--seed", seed, "--json"];
            rheo(folder, &[&run[..], &files].concat());
            fs::read(folder.join("out.pcapng")).unwrap()
        };
        let first = left("1");
        assert!(first.len() > 10_000, "{name}: {} bytes", first.len());
        assert!(first == left("1"), "{name}: other packets");
        // So that a run without a seed cannot be foreseen.
        assert!(first != left("2"), "{name}: the same packets");
    }
}
