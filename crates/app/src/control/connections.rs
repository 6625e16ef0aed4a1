//! `rheo connections`: the connections of a running service over TCP, and what the service does when it is asked for them.

use std::io;
use std::net::IpAddr;
use std::process::ExitCode;
use std::time::Duration;

use rheostat_base::{LaneId, ShardId};
use rheostat_observe::control::{
    ConnectionLine, ConnectionsRequest, ListRequest, Listing, PIECE, Page, Reply, Selection,
    StateWord, Windows,
};
use rheostat_serve::{ConnectionFilter, ConnectionRecord, ConnectionState as State};

use super::ClientError;
use super::instance::Instance;
use super::listing::{self, ListingArgs};
use super::peer::Peer;

/// How long lanes may take to look at what they have.
const TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo connections --control /run/rheo/web.sock
  rheo connections --state established --remote 192.0.2.7
  rheo connections --local-port 80 --sort retransmitted,desc --limit 5
  rheo connections --watch --count

Bytes: unread has arrived and was not taken by the service; unsent was written and has never been sent.
With --json, an array: {local, remote, state, lane, shard, cwnd, ssthresh, srtt_us, rto_us, retransmitted, out_of_order,
windows: {send, receive}, unread, unsent, unacknowledged, idle}; idle in seconds.
Those in TIME-WAIT are listed with --state time-wait; nothing else is known of them.")]
pub(crate) struct Args {
    #[command(flatten)]
    listing: ListingArgs,
    /// In this state, such as established or close-wait; may be given several times.
    #[arg(long, value_name = "STATE", value_parser = state)]
    state: Vec<StateWord>,
    /// With this address of the service.
    #[arg(long, value_name = "ADDRESS")]
    local: Option<IpAddr>,
    /// With this port of the service.
    #[arg(long, value_name = "P")]
    local_port: Option<u16>,
    /// With this peer.
    #[arg(long, value_name = "ADDRESS")]
    remote: Option<IpAddr>,
    /// With this port of the peer.
    #[arg(long, value_name = "P")]
    remote_port: Option<u16>,
    /// On this lane.
    #[arg(long, value_name = "N")]
    lane: Option<u16>,
    /// Of this shard.
    #[arg(long, value_name = "N")]
    shard: Option<u16>,
}

fn state(text: &str) -> Result<StateWord, String> {
    let found = StateWord::ALL.into_iter().find(|state| state.name() == text);
    found.ok_or_else(|| {
        let names: Vec<_> = StateWord::ALL.iter().map(|state| state.name()).collect();
        format!("the states are {}", names.join(", "))
    })
}

/// Asks and prints.
pub(crate) fn run(args: &Args) -> Result<ExitCode, ClientError> {
    let of = Listing::Connections(ConnectionsRequest {
        states: args.state.clone(),
        local: args.local,
        local_port: args.local_port,
        remote: args.remote,
        remote_port: args.remote_port,
        lane: args.lane,
        shard: args.shard,
        limit: None,
    });
    listing::print::<ConnectionLine>(&args.listing, of, None)
}

impl Instance {
    /// Sends the connections that are meant, in the form of the first version of the protocol.
    ///
    /// # Errors
    /// When the client has gone, or does not read.
    pub(super) fn connections(
        &self,
        request: &ConnectionsRequest,
        peer: &mut Peer,
    ) -> io::Result<()> {
        let page = ListRequest {
            limit: request.limit,
            ..ListRequest::of(Listing::Connections(request.clone()))
        };
        match self.page_of_connections(request, &page) {
            Ok((Page { rows, matched, .. }, silent)) => {
                for piece in rows.chunks(PIECE) {
                    peer.send(&Reply::Connections { connections: piece.to_vec() })?;
                }
                peer.send(&Reply::Listed { matched, silent, next: None })
            }
            Err(message) => peer.send(&Reply::Error { message }),
        }
    }

    /// A page of the connections that are meant, and the lanes that have not answered.
    pub(super) fn page_of_connections(
        &self,
        request: &ConnectionsRequest,
        page: &ListRequest,
    ) -> Result<(Page<ConnectionLine>, u64), String> {
        let Some(service) = &self.service else {
            return Err(self.without("connections"));
        };
        let filter = ConnectionFilter {
            states: request.states.iter().map(|word| state_of(*word)).collect(),
            local: request.local,
            local_port: request.local_port,
            remote: request.remote,
            remote_port: request.remote_port,
            lane: request.lane.map(LaneId),
            shard: request.shard.map(ShardId),
        };
        let mut selection = Selection::new(page).map_err(|error| error.to_string())?;
        let silent = service.visit(filter, TIMEOUT, |record| selection.add(line(&record)));
        Ok((selection.finish(), silent as u64))
    }
}

fn line(record: &ConnectionRecord) -> ConnectionLine {
    let micros = |duration: Duration| duration.as_micros().try_into().unwrap_or(u64::MAX);
    let line = ConnectionLine {
        local: record.local,
        remote: record.remote,
        state: word_of(record.state),
        lane: record.lane.0,
        shard: record.shard.0,
        cwnd: 0,
        ssthresh: None,
        srtt_us: None,
        rto_us: 0,
        retransmitted: 0,
        out_of_order: 0,
        windows: Windows::default(),
        unread: 0,
        unsent: 0,
        unacknowledged: 0,
        idle: record.idle.as_secs_f64(),
    };
    let Some(info) = &record.info else { return line };
    ConnectionLine {
        cwnd: info.congestion_window,
        ssthresh: Some(info.threshold).filter(|threshold| *threshold < u32::MAX),
        srtt_us: info.round_trip.map(micros),
        rto_us: micros(info.retransmission_timeout),
        retransmitted: info.retransmitted,
        out_of_order: info.out_of_order,
        windows: Windows { send: info.send_window, receive: info.receive_window },
        unread: info.unread as u64,
        unsent: info.unsent as u64,
        unacknowledged: info.unacknowledged.saturating_sub(info.unsent) as u64,
        ..line
    }
}

/// The states with their words.
const STATES: [(State, StateWord); 10] = [
    (State::SynSent, StateWord::SynSent),
    (State::SynReceived, StateWord::SynReceived),
    (State::Established, StateWord::Established),
    (State::FinWait1, StateWord::FinWait1),
    (State::FinWait2, StateWord::FinWait2),
    (State::CloseWait, StateWord::CloseWait),
    (State::Closing, StateWord::Closing),
    (State::LastAck, StateWord::LastAck),
    (State::TimeWait, StateWord::TimeWait),
    (State::Closed, StateWord::Closed),
];

fn state_of(word: StateWord) -> State {
    let found = STATES.iter().find(|(_, other)| *other == word);
    found.map_or(State::Closed, |(state, _)| *state)
}

fn word_of(state: State) -> StateWord {
    let found = STATES.iter().find(|(other, _)| *other == state);
    found.map_or(StateWord::Closed, |(_, word)| *word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_words_and_words_states() {
        for word in StateWord::ALL {
            assert_eq!(word_of(state_of(word)), word);
            assert_eq!(state(word.name()), Ok(word));
        }
        assert!(state("open").unwrap_err().contains("syn-sent, "));
    }
}
