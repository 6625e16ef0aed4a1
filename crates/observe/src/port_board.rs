//! How many ports of a NAT's external addresses are in use, for the summary and for status requests during the run.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use rheostat_nf::registry::{PortShare, PortShares};
use serde::{Deserialize, Serialize};

/// From this share of its ports in use on, in per cent, an external address is short of ports.
pub const SCARCE: u64 = 80;
/// Lines in a text about addresses that are not short of ports.
const LISTED: usize = 8;

/// The ports of one external address and protocol.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PortLine {
    /// The external address.
    pub address: String,
    /// `tcp`, `udp`, `icmp` or `udplite`.
    pub protocol: String,
    /// With address- and port-dependent mapping, the remote endpoint to which the largest share of a shard's ports
    /// is in use; the numbers are those of that shard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// Ports that have a flow that is not over.
    pub in_use: u64,
    /// Ports there are.
    pub ports: u64,
    /// Since when 80 % or more are in use without a break, in seconds since 1970; left out if fewer are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scarce_since: Option<f64>,
    /// For how many seconds by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scarce_seconds: Option<f64>,
}

/// The ports of a run's NAT.
#[derive(Debug)]
pub struct PortBoard {
    usage: Arc<dyn PortShares>,
    scarcity: Mutex<Scarcity>,
}

impl PortBoard {
    /// A board for the ports that `usage` counts.
    pub fn new(usage: Arc<dyn PortShares>) -> PortBoard {
        PortBoard { usage, scarcity: Mutex::default() }
    }

    /// The addresses and protocols that have ports in use at `now`. An address is short of ports from the first
    /// call on that finds it so: one a second is enough.
    pub fn lines(&self, now: SystemTime) -> Vec<PortLine> {
        // Times only: a panic cannot leave them half changed.
        let mut scarcity = self.scarcity.lock().unwrap_or_else(PoisonError::into_inner);
        scarcity.lines(&self.usage.shares(), now)
    }
}

/// Since when addresses are short of ports, by their place among the shares.
#[derive(Debug, Default)]
struct Scarcity(Vec<Option<SystemTime>>);

impl Scarcity {
    fn lines(&mut self, shares: &[PortShare], now: SystemTime) -> Vec<PortLine> {
        self.0.resize(shares.len(), None);
        let mut lines = Vec::new();
        for (share, since) in shares.iter().zip(&mut self.0) {
            *since = (share.per_cent() >= SCARCE).then(|| since.unwrap_or(now));
            if share.in_use > 0 {
                lines.push(PortLine::of(share, *since, now));
            }
        }
        lines
    }
}

impl PortLine {
    fn of(share: &PortShare, since: Option<SystemTime>, now: SystemTime) -> PortLine {
        let PortShare { address, protocol, remote, in_use, ports } = *share;
        // A clock that was put back makes a time of zero.
        let between = |from, to: SystemTime| to.duration_since(from).unwrap_or_default();
        PortLine {
            address: address.to_string(),
            protocol: match protocol {
                6 => "tcp",
                17 => "udp",
                1 => "icmp",
                _ => "udplite",
            }
            .to_owned(),
            remote: remote.map(|(address, port)| match protocol {
                1 => address.to_string(),
                _ => format!("{address}:{port}"),
            }),
            in_use,
            ports,
            scarce_since: since.map(|since| between(UNIX_EPOCH, since).as_secs_f64()),
            scarce_seconds: since.map(|since| between(since, now).as_secs_f64()),
        }
    }

    /// Whether 80 % or more of the ports are in use.
    pub fn is_scarce(&self) -> bool {
        self.scarce_since.is_some()
    }

    fn per_cent(&self) -> u64 {
        self.in_use * 100 / self.ports.max(1)
    }

    /// What to do about it.
    pub fn advice(&self) -> &'static str {
        match self.remote {
            Some(_) => "add addresses to `external`, lower `quota`, or set fewer `shards`",
            None => "add addresses to `external`, or lower `quota`",
        }
    }
}

impl fmt::Display for PortLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PortLine { address, protocol, remote, in_use, ports, .. } = self;
        let ports_of = if protocol == "icmp" { "identifiers" } else { "ports" };
        write!(f, "{address} {protocol}: {in_use} of {ports} {ports_of} in use")?;
        if let Some(remote) = remote {
            write!(f, " towards {remote} in the fullest shard")?;
        }
        write!(f, " ({} %)", self.per_cent())
    }
}

/// The lines of a text: those short of ports, then the fullest of the others, and how many are left out.
pub(crate) fn write_lines(f: &mut fmt::Formatter<'_>, lines: &[PortLine]) -> fmt::Result {
    for line in lines.iter().filter(|line| line.is_scarce()) {
        let seconds = line.scarce_seconds.unwrap_or_default();
        writeln!(f, "ports     {line}, {SCARCE} % or more for {seconds:.0} s: {}", line.advice())?;
    }
    let mut others: Vec<_> = lines.iter().filter(|line| !line.is_scarce()).collect();
    others.sort_by_key(|line| std::cmp::Reverse(line.per_cent()));
    for line in others.iter().take(LISTED) {
        writeln!(f, "ports     {line}")?;
    }
    match others.get(LISTED) {
        Some(next) => writeln!(
            f,
            "ports     {} more addresses and protocols, at most {} % in use",
            others.len() - LISTED,
            next.per_cent()
        ),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn share(in_use: u64, ports: u64, remote: Option<u8>) -> PortShare {
        let remote = remote.map(|last| ([198, 51, 100, last].into(), 443));
        PortShare { address: [203, 0, 113, 1].into(), protocol: 6, remote, in_use, ports }
    }

    fn text(lines: &[PortLine]) -> String {
        struct Text<'a>(&'a [PortLine]);
        impl fmt::Display for Text<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_lines(f, self.0)
            }
        }
        Text(lines).to_string()
    }

    #[test]
    fn ports_are_scarce_from_80_per_cent_on_until_fewer_are_in_use() {
        let mut scarcity = Scarcity::default();
        let mut at = |seconds, in_use| {
            let now = UNIX_EPOCH + Duration::from_secs(seconds);
            let line = scarcity.lines(&[share(in_use, 1_000, None)], now).remove(0);
            (line.scarce_since, line.scarce_seconds)
        };
        assert_eq!(at(100, 799), (None, None));
        assert_eq!(at(101, 800), (Some(101.0), Some(0.0)));
        assert_eq!(at(108, 1_000), (Some(101.0), Some(7.0)));
        assert_eq!(at(50, 1_000), (Some(101.0), Some(0.0)), "the clock was put back");
        assert_eq!(at(109, 799), (None, None));
        assert_eq!(at(110, 900), (Some(110.0), Some(0.0)));
        let unused = scarcity.lines(&[share(0, 1_000, None)], UNIX_EPOCH);
        assert_eq!(unused, [], "nothing is in use");
    }

    #[test]
    fn the_text_names_scarce_ports_first_and_what_to_do() {
        let now = UNIX_EPOCH + Duration::from_secs(1_000);
        let mut scarcity = Scarcity::default();
        let shares = [share(10, 64_512, None), share(52_000, 64_512, None)];
        scarcity.lines(&shares, now);
        let lines = scarcity.lines(&shares, now + Duration::from_secs(312));
        let expected = "ports     203.0.113.1 tcp: 52000 of 64512 ports in use (80 %), 80 % or more for 312 s: \
                        add addresses to `external`, or lower `quota`\n\
                        ports     203.0.113.1 tcp: 10 of 64512 ports in use (0 %)\n";
        assert_eq!(text(&lines), expected);
        let json = serde_json::to_value(&lines).unwrap();
        assert_eq!((&json[1]["in_use"], &json[1]["ports"]), (&52_000.into(), &64_512.into()));
        assert_eq!((&json[1]["scarce_since"], json[0].get("remote")), (&1_000.0.into(), None));
    }

    #[test]
    fn the_text_names_the_most_crowded_remote_endpoint() {
        let line = Scarcity::default().lines(&[share(480, 504, Some(7))], UNIX_EPOCH).remove(0);
        assert_eq!(
            line.to_string(),
            "203.0.113.1 tcp: 480 of 504 ports in use towards 198.51.100.7:443 in the fullest shard (95 %)"
        );
        assert!(line.advice().contains("`shards`"));
    }

    #[test]
    fn a_long_list_is_cut_short_and_says_so() {
        let shares: Vec<_> = (1..=20).map(|used| share(used, 100, None)).collect();
        let text = text(&Scarcity::default().lines(&shares, UNIX_EPOCH));
        assert_eq!(text.lines().count(), LISTED + 1);
        let last = text.lines().last().unwrap();
        assert_eq!(last, "ports     12 more addresses and protocols, at most 12 % in use");
    }
}
