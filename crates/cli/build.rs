//! Gives the binary its commit and its cargo profile, which stand beside the figures it prints.

use std::path::Path;
use std::process::Command;

fn main() {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    // Not a checkout, or no git: the figures then carry no commit.
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".into());
    let is_changed = git(&["status", "--porcelain", "--untracked-files=no"])
        .is_some_and(|changes| !changes.is_empty());
    let suffix = if is_changed { "+changes" } else { "" };
    println!("cargo::rustc-env=RHEO_COMMIT={commit}{suffix}");
    // `PROFILE` has only `debug` and `release`; the folder has the profile's own name: `target/dist/build/PACKAGE/out`.
    let folder = std::env::var_os("OUT_DIR").expect("cargo sets it");
    let profile = Path::new(&folder).ancestors().nth(3).and_then(|folder| folder.file_name());
    let profile = profile.map_or("unknown".into(), |name| name.to_string_lossy());
    println!("cargo::rustc-env=RHEO_PROFILE={profile}");
    println!("cargo::rerun-if-changed=build.rs");
    for path in ["HEAD", "index"] {
        if let Some(file) = git(&["rev-parse", "--git-path", path]) {
            println!("cargo::rerun-if-changed={file}");
        }
    }
}
