//! Capture files that would be read and written at once.

use std::path::{Component, Path, PathBuf};

use crate::config::DeviceConfig;
use crate::diagnostic::Finding;
use crate::findings::Findings;

/// Notes outputs that are also an input, which would be destroyed before it is read, and outputs that
/// two devices would write into. Files are compared by name; links between them are not followed.
pub(super) fn check(devices: &[DeviceConfig], findings: &mut Findings) {
    for (writer, device) in devices.iter().enumerate() {
        let Some(output) = device.output() else { continue };
        for (reader, other) in devices.iter().enumerate() {
            if other.input().is_some_and(|input| same(input, output)) {
                let message = format!("`{}` would be read and overwritten", output.display());
                let help = "write the output into a file of its own";
                let places = [(reader, "input"), (writer, "output")];
                findings.push(pointing(message, places, findings).help(help));
            }
            let again = reader < writer && other.output().is_some_and(|file| same(file, output));
            if again {
                let message = format!("two devices would write into `{}`", output.display());
                let help = "give each device an output of its own";
                let places = [(reader, "output"), (writer, "output")];
                findings.push(pointing(message, places, findings).help(help));
            }
        }
    }
}

fn pointing(message: String, places: [(usize, &str); 2], findings: &Findings) -> Finding {
    let [first, second] = places.map(|(index, key)| format!("device[{index}].{key}"));
    // Without a place in the file it came from the command line, where only `--output` writes.
    let blamed = if findings.place(&second).is_some() { &second } else { "--output" };
    let label = |(_, key): (usize, &str)| if key == "input" { "read here" } else { "written here" };
    Finding::mistake(blamed, message)
        .at(findings.place(&first), label(places[0]))
        .at(findings.place(&second), label(places[1]))
}

fn same(a: &Path, b: &Path) -> bool {
    plain(a) == plain(b)
}

/// The path without `.` components.
fn plain(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}
