//! The rules of a firewall as people see them.

use std::fmt;

use rheostat_nf::registry;
use rheostat_packet::wire::protocol::ProtocolName;
use rheostat_steer::{PrefixList, Side};

use super::{Action, PortList, Protocol, Rule, RuleSet};

impl RuleSet {
    /// The rules by name, in order, and the defaults behind them. A rule without a name has its number, counted from 1.
    pub fn named(&self) -> impl Iterator<Item = registry::Rule> {
        let rules = self.rules.iter().enumerate().map(|(number, rule)| registry::Rule {
            name: rule.name.clone().unwrap_or_else(|| (number + 1).to_string()),
            text: rule.to_string(),
        });
        let default = |side: &str, action: Action| registry::Rule {
            name: format!("default from {side}"),
            text: action.to_string(),
        };
        let (inside, outside) = (self.default_inside, self.default_outside);
        rules.chain([default("inside", inside), default("outside", outside)])
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Action::Allow => "allow",
            Action::Deny => "deny",
            Action::Reject => "reject",
        })
    }
}

/// The action and the conditions, such as `allow from outside to 10.0.0.80/32 TCP port 80,443`.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rule { action, from, device, source, destination, protocols, .. } = self;
        write!(f, "{}", action.unwrap_or(Action::Deny))?;
        match from {
            Some(Side::Inside) => f.write_str(" from inside")?,
            Some(Side::Outside) => f.write_str(" from outside")?,
            None => {}
        }
        if let Some(device) = device {
            write!(f, " on {device}")?;
        }
        prefixes(f, " source ", source)?;
        ports(f, " port ", &self.source_ports)?;
        prefixes(f, " to ", destination)?;
        list(f, " ", protocols.iter().map(|Protocol(number)| ProtocolName(*number)))?;
        ports(f, " port ", &self.destination_ports)?;
        list(f, " ICMP type ", self.icmp_types.iter())
    }
}

fn prefixes(f: &mut fmt::Formatter<'_>, before: &str, prefixes: &PrefixList) -> fmt::Result {
    list(f, before, prefixes.iter())
}

fn ports(f: &mut fmt::Formatter<'_>, before: &str, ports: &PortList) -> fmt::Result {
    let range = |range: &super::PortRange| match range.low == range.high {
        true => range.low.to_string(),
        false => format!("{}-{}", range.low, range.high),
    };
    list(f, before, ports.0.iter().map(range))
}

/// The parts between commas; nothing of an empty list.
fn list(
    f: &mut fmt::Formatter<'_>,
    before: &str,
    parts: impl Iterator<Item = impl fmt::Display>,
) -> fmt::Result {
    for (number, part) in parts.enumerate() {
        f.write_str(if number == 0 { before } else { "," })?;
        part.fmt(f)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_have_a_name_and_are_written_in_words() {
        let web = Rule {
            name: Some("web".into()),
            action: Some(Action::Allow),
            from: Some(Side::Outside),
            source: ["192.0.2.0/24".parse().unwrap(), "2001:db8::/32".parse().unwrap()]
                .into_iter()
                .collect(),
            destination: ["10.0.0.80/32".parse().unwrap()].into_iter().collect(),
            protocols: vec![Protocol(6), Protocol(253)],
            destination_ports: "80,8000-8100".parse().unwrap(),
            ..Rule::default()
        };
        let pings = Rule { icmp_types: vec![8, 0], ..Rule::default() };
        let rules = RuleSet { rules: vec![web, pings], ..RuleSet::default() };
        let named: Vec<_> = rules.named().map(|rule| (rule.name, rule.text)).collect();
        let expected = [
            (
                "web",
                "allow from outside source 192.0.2.0/24,2001:db8::/32 to 10.0.0.80/32 TCP,253 port 80,8000-8100",
            ),
            ("2", "deny ICMP type 8,0"),
            ("default from inside", "allow"),
            ("default from outside", "deny"),
        ];
        assert_eq!(named, expected.map(|(name, text)| (name.to_owned(), text.to_owned())));
    }
}
