//! Settings of `service = "resp"`, and its registration.

use std::sync::Arc;

use rheostat_base::Clock;
use rheostat_settings::declared::kind::size;
use rheostat_settings::quantity::Bytes;

use super::Resp;
use super::command::BESIDE;
use crate::registry::{
    ApplicationFacts, ApplicationKind, ApplicationMemory, ApplicationRegistration, Program,
};

rheostat_settings::settings! {
    /// Bounds of a store of keys and values. A word of a command has as many bytes as a value at most, and a command up to 1 MiB beside,
    /// so [`ServeConfig::longest_request`](crate::ServeConfig::longest_request) should be at least [`RespConfig::longest_command`].
    #[derive(Copy, Eq)]
    pub struct RespConfig: Default {
        /// Bytes for keys and values at most.
        memory: usize = size(64 << 10..=1 << 50), value("SIZE"), default(256 << 20);
        /// Bytes of a value at most. A value that arrives takes memory of its connection, so it is not more than shard_memory.
        longest_value: usize = size(1 << 10..=512 << 20), value("SIZE"), default(64 << 20);
    }
}

impl RespConfig {
    /// A store of so many bytes, with values of up to 64 MiB.
    pub fn new(memory: usize) -> RespConfig {
        RespConfig { memory, ..RespConfig::default() }
    }

    /// Bytes of a command at most.
    pub fn longest_command(&self) -> usize {
        self.longest_value.saturating_add(BESIDE)
    }

    fn describe(&self) -> String {
        let [memory, longest] = [self.memory, self.longest_value].map(|size| Bytes(size as u64));
        format!(", {memory} at most, values of {longest} at most")
    }

    fn facts(&self) -> ApplicationFacts {
        ApplicationFacts {
            longest_request: self.longest_command(),
            in_shard_memory: Some(("longest_value", self.longest_value)),
            memory: vec![ApplicationMemory {
                purpose: "keys and values",
                bytes: self.memory as u64,
                is_per_lane: false,
                from: "all that the store may hold".to_owned(),
                setting: "[serve] memory",
            }],
            ..ApplicationFacts::default()
        }
    }
}

/// `resp`.
pub fn registration() -> ApplicationRegistration {
    let summary = "A store of keys and values that speaks Redis's protocol";
    ApplicationKind::new("resp", summary, |config: &RespConfig, _| {
        Ok(Program::requests(Resp::new(*config, Arc::new(Clock::new()))).into())
    })
    .describing(RespConfig::describe)
    .with_facts(RespConfig::facts)
    .register()
}
