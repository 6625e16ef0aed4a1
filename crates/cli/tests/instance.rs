//! A running instance of `rheo` on the simulated NIC, with its control socket in a scratch folder.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use serde_json::Value;
use tempfile::TempDir;

const RHEO: &str = env!("CARGO_BIN_EXE_rheo");

/// How long to wait for what happens at once on a machine that has nothing else to do.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The output of a command that has waited for lanes in vain. It waits for 5 s, and a busy machine may keep one from its core
/// for longer.
pub(crate) const GAVE_UP: &str = "is a worker stuck?";

pub(crate) struct Instance {
    child: Option<Child>,
    folder: Option<TempDir>,
    config: PathBuf,
}

impl Instance {
    /// Runs the demo, slowly and without end, with these flags.
    pub(crate) fn start(flags: &[&str]) -> Instance {
        Instance::start_in(tempfile::tempdir().unwrap(), flags)
    }

    pub(crate) fn start_in(folder: TempDir, flags: &[&str]) -> Instance {
        Instance::start_with(&demo(), folder, &slowly(flags))
    }

    /// As [`Instance::start`], with this standard error.
    pub(crate) fn start_logging(flags: &[&str], errors: Stdio) -> Instance {
        Instance::spawn(&demo(), tempfile::tempdir().unwrap(), &slowly(flags), &["env"], errors)
    }

    pub(crate) fn start_with(config: &Path, folder: TempDir, flags: &[&str]) -> Instance {
        Instance::spawn(config, folder, flags, &["env"], Stdio::null())
    }

    /// As [`Instance::start_with`], in a session of its own, which has no terminal, and with this standard error.
    pub(crate) fn start_detached(config: &Path, folder: TempDir, errors: Stdio) -> Instance {
        Instance::spawn(config, folder, &[], &["setsid", "env", "--default-signal=HUP"], errors)
    }

    /// As [`Instance::start_detached`], with SIGHUP ignored, as nohup has it.
    pub(crate) fn start_with_hangups_ignored(config: &Path, folder: TempDir) -> Instance {
        let before = ["setsid", "env", "--ignore-signal=HUP"];
        Instance::spawn(config, folder, &[], &before, Stdio::null())
    }

    fn spawn(
        config: &Path,
        folder: TempDir,
        flags: &[&str],
        before: &[&str],
        errors: Stdio,
    ) -> Instance {
        let socket = folder.path().join("x.sock");
        // Of two sockets, the one that answers is ours.
        let child = Command::new(before[0])
            .args(&before[1..])
            .args([RHEO, "run"])
            .arg(config)
            .args(["--duration", "3600s", "--json", "--seed", "7", "--control"])
            .arg(&socket)
            .args(flags)
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .unwrap();
        let config = config.to_owned();
        let instance = Instance { child: Some(child), folder: Some(folder), config };
        let start = Instant::now();
        while !rheo(&socket, &["status"]).status.success() {
            assert!(start.elapsed() < TIMEOUT, "the instance does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
        instance
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.as_ref().unwrap().path().join("x.sock")
    }

    /// The output of a command that must succeed.
    pub(crate) fn ask(&self, arguments: &[&str]) -> String {
        let output = rheo(&self.socket(), arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The first line of the answer to a line of the control protocol.
    pub(crate) fn ask_socket(&self, request: &str) -> String {
        let mut stream = UnixStream::connect(self.socket()).unwrap();
        writeln!(stream, "{request}").unwrap();
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).unwrap();
        answer
    }

    /// As [`Instance::ask`], and again as long as lanes are waited for in vain.
    pub(crate) fn ask_patiently(&self, arguments: &[&str]) -> String {
        let start = Instant::now();
        loop {
            let output = rheo(&self.socket(), arguments);
            if output.status.success() {
                return String::from_utf8(output.stdout).unwrap();
            }
            let errors = String::from_utf8_lossy(&output.stderr);
            let may_succeed = errors.contains(GAVE_UP) && start.elapsed() < TIMEOUT;
            assert!(may_succeed, "{arguments:?}: {errors}");
        }
    }

    /// The message of a command that must fail.
    pub(crate) fn refused(&self, arguments: &[&str]) -> String {
        refused_at(&self.socket(), arguments)
    }

    /// The message of a second instance with the same socket.
    pub(crate) fn second(&self) -> String {
        let output = Command::new(RHEO)
            .arg("run")
            .arg(&self.config)
            .arg("--control")
            .arg(self.socket())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    }

    /// Ends the run by its control socket and returns its summary.
    pub(crate) fn stop(self) -> Value {
        self.ask(&["stop"]);
        self.summary()
    }

    /// Ends the run by these signals and returns its summary.
    pub(crate) fn end_by(self, signals: &[Signal]) -> Value {
        let process = Pid::from_child(self.child.as_ref().unwrap());
        for signal in signals {
            rustix::process::kill_process(process, *signal).unwrap();
        }
        self.summary()
    }

    /// Waits for the end of the run, which must succeed, and returns its summary.
    fn summary(mut self) -> Value {
        let mut child = self.child.take().unwrap();
        let mut summary = String::new();
        child.stdout.take().unwrap().read_to_string(&mut summary).unwrap();
        let status = child.wait().unwrap();
        assert!(status.success(), "{status}: {summary}");
        json(&summary)
    }

    /// Kills the instance, as a crash would, and returns the folder of its socket.
    pub(crate) fn kill(mut self) -> TempDir {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        self.folder.take().unwrap()
    }

    /// Starts a command that goes on by itself.
    pub(crate) fn begin(&self, arguments: &[&str]) -> Child {
        command(&self.socket(), arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub(crate) fn demo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/demo.toml")
}

/// Flags, with little traffic.
fn slowly<'a>(flags: &[&'a str]) -> Vec<&'a str> {
    [&["--device", "wire=sim:20kpps"], flags].concat()
}

fn command(socket: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(RHEO);
    command.arg(arguments[0]).arg("--control").arg(socket).args(&arguments[1..]);
    command
}

pub(crate) fn rheo(socket: &Path, arguments: &[&str]) -> Output {
    command(socket, arguments).output().unwrap()
}

pub(crate) fn refused_at(socket: &Path, arguments: &[&str]) -> String {
    let output = rheo(socket, arguments);
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).unwrap()
}

pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text.lines().last().unwrap_or_default())
        .unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The rows of a listing.
pub(crate) fn json_rows(text: &str) -> Vec<Value> {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A load balancer of three backends before a simulated NIC, written to a folder.
pub(crate) fn lb_config(folder: &Path) -> PathBuf {
    lb_config_with(folder, "kind = \"sim\"\nrate = \"20kpps\"")
}

/// The same before another device.
pub(crate) fn lb_config_with(folder: &Path, device: &str) -> PathBuf {
    let path = folder.join("lb.toml");
    let head = format!("[[device]]\nname = \"wire\"\ninside = [\"10.0.0.0/8\"]\n{device}\n");
    std::fs::write(&path, head + LB).unwrap();
    path
}

const LB: &str = r#"
[chain]
functions = ["lb"]

[function.lb]
seed = 11
other = "pass"

[[function.lb.service]]
name = "web"
vip = "10.200.0.1"
protocol = "tcp"
port = "80"
mode = "nat"

[[function.lb.service.backend]]
address = "10.1.0.1"

[[function.lb.service.backend]]
address = "10.1.0.2"

[[function.lb.service.backend]]
address = "10.1.0.3"
"#;
