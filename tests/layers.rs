//! The crates stand in layers: each uses only those below it.
//!
//! Timed: processes.

use std::process::Command;

use serde_json::Value;

/// From the bottom to the top. `nf` and `functions` on the one hand, `tcp` and `serve` on the other ignore each other; only tests use `testkit`, which stands above all others.
const LAYERS: [&str; 25] = [
    "base",
    "packet",
    "steer",
    "settings",
    "kernel",
    "capture",
    "io",
    "traffic",
    "state",
    "run",
    "ip",
    "nf",
    "functions",
    "tcp",
    "serve",
    "load",
    "control",
    "cases",
    "observe",
    "plot",
    "measure",
    "app",
    "cli",
    "lab",
    "testkit",
];

/// Where unsafe code may stand.
const UNSAFE: [&str; 11] = [
    "crates/packet/src/mbuf",
    "crates/kernel/src/sys",
    "crates/io/src/sys",
    "crates/io/src/backend",
    "crates/state/src/flow_table",
    "crates/state/src/txn",
    "crates/run/src/shared",
    "crates/run/src/handoff",
    "crates/base/src/sync",
    "crates/base/src/simd",
    // This test, which looks for the words.
    "tests/layers.rs",
];

/// What is wrong with a dependency of one crate on another.
fn fault(from: &str, to: &str) -> Option<String> {
    let place = |name: &str| LAYERS.iter().position(|layer| *layer == name);
    let (Some(from_place), Some(to_place)) = (place(from), place(to)) else {
        return Some(format!("{from} -> {to}: not a layer"));
    };
    let strangers =
        matches!((from, to), ("nf" | "functions", "tcp") | ("tcp" | "serve", "nf" | "functions"));
    (to_place >= from_place || strangers).then(|| format!("{from} -> {to}"))
}

#[test]
fn dependencies_point_down() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    let mut edges = 0;
    let mut faults = Vec::new();
    for package in metadata["packages"].as_array().expect("packages") {
        let Some(from) = package["name"].as_str().and_then(|n| n.strip_prefix("rheostat-")) else {
            continue;
        };
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let name = dependency["name"].as_str().expect("a name");
            // Tests may look at any layer.
            let (Some(to), true) = (name.strip_prefix("rheostat-"), dependency["kind"].is_null())
            else {
                continue;
            };
            edges += 1;
            faults.extend(fault(from, to));
        }
    }
    assert!(edges > 20, "only {edges} dependencies were found");
    assert_eq!(faults, Vec::<String>::new());
}

#[test]
fn an_upward_dependency_is_a_fault() {
    assert_eq!(fault("nf", "base"), None);
    assert!(fault("base", "nf").is_some());
    assert!(fault("nf", "nf").is_some());
    assert!(fault("tcp", "nf").is_some());
    assert!(fault("serve", "nf").is_some());
    assert!(fault("nf", "helpers").is_some());
}

#[test]
fn unsafe_code_stands_only_where_it_may() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders =
        ["crates", "lab", "src", "tests", "testkit"].map(|name| root.join(name)).to_vec();
    let mut found = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of the project") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("source is text");
            if text.contains("allow(unsafe_code)") {
                found += 1;
                let place = path.strip_prefix(root).expect("inside the project");
                let place = place.to_string_lossy();
                assert!(
                    UNSAFE.iter().any(|may| place.starts_with(may)),
                    "{place} allows unsafe code"
                );
            }
        }
    }
    assert!(found >= 3, "only {found} files allow unsafe code");
}
