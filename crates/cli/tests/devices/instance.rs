//! A `rheo` that runs on, asked over its control socket.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rheostat_testkit::namespace::shell;
use serde_json::Value;

use super::RHEO;
use super::place::Place;

/// For what happens at once on a machine that is not overloaded.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A run that goes on.
pub(super) struct Instance {
    pub(super) place: Place,
    pub(super) child: Child,
}

impl Instance {
    /// Starts what the place's configuration describes, and waits until it answers.
    pub(super) fn start(place: Place) -> Instance {
        let log = fs::File::create(place.path("log")).unwrap();
        let out = fs::File::create(place.path("out")).unwrap();
        let child = Command::new(RHEO)
            .arg("run")
            .arg(place.path("config.toml"))
            .args(["--json", "--duration", "3600s", "--control"])
            .arg(place.path("socket"))
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(log)
            .spawn()
            .unwrap();
        let mut instance = Instance { place, child };
        let start = Instant::now();
        while instance.try_status().is_none() {
            let has_ended = instance.child.try_wait().unwrap().is_some();
            assert!(!has_ended && start.elapsed() < TIMEOUT, "no answer: {}", instance.log());
            std::thread::sleep(Duration::from_millis(20));
        }
        instance
    }

    pub(super) fn log(&self) -> String {
        fs::read_to_string(self.place.path("log")).unwrap()
    }

    pub(super) fn try_status(&self) -> Option<Value> {
        let socket = self.place.path("socket");
        let output =
            Command::new(RHEO).args(["status", "--json", "--control"]).arg(socket).output();
        let output = output.unwrap();
        output.status.success().then(|| serde_json::from_slice(&output.stdout).unwrap())
    }

    pub(super) fn status(&self) -> Value {
        self.try_status().unwrap_or_else(|| panic!("no answer: {}", self.log()))
    }

    /// Does something again and again until the status is as it should be.
    pub(super) fn until(&self, what: &str, again: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        loop {
            if !again.is_empty() {
                shell(&format!("{{ {again}; }} >/dev/null 2>&1 || true"));
            }
            let status = self.status();
            if holds(&status) {
                return status;
            }
            assert!(start.elapsed() < TIMEOUT, "not {what}: {status}\n{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for the end: exit status and summary.
    pub(super) fn ended(&mut self) -> (i32, Value) {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(start.elapsed() < TIMEOUT, "it goes on: {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        };
        let out = fs::read_to_string(self.place.path("out")).unwrap();
        let summary = out.lines().last().map(serde_json::from_str);
        (status.code().unwrap(), summary.unwrap_or_else(|| panic!("{}", self.log())).unwrap())
    }

    pub(super) fn stop(&mut self) -> (i32, Value) {
        shell(&format!("kill -TERM {}", self.child.id()));
        self.ended()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
