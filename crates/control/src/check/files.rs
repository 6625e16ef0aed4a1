//! Files that would be read and written at once, or written twice.

use std::path::{Component, Path, PathBuf};

use crate::config::Sections;
use crate::machine::{FileId, Machine};
use rheostat_io::is_standard;
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;

/// A file that the run opens.
struct Use<'a> {
    path: &'a Path,
    /// Which file it is, where the machine reports it.
    id: Option<FileId>,
    /// The key that names it; a flag where the file has no such key.
    key: String,
    access: Access,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

/// Reports files that are read and written, which would be destroyed before they are read, and files that are written twice.
/// Files are compared by identity where the machine reports it, otherwise by name. `file` is the
/// configuration's own, if it has one.
pub(super) fn check(
    config: &Sections,
    file: Option<&Path>,
    machine: &dyn Machine,
    findings: &mut Findings,
) {
    let uses = uses(config, file, machine);
    let from_standard = |file: &&Use<'_>| file.access == Access::Read && is_standard(file.path);
    if let [first, second, ..] = uses.iter().filter(from_standard).collect::<Vec<_>>()[..] {
        findings.push(read_twice(first, second, findings));
    }
    for (index, writer) in uses.iter().enumerate().filter(|(_, file)| file.access == Access::Write)
    {
        let others = uses.iter().enumerate().filter(|(_, other)| same(other, writer));
        for (other_index, other) in others {
            match other.access {
                Access::Read => findings.push(overwritten(other, writer, findings)),
                Access::Write if other_index < index => {
                    findings.push(written_twice(other, writer, findings));
                }
                Access::Write => {}
            }
        }
    }
}

fn uses<'a>(config: &'a Sections, file: Option<&'a Path>, machine: &dyn Machine) -> Vec<Use<'a>> {
    let open = |path: &'a Path, key: String, access| {
        let id = machine.file(path);
        Use { path, id, key, access }
    };
    let mut uses = Vec::new();
    uses.extend(file.map(|path| open(path, String::new(), Access::Read)));
    for (index, device) in config.devices.iter().enumerate() {
        let key = |name: &str| format!("device[{index}].{name}");
        uses.extend(device.input().map(|path| open(path, key("input"), Access::Read)));
        uses.extend(device.output().map(|path| open(path, key("output"), Access::Write)));
    }
    for function in &config.chain {
        let key = format!("function.{}.log", function.name());
        uses.extend(function.log().map(|path| open(path, key, Access::Write)));
    }
    uses
}

fn same(a: &Use<'_>, b: &Use<'_>) -> bool {
    if is_standard(a.path) || is_standard(b.path) {
        // Standard input is another file than standard output.
        return a.path == b.path && a.access == b.access;
    }
    match (&a.id, &b.id) {
        (Some(a), Some(b)) => a == b,
        // What is no regular file, such as /dev/null, may be written by many.
        (None, None) => plain(a.path) == plain(b.path) && !a.path.starts_with("/dev"),
        _ => false,
    }
}

/// The path without `.` components.
fn plain(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}

fn overwritten(reader: &Use<'_>, writer: &Use<'_>, findings: &Findings) -> Finding {
    let what = if reader.key.is_empty() { ", which is this configuration" } else { "" };
    let message = format!(
        "`{}` would be read and overwritten{what}{}",
        writer.path.display(),
        alias(writer, reader)
    );
    let help = match writer.key.ends_with(".log") {
        true => "write the log into a file of its own",
        false => "write the output into a file of its own",
    };
    pointing(message, [(reader, "read here"), (writer, "written here")], findings).help(help)
}

fn written_twice(first: &Use<'_>, second: &Use<'_>, findings: &Findings) -> Finding {
    let is_log = |file: &Use<'_>| file.key.ends_with(".log");
    let (writers, help) = match is_log(first) || is_log(second) {
        true => ("a log and another output", "give each log and each output a file of its own"),
        false => ("two devices", "give each device an output of its own"),
    };
    let path = second.path.display();
    let message = format!("{writers} would write into `{path}`{}", alias(second, first));
    pointing(message, [(first, "written here"), (second, "written here")], findings).help(help)
}

fn read_twice(first: &Use<'_>, second: &Use<'_>, findings: &Findings) -> Finding {
    let message = "two devices would read standard input".to_owned();
    pointing(message, [(first, "read here"), (second, "read here")], findings)
        .help("give each device a capture of its own")
}

/// By what other name the same file is known.
fn alias(file: &Use<'_>, other: &Use<'_>) -> String {
    match plain(file.path) == plain(other.path) || other.key.is_empty() {
        true => String::new(),
        false => format!(": `{}` is the same file", other.path.display()),
    }
}

fn pointing(message: String, places: [(&Use<'_>, &str); 2], findings: &Findings) -> Finding {
    let [_, (writer, _)] = places;
    // Without a place in the file it came from the command line, where only `--output` writes, and only `--device` gives
    // several devices a capture.
    let blamed = match (findings.place(&writer.key), writer.access) {
        (Some(_), _) => writer.key.as_str(),
        (None, Access::Write) => "--output",
        (None, Access::Read) => "--device",
    };
    places.into_iter().fold(Finding::mistake(blamed, message), |finding, (file, label)| {
        finding.at(findings.place(&file.key), label)
    })
}
