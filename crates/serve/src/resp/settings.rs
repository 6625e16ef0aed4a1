//! Settings of `service = "resp"`, and its registration.

use std::sync::Arc;

use rheostat_base::Clock;
use rheostat_settings::declared::kind::size;
use rheostat_settings::quantity::Bytes;

use super::{Resp, RespConfig};
use crate::registry::{
    ApplicationFacts, ApplicationKind, ApplicationMemory, ApplicationRegistration, Program,
};

rheostat_settings::settings! {
    /// A store of keys and values.
    pub struct RespSettings {
        /// Bytes for keys and values at most.
        memory: usize = size(64 << 10..=1 << 50), value("SIZE"), default(256 << 20);
        /// Bytes of a value at most. A value that arrives takes memory of its connection, so it is not more than shard_memory.
        longest_value: usize = size(1 << 10..=512 << 20), value("SIZE"), default(64 << 20);
    }
}

impl RespSettings {
    /// The bounds of the store.
    pub fn store(&self) -> RespConfig {
        RespConfig { memory: self.memory, longest_value: self.longest_value }
    }

    fn describe(&self) -> String {
        let [memory, longest] = [self.memory, self.longest_value].map(|size| Bytes(size as u64));
        format!(", {memory} at most, values of {longest} at most")
    }

    fn facts(&self) -> ApplicationFacts {
        ApplicationFacts {
            longest_request: self.store().longest_command(),
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
    ApplicationKind::new("resp", summary, |settings: &RespSettings, _| {
        Ok(Program::requests(Resp::new(settings.store(), Arc::new(Clock::new()))).into())
    })
    .describing(RespSettings::describe)
    .with_facts(RespSettings::facts)
    .register()
}
