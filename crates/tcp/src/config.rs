//! Settings of connections.

use std::time::Duration;

use crate::congestion::Algorithm;

/// Settings that connections of a listener, or of a client, have in common.
#[derive(Clone, Debug)]
pub struct Config {
    /// The largest segment that is received, options excluded (RFC 6691); segments sent are no larger either.
    pub mss: u16,
    /// What the peer takes if it does not say: 536 with IPv4, 1,220 with IPv6.
    pub default_mss: u16,
    /// Bytes that wait to be sent or acknowledged at most. At most 2^30.
    pub send_buffer: usize,
    /// Bytes that may wait so at first. The bound grows to twice the congestion window, up to `send_buffer`, as memory allows.
    pub initial_send_buffer: usize,
    /// Bytes received but not read at most, those beyond gaps included. The window is never larger. At most 2^30.
    pub receive_buffer: usize,
    /// The window at first. It grows to twice what the program reads in a round trip, up to `receive_buffer`, as memory allows. The
    /// window scale is that of `receive_buffer`.
    pub initial_receive_buffer: usize,
    /// Whether to offer time stamps.
    pub timestamps: bool,
    /// Whether to offer selective acknowledgements.
    pub sack: bool,
    /// Whether to offer scaled windows.
    pub window_scaling: bool,
    /// Whether small segments wait while data is unacknowledged (Nagle's algorithm).
    pub nagle: bool,
    /// How long an acknowledgement may wait for data to go with; at most 500 ms.
    pub ack_delay: Duration,
    /// The retransmission timeout before the first measurement.
    pub initial_rto: Duration,
    /// The least retransmission timeout. RFC 6298 wants a second; this is what Linux has.
    pub min_rto: Duration,
    /// The largest retransmission timeout, and interval of probes.
    pub max_rto: Duration,
    /// The congestion controller.
    pub congestion: Algorithm,
    /// How long the handshake of a connection that this end opens may take.
    pub connect_timeout: Duration,
    /// How long data may remain unacknowledged, or probes of a window unanswered.
    pub user_timeout: Duration,
    /// Whether, and how, to probe idle peers.
    pub keep_alive: Option<KeepAlive>,
    /// How long the peer may take to close after we have closed both directions.
    pub fin_wait_timeout: Duration,
    /// How long a closed connection is remembered: twice the maximum segment lifetime.
    pub time_wait: Duration,
}

/// Probes of idle peers (RFC 9293, 3.8.4).
#[derive(Clone, Copy, Debug)]
pub struct KeepAlive {
    /// Silence before the first probe.
    pub idle: Duration,
    /// Silence between probes.
    pub interval: Duration,
    /// Probes without answer that end the connection.
    pub probes: u8,
}

impl Config {
    /// The window of a SYN, which is not scaled.
    pub(crate) fn window_of_syn(&self) -> u16 {
        let size = self.receive_buffer.min(self.initial_receive_buffer);
        size.min(u16::MAX.into()) as u16
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            mss: 1_460,
            default_mss: 536,
            send_buffer: 4 << 20,
            initial_send_buffer: 64 << 10,
            receive_buffer: 6 << 20,
            initial_receive_buffer: 64 << 10,
            timestamps: true,
            sack: true,
            window_scaling: true,
            nagle: true,
            ack_delay: Duration::from_millis(40),
            initial_rto: Duration::from_secs(1),
            min_rto: Duration::from_millis(200),
            max_rto: Duration::from_secs(60),
            congestion: Algorithm::default(),
            connect_timeout: Duration::from_secs(180),
            user_timeout: Duration::from_secs(300),
            keep_alive: None,
            fin_wait_timeout: Duration::from_secs(60),
            time_wait: Duration::from_secs(60),
        }
    }
}
