//! The machine that the command runs on.

use std::fs;
use std::path::Path;

use rheostat_base::Clock;
use rheostat_kernel::priority::{Priority, RaisedPriority};
use rheostat_kernel::sleep::{SlackRefused, SleepProfile, Sleeper, calibrate};
use rheostat_kernel::{Interface, napis, xdp_features};
use rheostat_observe::doctor::{InterfaceFacts, Machine, SleepFacts};

use super::probe::attaches_natively;

/// This machine.
#[derive(Debug)]
pub(super) struct ThisMachine {
    probe: bool,
}

impl ThisMachine {
    /// With `probe`, a program is attached to interfaces that are looked at.
    pub(super) fn new(probe: bool) -> ThisMachine {
        ThisMachine { probe }
    }
}

impl Machine for ThisMachine {
    fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
    }

    fn list(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }

    fn exists(&self, path: &str) -> bool {
        Path::new(path).exists()
    }

    fn interface(&self, name: &str) -> InterfaceFacts {
        let interface = Interface::new(name).ok();
        let interface = interface.as_ref();
        let index = interface.and_then(|interface| interface.index().ok());
        InterfaceFacts {
            driver: interface.and_then(|interface| interface.driver().ok()),
            channels: interface.and_then(|interface| interface.channels().ok()),
            rings: interface.and_then(|interface| interface.rings().ok()),
            spreading: interface.and_then(|interface| interface.spreading().ok()),
            offloads: interface.and_then(|interface| interface.offloads().ok()),
            xdp: index.and_then(|index| xdp_features(index).ok()),
            napis: index.and_then(|index| napis(index).ok()),
            probe: index.filter(|_| self.probe).map(attaches_natively),
        }
    }

    fn sleeps(&self) -> Option<SleepFacts> {
        let usual = measure(None)?;
        let fifo = measure(Some(Priority::Fifo(10)));
        Some(SleepFacts { usual: usual.0, slack: usual.1, fifo: fifo.map(|(profile, _)| profile) })
    }
}

/// Sleeps of each duration: enough for 999 of 1,000, in 0.3 s.
const SAMPLES: usize = 1_000;

/// Measures sleeps on a thread of its own; `None` where it may not have the priority.
fn measure(priority: Option<Priority>) -> Option<(SleepProfile, Result<(), SlackRefused>)> {
    let clock = Clock::new();
    let thread = std::thread::spawn(move || {
        let _raised = priority.map(RaisedPriority::new).transpose().ok()?;
        let sleeper = Sleeper::new(clock.clone());
        Some((calibrate(&sleeper, &clock, SAMPLES, || {}), sleeper.slack()))
    });
    thread.join().ok()?
}
