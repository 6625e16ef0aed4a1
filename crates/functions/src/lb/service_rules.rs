//! The services of a load balancer as rules: a hit is a flow that got a backend.

use rheostat_nf::registry::{Rule, RuleList, RuleUse, Tally};
use rheostat_packet::wire::protocol::ProtocolName;

use super::HealthBoard;

impl RuleList for HealthBoard {
    fn rules(&self) -> Vec<RuleUse> {
        let (config, uses) = self.uses();
        let services = config.services.iter().enumerate();
        let rule = |(number, service): (usize, &super::ServiceConfig)| {
            let ports: Vec<_> = service
                .ports
                .iter()
                .map(|range| match range.low == range.high {
                    true => range.low.to_string(),
                    false => format!("{}-{}", range.low, range.high),
                })
                .collect();
            let ports = if ports.is_empty() { "any".to_owned() } else { ports.join(",") };
            let (vip, protocol) = (service.vip, ProtocolName(service.protocol));
            let of = uses.iter().filter(|used| used.service == number).map(|used| used.count);
            RuleUse {
                rule: Rule {
                    name: service.name.clone(),
                    text: format!("balance {protocol} to {vip} port {ports}"),
                },
                tally: Tally::Counted(of.sum()),
            }
        };
        services.map(rule).collect()
    }
}
