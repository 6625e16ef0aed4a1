//! Commands that do not fit the running instance: the reply names those that do.

use super::instance::Instance;

impl Instance {
    /// The refusal of backends.
    pub(super) fn without_backends(&self) -> String {
        format!("there is no load balancer: {}", self.without("backends"))
    }

    /// The refusal of what the network layer has.
    pub(super) fn without_network(&self, rows: &str) -> String {
        format!(
            "the devices have no addresses, so there are no {rows}: `address` of a [[device]] gives one; `rheo status` shows devices"
        )
    }

    /// The refusal to list what this instance has none of.
    pub(super) fn without(&self, rows: &str) -> String {
        let functions = &self.functions;
        match (&self.service, functions.as_slice()) {
            (Some(_), _) => format!(
                "the instance runs a service over TCP, so it has no {rows}: `rheo connections` lists its connections"
            ),
            (None, []) => {
                format!(
                    "the instance runs a chain without functions, so it has no {rows}; `rheo status` shows its metrics"
                )
            }
            (None, functions) => format!(
                "the instance runs the functions {}, so it has no {rows}; `rheo flows` and `rheo rules` list what these have",
                functions.join(", ")
            ),
        }
    }
}
