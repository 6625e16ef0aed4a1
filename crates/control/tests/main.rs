//! Configurations, and the controller.

mod any_text;
mod balancing;
mod configs;
mod kernel_routes;
mod machine;
mod mistakes;
mod overrides;
mod polling;
mod reference;
mod registry;
mod warnings;
