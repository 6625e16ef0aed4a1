//! Gives the binary its commit, its cargo profile and its features, which stand beside the figures it prints.
//!
//! It runs again when HEAD moves, or a file changes that the binary is built from. It does not when git writes its index, as `git status`
//! and `git add` do: each run links the binary anew, which takes minutes with the profile `dist`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// In the root, and in each crate, that of which the binary is built.
const OF_ROOT: [&str; 4] = ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml", ".cargo"];
const OF_CRATE: [&str; 6] = ["Cargo.toml", "build.rs", "src", "bpf", "costs", "scenarios"];

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("--no-optional-locks").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// Files and folders of which the binary is built, as seen from this crate: those of the root, of `crates`, and of this crate where it
/// stands elsewhere.
fn inputs() -> Vec<PathBuf> {
    let root =
        ["..", "../.."].into_iter().map(Path::new).find(|root| root.join("Cargo.lock").exists());
    let root = root.unwrap_or(Path::new("."));
    let crates = root.join("crates").read_dir().into_iter().flatten().flatten();
    let mut crates: Vec<PathBuf> = crates.map(|entry| entry.path()).collect();
    crates.sort();
    crates.extend((root == Path::new("..")).then(|| PathBuf::from(".")));
    let of_root = OF_ROOT.iter().map(|name| root.join(name));
    let of_crates = crates.iter().flat_map(|folder| OF_CRATE.map(|name| folder.join(name)));
    of_root.chain(of_crates).filter(|path| path.exists()).collect()
}

/// Files that git writes when HEAD moves: its log, or without one HEAD, its branch and where branches are packed.
fn files_of_head() -> Vec<PathBuf> {
    let path = |name: &str| git(&["rev-parse", "--git-path", name]).map(PathBuf::from);
    let existing = |name: &str| path(name).filter(|path| path.exists());
    if let Some(log) = existing("logs/HEAD") {
        return vec![log];
    }
    let branch = git(&["rev-parse", "--symbolic-full-name", "HEAD"]).unwrap_or_default();
    ["HEAD", &branch, "packed-refs"].into_iter().filter_map(existing).collect()
}

/// The features that this crate is built with.
fn features() -> String {
    let variables = std::env::vars();
    let names =
        variables.filter_map(|(name, _)| Some(name.strip_prefix("CARGO_FEATURE_")?.to_owned()));
    let mut names: Vec<String> = names.map(|name| name.to_lowercase().replace('_', "-")).collect();
    names.sort();
    match names.is_empty() {
        true => "no features".to_owned(),
        false => format!("features {}", names.join(" ")),
    }
}

fn main() {
    // Not a checkout, or no git: the figures then carry no commit.
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".into());
    let inputs = inputs();
    let names: Vec<&str> = inputs.iter().filter_map(|path| path.to_str()).collect();
    let is_changed = git(&[&["status", "--porcelain", "--"], &names[..]].concat())
        .is_some_and(|changes| !changes.is_empty());
    let suffix = if is_changed { "+changes" } else { "" };
    println!("cargo::rustc-env=RHEO_COMMIT={commit}{suffix}");
    // `PROFILE` has only `debug` and `release`; the folder has the profile's own name: `target/dist/build/PACKAGE/out`.
    let folder = std::env::var_os("OUT_DIR").expect("cargo sets it");
    let profile = Path::new(&folder).ancestors().nth(3).and_then(|folder| folder.file_name());
    let profile = profile.map_or("unknown".into(), |name| name.to_string_lossy());
    println!("cargo::rustc-env=RHEO_PROFILE={profile}");
    println!("cargo::rustc-env=RHEO_FEATURES={}", features());
    for path in inputs.iter().chain(&files_of_head()) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}
