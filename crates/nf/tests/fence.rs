//! What network functions do without is refused by clippy, with the name of what to use instead. The crate
//! that offends lies in a scratch folder and has no dependency but an empty crate named like one that is
//! in common use.
//!
//! Timed: threads, sleep, clock, processes.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use serde_json::Value;

/// Each line with what the message about it must say.
const OFFENCES: [(&str, &str); 13] = [
    ("pub static LOCK: Option<std::sync::Mutex<u8>> = None;", "`Vector` or a `Map`"),
    ("pub fn read(_: &std::sync::RwLock<u8>) {}", "`Vector` or a `Map`"),
    ("pub type Hidden = parking_lot::Mutex<u8>;", "`Vector` or a `Map`"),
    ("pub struct Count(pub core::sync::atomic::AtomicU64);", "`Distributed`"),
    ("pub struct Flag(pub std::sync::atomic::AtomicBool);", "`Vector`"),
    ("pub fn wait(_: &std::sync::Condvar) {}", "`periodic`"),
    ("pub fn start() { std::thread::spawn(|| ()); }", "`periodic`, long work into a `Pool`"),
    ("pub fn pause() { std::thread::sleep(std::time::Duration::ZERO); }", "`periodic`"),
    ("pub fn connect() { let _ = std::sync::mpsc::channel::<u8>(); }", "`cx.originate`"),
    ("pub fn tell(_: &std::sync::mpsc::Sender<u8>) {}", "`cx.originate`"),
    ("thread_local! { pub static LANE: u8 = const { 1 }; }", "`Local`"),
    ("pub fn late() -> std::time::Instant { std::time::Instant::now() }", "`cx.now()`"),
    (
        // SAFETY: this is a text, which is never run.
        "pub static mut SHARED: u8 = 0; pub fn shared() -> u8 { unsafe { SHARED } }",
        "`Vector` or a `Map`",
    ),
];
const ALLOWED: &str = "pub struct State(pub u64, pub std::sync::Arc<[u8]>);
pub static TABLE: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(Vec::new);
";

/// The attribute and the lints that docs/function-rules.md gives to authors.
const ATTRIBUTE: &str = "#![forbid(unsafe_code, reason = \"no `static mut`: what flows share lies in a `Vector` or a `Map`\")]";
const MANIFEST: &str = r#"
[package]
name = "offender"
version = "0.0.0"
edition = "2024"
[workspace]
[dependencies]
parking_lot = { path = "parking_lot" }
[lints.clippy]
disallowed_macros = "deny"
disallowed_methods = "deny"
disallowed_types = "deny"
"#;
const PARKING_LOT: &str =
    "[package]\nname = \"parking_lot\"\nversion = \"0.0.0\"\nedition = \"2024\"\n";

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// What clippy refuses in a crate of these lines: messages that show the line, with their notes.
fn refused(lines: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write(&at("Cargo.toml"), MANIFEST);
    write(&at("src/lib.rs"), &format!("{ATTRIBUTE}\n{lines}"));
    write(&at("parking_lot/Cargo.toml"), PARKING_LOT);
    // An alias, as it is one in the crate of that name.
    write(
        &at("parking_lot/src/lib.rs"),
        "pub type Mutex<T> = Raw<T>;\npub struct Raw<T>(pub T);\n",
    );
    let fence = Path::new(env!("CARGO_MANIFEST_DIR")).join("clippy.toml");
    fs::copy(fence, at("clippy.toml")).unwrap();
    let output = Command::new(env!("CARGO"))
        .args(["clippy", "--offline", "--quiet", "--message-format=json", "--target-dir"])
        .arg(at("target"))
        .current_dir(folder.path())
        .env_remove("RUSTFLAGS")
        .env_remove("CLIPPY_CONF_DIR")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let read = |line: &str| {
        let message: Value = serde_json::from_str(line).unwrap();
        let message = &message["message"];
        let text = message["rendered"].as_str().filter(|_| message["level"] == "error")?;
        // Other errors report how many there were.
        text.contains("src/lib.rs").then(|| text.to_owned())
    };
    let found: Vec<_> = text.lines().filter_map(read).collect();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.success(), found.is_empty(), "{said}");
    found
}

#[test]
fn what_is_disallowed_is_refused_with_what_to_use() {
    let offences: Vec<_> = OFFENCES.iter().map(|(line, _)| *line).collect();
    let found = refused(&format!("{}\n{ALLOWED}", offences.join("\n")));
    for (line, hint) in OFFENCES {
        let named = found.iter().any(|message| message.contains(line) && message.contains(hint));
        assert!(named, "{line}: nothing about {hint} among {found:#?}");
    }
    let offends = |message: &String| offences.iter().any(|line| message.contains(line));
    assert!(found.iter().all(offends), "what is allowed is refused: {found:#?}");
}
