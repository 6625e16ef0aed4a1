//! The language of cases, line by line.

use std::time::Duration;

use rheostat_base::{DropReason, Time, unit};
use rheostat_functions::lb::Health;

use crate::error::CaseError;
use crate::names::{Check, Words};
use crate::port::CasePort;
use crate::topology::Topology;

/// The latest time of a step.
const LATEST: Duration = Duration::from_secs(100 * 365 * 86_400);

/// What is to come of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// The packet leaves as it came.
    Same(CasePort),
    /// The packet sent in this line, counted from 1, leaves now.
    SameAs(CasePort, usize),
    /// This packet leaves, in which names may stand for ports.
    Packet(CasePort, Words),
    /// What a name stands for is so.
    Check(Check),
    /// A packet is dropped for the reason of this name.
    Drop(String),
    /// The monitor makes a record that says all this.
    Record(String),
}

/// A packet, or nothing but the time, and what is to come of it.
#[derive(Clone, Debug)]
pub(crate) struct ScriptStep {
    pub(crate) line: usize,
    pub(crate) time: Time,
    pub(crate) packet: Option<(CasePort, Words)>,
    pub(crate) expected: Vec<(usize, Expected)>,
}

/// Another health of a service's backends.
#[derive(Clone, Debug)]
pub(crate) struct HealthStep {
    pub(crate) line: usize,
    pub(crate) time: Time,
    pub(crate) service: String,
    pub(crate) health: Vec<Health>,
}

/// A case.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script {
    pub(crate) name: String,
    /// The functions of the chain.
    pub(crate) chain: Vec<String>,
    /// Their settings, in TOML.
    pub(crate) settings: String,
    /// Settings of the table, in TOML.
    pub(crate) state: String,
    /// Whether the case is to come out the same over IPv6.
    pub(crate) also_ipv6: bool,
    /// Whether the case is to come out the same with state that all lanes share.
    pub(crate) also_shared: bool,
    /// The network, if the devices have addresses.
    pub(crate) topology: Option<Topology>,
    pub(crate) steps: Vec<ScriptStep>,
    /// The first line about the chain, its settings or its state.
    pub(crate) first_setting: Option<usize>,
    /// What changes between the steps, in order.
    pub(crate) health: Vec<HealthStep>,
}

impl Script {
    /// Reads a case.
    ///
    /// # Errors
    /// [`CaseError::Unreadable`] with the first line that is none of a case.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Script, CaseError> {
        let mut script = Script {
            name: name.to_owned(),
            chain: vec!["firewall".to_owned()],
            settings: String::new(),
            state: String::new(),
            also_ipv6: false,
            also_shared: false,
            topology: None,
            first_setting: None,
            steps: Vec::new(),
            health: Vec::new(),
        };
        for (number, line) in (1..).zip(text.lines()) {
            let read = script.line(number, line);
            read.map_err(|problem| CaseError::unreadable(name, Some(number), problem))?;
        }
        Ok(script)
    }

    /// The case with all its packets over IPv6.
    pub(crate) fn over_ipv6(&self) -> Result<Script, CaseError> {
        let mut script = self.clone();
        for step in &mut script.steps {
            let wrong =
                |line: usize| move |problem| CaseError::unreadable(&self.name, Some(line), problem);
            if let Some((_, packet)) = &mut step.packet {
                *packet = packet.over_ipv6().map_err(wrong(step.line))?;
            }
            for (line, expected) in &mut step.expected {
                if let Expected::Packet(_, packet) = expected {
                    *packet = packet.over_ipv6().map_err(wrong(*line))?;
                }
            }
        }
        Ok(script)
    }

    /// The case with a function that keeps its state in objects that all lanes share.
    pub(crate) fn on_shared_state(&self) -> Script {
        let mut script = self.clone();
        if script.settings.is_empty() {
            script.open_settings();
        }
        // Directly behind the title of the function's table, before tables within it. With few ports, as all
        // of them take memory.
        let table = format!("[function.{}]\n", script.chain.last().map_or("", String::as_str));
        let ports =
            if script.settings.contains("ports =") { "" } else { "ports = \"1024-2047\"\n" };
        let shared = format!("{table}state = \"shared\"\nflows = 256\n{ports}");
        script.settings = script.settings.replacen(&table, &shared, 1);
        script
    }

    fn line(&mut self, number: usize, line: &str) -> Result<(), String> {
        if let Some(setting) = line.strip_prefix('|') {
            self.first_setting.get_or_insert(number);
            if self.settings.is_empty() {
                self.open_settings();
            }
            self.settings.push_str(setting);
            self.settings.push('\n');
            return Ok(());
        }
        if let Some(setting) = line.strip_prefix("state |") {
            self.first_setting.get_or_insert(number);
            self.state.push_str(setting);
            self.state.push('\n');
            return Ok(());
        }
        let words = line.split('#').next().unwrap_or_default();
        let is_indented = words.starts_with(' ');
        let words: Vec<&str> = words.split_whitespace().collect();
        match words.as_slice() {
            [] => Ok(()),
            expectation if is_indented => self.expectation(number, expectation),
            ["also", "ipv6"] => {
                self.also_ipv6 = true;
                Ok(())
            }
            ["also", "shared"] => {
                self.first_setting.get_or_insert(number);
                self.also_shared = true;
                Ok(())
            }
            ["chain", functions @ ..] => {
                self.first_setting.get_or_insert(number);
                self.chain = functions.iter().map(ToString::to_string).collect();
                Ok(())
            }
            ["health", "at", time, service, states @ ..] => {
                self.health_step(number, time, service, states)
            }
            ["at", time, "idle"] => self.step(number, time, None),
            ["at", time, port, packet @ ..] => {
                let port = CasePort::parse(port).ok_or_else(|| format!("`{port}` is no device"))?;
                self.step(number, time, Some((port, Words::new(packet)?)))
            }
            ["address" | "proxied" | "mtu" | "vlan" | "route" | "neighbour", ..] => {
                self.topology.get_or_insert_default().line(&words)
            }
            [word, ..] => Err(format!(
                "a line starts with `at`, `also`, `chain`, `state`, a line about the network, a space, `|` \
                 or `#`, not `{word}`"
            )),
        }
    }

    /// Settings are those of the last function, unless they say otherwise.
    fn open_settings(&mut self) {
        if let Some(last) = self.chain.last() {
            self.settings = format!("[function.{last}]\n");
        }
    }

    fn health_step(
        &mut self,
        line: usize,
        time: &str,
        service: &str,
        states: &[&str],
    ) -> Result<(), String> {
        let time = parse_time(time)?;
        let health = states.iter().map(|state| match *state {
            "up" => Ok(Health::Up),
            "drain" => Ok(Health::Drain),
            "down" => Ok(Health::Down),
            other => Err(format!("`{other}` is not up, drain or down")),
        });
        let health = health.collect::<Result<_, _>>()?;
        self.health.push(HealthStep { line, time, service: service.to_owned(), health });
        Ok(())
    }

    fn step(
        &mut self,
        line: usize,
        time: &str,
        packet: Option<(CasePort, Words)>,
    ) -> Result<(), String> {
        let time = parse_time(time)?;
        if self.steps.last().is_some_and(|last| last.time > time) {
            return Err("time goes back".to_owned());
        }
        self.steps.push(ScriptStep { line, time, packet, expected: Vec::new() });
        Ok(())
    }

    fn expectation(&mut self, number: usize, words: &[&str]) -> Result<(), String> {
        let lines: Vec<usize> = self.steps.iter().map(|step| step.line).collect();
        let Some(step) = self.steps.last_mut() else {
            return Err("nothing was sent that something could come of".to_owned());
        };
        let device =
            |word: &str| CasePort::parse(word).ok_or_else(|| format!("`{word}` is no device"));
        let expected = match words {
            ["drop", reason] => {
                // A function adds its own when it drops the first packet; their names have a dot.
                if DropReason::named(reason).is_none() && !reason.contains('.') {
                    return Err(format!("`{reason}` is no reason to drop a packet"));
                }
                Expected::Drop((*reason).to_owned())
            }
            ["nothing"] => return Ok(()),
            ["record", words @ ..] => Expected::Record(words.join(" ")),
            ["check", words @ ..] => Expected::Check(Check::parse(words)?),
            [port, "same"] => Expected::Same(device(port)?),
            [port, "same", "as", "line", line] => {
                let line = line.parse().ok().filter(|line| lines.contains(line));
                Expected::SameAs(device(port)?, line.ok_or("no packet was sent in that line")?)
            }
            [port, packet @ ..] => Expected::Packet(device(port)?, Words::new(packet)?),
            [] => return Ok(()),
        };
        step.expected.push((number, expected));
        Ok(())
    }
}

/// A time such as `90s`, or a sum such as `2h+4min`.
pub(crate) fn parse_time(text: &str) -> Result<Time, String> {
    let wrong = || format!("`{text}` is no time");
    let parts: Result<Vec<Duration>, String> =
        text.split('+').map(|part| unit::parse_duration(part).map_err(|_| wrong())).collect();
    let sum = parts?.into_iter().try_fold(Duration::ZERO, Duration::checked_add);
    // A run's clock has 64 bits of nanoseconds, and goes on behind the last step.
    let sum = sum
        .filter(|sum| *sum <= LATEST)
        .ok_or_else(|| format!("`{text}` is more than 100 years"))?;
    Ok(Time::ZERO + sum)
}
