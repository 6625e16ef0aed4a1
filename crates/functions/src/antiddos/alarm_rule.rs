//! The alarm as a rule: a hit is a new flow during an attack.

use rheostat_nf::registry::{Rule, RuleList, RuleUse, Tally};

use super::{Action, AntiDdosConfig};

impl RuleList for AntiDdosConfig {
    fn rules(&self) -> Vec<RuleUse> {
        let action = match self.action {
            Action::Count => "count",
            Action::Drop => "drop",
        };
        let (share, least) = (self.alarm.permille as f64 / 10.0, self.alarm.least);
        let text = format!("{action} new flows while {share} % of {least} or more have one packet");
        let rule = Rule { name: "alarm".to_owned(), text };
        vec![RuleUse { rule, tally: Tally::Metric("antiddos_alarms") }]
    }
}
