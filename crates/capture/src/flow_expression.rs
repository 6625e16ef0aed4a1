//! An expression of pcap-filter(7) about flows in place of packets: it means a flow whose packets it matches, in either direction,
//! as they are on either side of a translation.

use rheostat_packet::wire::protocol::has_ports;
use rheostat_packet::{Family, FlowKey, Network};
use thiserror::Error;

use crate::expression::{Expression, ExpressionError, Fields, Term};

/// An expression about flows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowExpression(Expression);

/// Why a text is no expression about flows.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FlowExpressionError {
    /// It is no expression at all.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    /// A property that single packets have.
    #[error("`{0}` is about single packets, and a flow has many: leave it out")]
    Packets(Term),
    /// A property of packets that belong to no flow.
    #[error("`{0}` means no flow: flows are of IP")]
    NoFlow(Term),
}

impl FlowExpression {
    /// Reads an expression.
    ///
    /// # Errors
    /// [`FlowExpressionError`] when it is none, or asks for what flows do not have.
    pub fn new(text: &str) -> Result<FlowExpression, FlowExpressionError> {
        let expression = text.parse()?;
        check(&expression)?;
        Ok(FlowExpression(expression))
    }

    /// Whether a flow with these keys is meant. The parts of an `and` hold for packets of one direction on one side; `not` excludes
    /// the flow if what stands behind it holds for any.
    pub fn matches(&self, key: &FlowKey, alias: Option<&FlowKey>) -> bool {
        let views = [Some(*key), alias.copied()];
        let views = views.into_iter().flatten().flat_map(|key| [key, key.reversed()]);
        let views: Vec<_> = views.map(|key| fields(&key)).collect();
        any(&self.0, &views)
    }
}

fn any(expression: &Expression, views: &[Fields]) -> bool {
    views.iter().any(|view| holds(expression, view, views))
}

/// Whether an expression holds for one view of a flow.
fn holds(expression: &Expression, view: &Fields, views: &[Fields]) -> bool {
    match expression {
        Expression::Term(_) => expression.holds(view),
        Expression::Not(inner) => !any(inner, views),
        Expression::And(all) => all.iter().all(|one| holds(one, view, views)),
        Expression::Or(some) => some.iter().any(|one| holds(one, view, views)),
    }
}

/// What is known of packets with this key.
fn fields(key: &FlowKey) -> Fields {
    let (protocol, zone) = (key.protocol(), key.zone());
    Fields {
        network: match key.family() {
            Family::V4 => Network::Ipv4,
            Family::V6 => Network::Ipv6,
        },
        protocol: Some(protocol),
        is_fragment: false,
        tags: usize::from(zone != 0) + usize::from(zone >> 12 != 0),
        zone,
        length: 0,
        addresses: Some((key.first(), key.second())),
        ports: has_ports(protocol).then(|| (key.first_port(), key.second_port())),
    }
}

fn check(expression: &Expression) -> Result<(), FlowExpressionError> {
    match expression {
        Expression::Term(term) => match term {
            Term::Fragment | Term::AtMost(_) | Term::AtLeast(_) => {
                Err(FlowExpressionError::Packets(term.clone()))
            }
            Term::Network(Network::Arp | Network::Other) => {
                Err(FlowExpressionError::NoFlow(term.clone()))
            }
            _ => Ok(()),
        },
        Expression::Not(inner) => check(inner),
        Expression::And(all) | Expression::Or(all) => all.iter().try_for_each(check),
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    /// A flow from 10.0.0.5:5000 to 192.0.2.1:443, translated to 203.0.113.1:6000.
    fn flow() -> (FlowKey, FlowKey) {
        let remote = (Ipv4Addr::new(192, 0, 2, 1), 443);
        let inner = (Ipv4Addr::new(10, 0, 0, 5), 5_000);
        let external = (Ipv4Addr::new(203, 0, 113, 1), 6_000);
        (FlowKey::v4(inner, remote, 6, 0), FlowKey::v4(external, remote, 6, 0))
    }

    fn means(text: &str) -> bool {
        let (key, alias) = flow();
        FlowExpression::new(text).unwrap().matches(&key, Some(&alias))
    }

    #[test]
    fn both_directions_count_on_both_sides_of_a_translation() {
        for text in [
            "tcp port 443",
            "host 10.0.0.5",
            "host 203.0.113.1 and port 6000",
            "src host 10.0.0.5 and dst port 443",
            "src host 192.0.2.1",
            "udp or src net 10.0.0.0/8",
            "ip and not udp",
        ] {
            assert!(means(text), "{text}");
        }
    }

    #[test]
    fn the_parts_of_an_and_are_about_one_packet() {
        for text in [
            "src host 10.0.0.5 and src port 443",
            "src host 10.0.0.5 and src port 6000",
            "host 10.0.0.5 and host 203.0.113.1",
            "udp port 443",
            "ip6",
            "vlan",
        ] {
            assert!(!means(text), "{text}");
        }
    }

    #[test]
    fn not_excludes_a_flow_by_either_side() {
        for text in ["not host 10.0.0.5", "not host 203.0.113.1", "tcp and not port 443"] {
            assert!(!means(text), "{text}");
        }
        assert!(means("not host 10.0.0.6"));
        assert!(means("not not host 10.0.0.5"));
    }

    #[test]
    fn what_flows_do_not_have_is_refused() {
        let refused = |text: &str| FlowExpression::new(text).unwrap_err().to_string();
        assert!(refused("tcp and less 128").contains("`less 128` is about single packets"));
        assert!(refused("not (fragment or udp)").contains("`fragment` is about single packets"));
        assert!(refused("arp").contains("`arp` means no flow"));
        let error = FlowExpression::new("port nonsense").unwrap_err();
        assert!(matches!(error, FlowExpressionError::Expression(_)), "{error}");
    }

    #[test]
    fn a_vlan_is_known_by_the_zone_of_the_key() {
        let (key, _) = flow();
        let tagged = FlowKey::v4((Ipv4Addr::LOCALHOST, 1), (Ipv4Addr::LOCALHOST, 2), 17, 7);
        let vlan = FlowExpression::new("vlan 7").unwrap();
        assert!(vlan.matches(&tagged, None) && !vlan.matches(&key, None));
    }
}
