//! The colours of a policer as rules: a hit is a packet that was metered so.

use rheostat_nf::registry::{Rule, RuleList, RuleUse, Tally};

use super::{Action, COLOURS, PolicerConfig};

impl RuleList for PolicerConfig {
    fn rules(&self) -> Vec<RuleUse> {
        let actions = [self.actions.green, self.actions.yellow, self.actions.red];
        let names = ["green", "yellow", "red"];
        let rule = |((name, metric), action): ((&str, &'static str), Action)| RuleUse {
            rule: Rule { name: name.to_owned(), text: words(action) },
            tally: Tally::Metric(metric),
        };
        names.into_iter().zip(COLOURS).zip(actions).map(rule).collect()
    }
}

fn words(action: Action) -> String {
    match action {
        Action::Pass => "pass".to_owned(),
        Action::Drop => "drop".to_owned(),
        Action::Remark(code) => format!("pass as {code}"),
        Action::DropPrecedence => "pass with the drop precedence of the colour".to_owned(),
    }
}
