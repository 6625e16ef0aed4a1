//! Connections of a service over TCP, as the control socket shows them.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use super::listing::{Column, ListingRow, SortKey};

/// Which connections to list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConnectionsRequest {
    /// In one of these states; in all but `time-wait` without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<StateWord>,
    /// With this address of the service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local: Option<IpAddr>,
    /// With this port of the service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_port: Option<u16>,
    /// With this peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<IpAddr>,
    /// With this port of the peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote_port: Option<u16>,
    /// On this lane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<u16>,
    /// Of this shard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard: Option<u16>,
    /// How many at most; 10,000 without it, 100,000 at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// The state of a connection, by the words of `ss`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the states of RFC 9293, 3.3.2")]
pub enum StateWord {
    SynSent,
    SynReceived,
    Established,
    #[serde(rename = "fin-wait-1")]
    FinWait1,
    #[serde(rename = "fin-wait-2")]
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
    Closed,
}

impl StateWord {
    /// All of them.
    pub const ALL: [StateWord; 10] = [
        StateWord::SynSent,
        StateWord::SynReceived,
        StateWord::Established,
        StateWord::FinWait1,
        StateWord::FinWait2,
        StateWord::CloseWait,
        StateWord::Closing,
        StateWord::LastAck,
        StateWord::TimeWait,
        StateWord::Closed,
    ];

    /// The word.
    pub fn name(self) -> &'static str {
        match self {
            StateWord::SynSent => "syn-sent",
            StateWord::SynReceived => "syn-received",
            StateWord::Established => "established",
            StateWord::FinWait1 => "fin-wait-1",
            StateWord::FinWait2 => "fin-wait-2",
            StateWord::CloseWait => "close-wait",
            StateWord::Closing => "closing",
            StateWord::LastAck => "last-ack",
            StateWord::TimeWait => "time-wait",
            StateWord::Closed => "closed",
        }
    }
}

/// A connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConnectionLine {
    /// The end of the service.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
    /// The state.
    pub state: StateWord,
    /// The lane it was on.
    pub lane: u16,
    /// The shard that owns it.
    pub shard: u16,
    /// The congestion window, in bytes.
    pub cwnd: u32,
    /// The slow-start threshold, in bytes; none before the first loss.
    pub ssthresh: Option<u32>,
    /// The smoothed round-trip time, in microseconds; none before the first measurement.
    pub srtt_us: Option<u64>,
    /// The retransmission timeout, in microseconds.
    pub rto_us: u64,
    /// Segments sent again.
    pub retransmitted: u64,
    /// Segments that arrived beyond a gap.
    pub out_of_order: u64,
    /// What each end takes beyond what has arrived there, in bytes.
    pub windows: Windows,
    /// Bytes that the service has not read.
    pub unread: u64,
    /// Bytes that were written and have never been sent.
    pub unsent: u64,
    /// Bytes that were sent and are not acknowledged.
    pub unacknowledged: u64,
    /// Seconds for which nothing has gone either way.
    pub idle: f64,
}

/// The windows of a connection, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Windows {
    /// The peer's, which bounds what is sent.
    pub send: u32,
    /// Ours, which bounds what arrives.
    pub receive: u32,
}

impl ListingRow for ConnectionLine {
    const COLUMNS: &'static [Column<ConnectionLine>] = &[
        Column::left(
            "state",
            |line| line.state.name().to_owned(),
            |line| SortKey::text(line.state.name()),
        ),
        Column::left("local", |line| line.local.to_string(), |line| SortKey::endpoint(line.local)),
        Column::left(
            "remote",
            |line| line.remote.to_string(),
            |line| SortKey::endpoint(line.remote),
        ),
        Column::right("lane", |line| line.lane.to_string(), |line| SortKey::number(line.lane)),
        Column::right("shard", |line| line.shard.to_string(), |line| SortKey::number(line.shard)),
        Column::right(
            "unread",
            |line| line.unread.to_string(),
            |line| SortKey::number(line.unread),
        ),
        Column::right(
            "unsent",
            |line| line.unsent.to_string(),
            |line| SortKey::number(line.unsent),
        ),
        Column::hidden("cwnd", |line| SortKey::number(line.cwnd)),
        Column::hidden("ssthresh", |line| {
            line.ssthresh.map_or_else(SortKey::none, SortKey::number)
        }),
        Column::hidden("srtt_us", |line| line.srtt_us.map_or_else(SortKey::none, SortKey::number)),
        Column::hidden("rto_us", |line| SortKey::number(line.rto_us)),
        Column::hidden("retransmitted", |line| SortKey::number(line.retransmitted)),
        Column::hidden("out_of_order", |line| SortKey::number(line.out_of_order)),
        Column::hidden("unacknowledged", |line| SortKey::number(line.unacknowledged)),
        Column::hidden("idle", |line| SortKey::real(line.idle)),
    ];

    fn id(&self) -> SortKey {
        SortKey::endpoint(self.remote).and(SortKey::endpoint(self.local))
    }

    /// As `ss -i` has it: the figures below the connection.
    fn details(&self) -> Option<String> {
        let ms = |us: u64| us as f64 / 1_000.0;
        let ssthresh = self.ssthresh.map(|ssthresh| format!(" ssthresh:{ssthresh}"));
        let srtt = self.srtt_us.map(|srtt| format!(" rtt:{:.3}ms", ms(srtt)));
        let Windows { send, receive } = self.windows;
        Some(format!(
            "cwnd:{}{}{} rto:{:.0}ms retransmitted:{} out_of_order:{} send_window:{send} \
             receive_window:{receive} unacknowledged:{} idle:{:.1}s",
            self.cwnd,
            ssthresh.unwrap_or_default(),
            srtt.unwrap_or_default(),
            ms(self.rto_us),
            self.retransmitted,
            self.out_of_order,
            self.unacknowledged,
            self.idle
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::TextTable;

    #[test]
    fn a_state_has_the_same_word_in_both_forms() {
        for state in StateWord::ALL {
            let json = serde_json::to_string(&state).unwrap();
            assert_eq!(json, format!("\"{}\"", state.name()));
        }
    }

    #[test]
    fn a_connection_is_shown_in_two_lines() {
        let line = ConnectionLine {
            local: "10.0.0.1:80".parse().unwrap(),
            remote: "10.0.0.2:4000".parse().unwrap(),
            state: StateWord::Established,
            lane: 1,
            shard: 97,
            cwnd: 14_480,
            ssthresh: None,
            srtt_us: Some(1_250),
            rto_us: 201_000,
            retransmitted: 3,
            out_of_order: 0,
            windows: Windows { send: 65_536, receive: 131_072 },
            unread: 5,
            unsent: 0,
            unacknowledged: 1_448,
            idle: 2.04,
        };
        assert_eq!(
            TextTable(std::slice::from_ref(&line)).to_string(),
            "state        local        remote         lane  shard  unread  unsent\n\
             established  10.0.0.1:80  10.0.0.2:4000     1     97       5       0\n      \
             cwnd:14480 rtt:1.250ms rto:201ms retransmitted:3 out_of_order:0 send_window:65536 \
             receive_window:131072 unacknowledged:1448 idle:2.0s"
        );
        let json = serde_json::to_value(&line).unwrap();
        assert_eq!(serde_json::from_value::<ConnectionLine>(json).unwrap(), line);
    }
}
