//! Tests whose outcome could depend on what else the machine does carry a tag, by which `.ci/soak luck` finds them: the
//! line `//! Timed: threads, clock.` in the header of their module. It lists what they use, in the words of [`KINDS`].
//!
//! A tag is needed where the text of the tests names what it uses; what tests use by way of others is tagged by hand.

use std::fs;
use std::path::{Path, PathBuf};

/// The words of a tag, and the calls that need them. `clock` is the machine's; a virtual one needs no tag.
const KINDS: [(&str, &[&str]); 6] = [
    (
        "threads",
        &["thread::spawn", "thread::scope", "thread::Builder", "Runtime::start", "Pool::start"],
    ),
    ("sleep", &["thread::sleep"]),
    ("clock", &["Instant::now", "SystemTime::now", " Clock::new", "(Clock::new"]),
    ("processes", &["Command::new", "Instance::start", "victim("]),
    ("devices", &["as_root(", "isolated(", "in_own_network(", "geteuid"]),
    ("sockets", &["UdpSocket::", "TcpStream::", "UnixStream::", "UnixListener::"]),
];

/// What the header of a module has in front of the words.
const TAG: &str = "//! Timed: ";

/// Only under a model checker, which drives the schedule.
const MODELS: [&str; 3] = ["#[cfg(all(test, loom))]", "#[cfg(all(test, shuttle))]", "loom::model"];

/// How a module of tests begins that no model checker drives.
const MODULES: [&str; 3] = [
    "#[cfg(test)]\nmod ",
    "#[cfg(all(test, not(loom)))]\nmod ",
    "#[cfg(all(test, not(any(loom, shuttle))))]\nmod ",
];

/// The text of the tests in a source file, which is nothing where it has none.
fn tests(path: &Path, text: &str) -> String {
    let in_tests = path.components().any(|part| part.as_os_str() == "tests");
    let is_module_of_tests = path.file_name().is_some_and(|name| name == "tests.rs");
    let start = match in_tests || is_module_of_tests {
        true => Some(0),
        false => MODULES.iter().filter_map(|start| text.find(start)).min(),
    };
    let Some(start) = start else { return String::new() };
    let end = MODELS.iter().filter_map(|model| text[start..].find(model)).min();
    let body = &text[start..end.map_or(text.len(), |end| start + end)];
    let has_tests = body.contains("#[test]") || body.contains("proptest! {");
    if has_tests { body.to_owned() } else { String::new() }
}

/// The words that the text of tests needs in its tag.
fn needed(tests: &str) -> Vec<&'static str> {
    let code: Vec<_> =
        tests.lines().map(str::trim_start).filter(|line| !line.starts_with("//")).collect();
    let uses = |call: &&str| code.iter().any(|line| line.contains(*call));
    KINDS.iter().filter(|(_, calls)| calls.iter().any(&uses)).map(|kind| kind.0).collect()
}

/// What is wrong with the tag of a source file.
fn fault(path: &Path, text: &str) -> Option<String> {
    let tests = tests(path, text);
    let tagged = tests.lines().find_map(|line| line.trim_start().strip_prefix(TAG));
    let words: Vec<_> = tagged.unwrap_or_default().trim_end_matches('.').split(", ").collect();
    let missing: Vec<_> = needed(&tests).into_iter().filter(|word| !words.contains(word)).collect();
    let known = |word: &&str| KINDS.iter().any(|(kind, _)| kind == word);
    let file = path.display();
    if !missing.is_empty() {
        let whole: Vec<_> = KINDS
            .map(|(kind, _)| kind)
            .into_iter()
            .filter(|kind| missing.contains(kind) || words.contains(kind))
            .collect();
        return Some(format!(
            "{file}: the header of its tests is missing `{TAG}{}.`",
            whole.join(", ")
        ));
    }
    if tagged.is_some() && !words.iter().all(known) {
        return Some(format!("{file}: `{TAG}` takes words of {:?}", KINDS.map(|(kind, _)| kind)));
    }
    let is_elsewhere =
        tagged.is_none() && text.lines().any(|line| line.trim_start().starts_with(TAG));
    is_elsewhere.then(|| format!("{file}: `{TAG}` stands where no test is"))
}

/// All source files below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the project") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn tests_that_depend_on_the_machine_are_tagged() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["crates", "lab", "src", "tests", "testkit"] {
        sources(&root.join(folder), &mut files);
    }
    files.retain(|path| !path.ends_with("tests/timed.rs"));
    let mut faults = Vec::new();
    let mut tags = 0;
    for path in files {
        let text = fs::read_to_string(&path).expect("source is text");
        tags += usize::from(text.contains(TAG));
        faults.extend(fault(path.strip_prefix(root).expect("inside the project"), &text));
    }
    faults.sort();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(tags > 40, "only {tags} tags were found");
}

#[test]
fn a_tag_that_is_missing_incomplete_unknown_or_out_of_place_is_a_fault() {
    let of = |path: &str, text: &str| fault(Path::new(path), text);
    let module = |header: &str, body: &str| {
        format!(
            "fn f() {{ thread::sleep(x) }}\n#[cfg(test)]\nmod tests {{\n{header}#[test]\nfn g() {{ {body} }}\n}}"
        )
    };
    assert_eq!(of("src/a.rs", &module("", "let clock = VirtualClock::new();")), None);
    assert_eq!(of("src/a.rs", &module("    //! Timed: sleep.\n", "thread::sleep(x)")), None);
    let is_faulty = |header, body, tag: &str| {
        let fault = of("src/a.rs", &module(header, body)).expect("a fault");
        assert!(fault.contains(tag), "{fault}");
    };
    is_faulty("", "thread::spawn(x)", "is missing `//! Timed: threads.`");
    is_faulty(
        "//! Timed: sleep.\n",
        "let clock = Clock::new();",
        "is missing `//! Timed: sleep, clock.`",
    );
    is_faulty("//! Timed: luck.\n", "f()", "takes words of");
    assert_eq!(of("tests/a.rs", "fn fixture() { thread::sleep(x) }"), None, "a fixture is no test");
    assert!(of("tests/a.rs", "//! Timed: sleep.\nfn fixture() {}").is_some());
    assert!(of("tests/a.rs", "#[test]\nfn f() { Command::new(x) }").is_some());
}
