//! Tests that need root, and tests in a network namespace of their own.

use std::io::Write;
use std::process::{Command, Stdio};

/// Set in the process that runs inside the namespace.
const INSIDE: &str = "RHEO_TEST_NAMESPACE";

/// What becomes the test's process in its namespace: the names of namespaces that it makes end with it, too.
/// What it reads below `/sys` is about its own interfaces.
const ENTER: &str =
    "mkdir -p /run/netns; mount -t tmpfs rheo-test /run/netns; mount -t sysfs rheo-test /sys
    mount -t bpf rheo-test /sys/fs/bpf
    for each in all default; do echo 1 >/proc/sys/net/ipv6/conf/$each/disable_ipv6; done
    exec \"$0\" \"$@\"";

/// Whether the calling test, which needs root, may run: `RHEO_ROOT_TESTS` is 1 and the user is root. Reports the test
/// as not run otherwise.
pub fn as_root() -> bool {
    let wanted = std::env::var("RHEO_ROOT_TESTS").is_ok_and(|value| value == "1");
    if wanted && rustix::process::geteuid().is_root() {
        return true;
    }
    // The test harness names threads after tests, and captures what `println` prints.
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let _ = writeln!(
        std::io::stderr(),
        "{test}: NOT RUN (needs root, and RHEO_ROOT_TESTS=1 in the environment)"
    );
    false
}

/// The name of a test function as the test harness has it: its module without the crate.
fn full_name(module: &str, test: &str) -> String {
    match module.split_once("::") {
        Some((_, module)) => format!("{module}::{test}"),
        None => test.to_owned(),
    }
}

/// Runs `body` in a new network namespace, as [`in_own_network`] has it.
///
/// # Panics
/// When the test fails there.
pub fn isolated(module: &str, test: &str, body: impl FnOnce()) {
    if in_own_network(module, test) {
        body();
    }
}

/// Whether the calling test runs in a network namespace of its own. Elsewhere it is run there: `test`, the calling test
/// function in `module` (`module_path!()`), once more in a process of its own, with whose end the namespace, all in it
/// and all namespaces made in it by `ip netns` are gone; the caller then returns. So names of interfaces, addresses and
/// ports meet neither those of other tests nor those of the machine. IPv6 is off there but for interfaces that switch it
/// on, so that the kernel sends nothing by itself.
///
/// # Panics
/// When the test fails there.
pub fn in_own_network(module: &str, test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    if !as_root() {
        return false;
    }
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "--", "sh", "-ec", ENTER]);
    command.arg(std::env::current_exe().expect("the test's own binary"));
    let test = full_name(module, test);
    let output = again(command, &test).output().expect("unshare (util-linux) is installed");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    // Also when the name is wrong, the harness reports success.
    assert!(text.contains("1 passed"), "`{test}` was not found: {text}");
    // What it measured, for `--nocapture`.
    print!("{text}");
    false
}

/// A command that runs `test` of `module` once more, in this namespace, as a process to be killed. It finds
/// `RHEO_TEST_VICTIM` in its environment.
///
/// # Panics
/// When the test's own binary is not known.
pub fn victim(module: &str, test: &str) -> Command {
    let command = Command::new(std::env::current_exe().expect("the test's own binary"));
    let mut command = again(command, &full_name(module, test));
    command.env("RHEO_TEST_VICTIM", "1");
    command
}

fn again(mut command: Command, test: &str) -> Command {
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    command.env(INSIDE, "1").stdin(Stdio::null());
    command
}

/// Runs a command line to its end, and returns what it printed.
///
/// # Panics
/// When it fails.
pub fn shell(line: &str) -> String {
    let output = Command::new("sh").args(["-ec", line]).output().expect("sh");
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}
