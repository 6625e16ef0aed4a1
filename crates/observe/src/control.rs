//! The language of the control socket: a client sends requests, one line of JSON each, and the running
//! instance answers each with one line; a capture or a trace with many, of which [`Reply::End`] is the last, and a
//! listing with several, of which [`Reply::Listed`] is the last. The language has a version, [`PROTOCOL`], which `hello` returns.
//! Nothing here does I/O.

mod backends;
mod connections;
mod flows;
mod health_word;
mod lanes;
mod listing;
mod mappings;
mod neighbours;
mod protocol_name;
mod reload;
mod reply;
mod request;
mod routes;
mod rows;
mod rules;
mod shards;

pub use backends::{BackendLine, OriginWord};
pub use connections::{ConnectionLine, ConnectionsRequest, StateWord, Windows};
pub use flows::{DeleteFlowsRequest, FieldMap, FlowEnds, FlowLine, FlowsRequest};
pub use health_word::HealthWord;
pub use lanes::{LaneLine, QueuedPackets};
pub use listing::{
    Column, DEFAULT_LIMIT, ListingRow, MOST_ROWS, OrderError, PIECE, Page, PageRequest, Selection,
    SortKey, SortOrder, TextTable,
};
pub use mappings::{MappingLine, MappingsRequest};
pub use neighbours::{NeighbourLine, NeighbourWord};
pub use protocol_name::protocol_name;
pub use reload::{
    ChangedKey, ConfigState, LONGEST_CONFIGURATION, LastReload, ReloadRequest, ReloadResult,
    Reloaded, SentFile,
};
pub use reply::{BackendState, DeviceState, FileInUse, Reply, Status};
pub use request::{CaptureRequest, ExplainRequest, ProfileRequest, Request, Shuffle, TraceRequest};
pub use routes::{RouteLine, RouteOrigin, RouteWord};
pub use rows::{ListRequest, ListedRow, Listing, Rows};
pub use rules::RuleLine;
pub use shards::ShardLine;

/// The longest line that a client may send, in bytes.
pub const LONGEST_REQUEST: usize = 64 << 10;

/// The version of this language: 1 had no listings but that of connections. A newer version adds requests, replies and fields, and
/// takes none away.
pub const PROTOCOL: u32 = 2;
/// The oldest version whose requests are still answered.
pub const OLDEST_PROTOCOL: u32 = 1;

/// The reply to [`Request::Hello`].
pub fn hello() -> Reply {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    Reply::Hello { protocol: PROTOCOL, oldest: OLDEST_PROTOCOL, version }
}

/// Reads a request.
///
/// # Errors
/// The reply that states the error.
pub fn parse(line: &str) -> Result<Request, Reply> {
    serde_json::from_str(line).map_err(|error: serde_json::Error| Reply::Error {
        message: format!(
            "not a request: {}; write, for example, {{\"command\":\"status\"}} on a line. This is rheostat {}, which speaks \
             versions {OLDEST_PROTOCOL} to {PROTOCOL} of the control protocol",
            shortened(error.to_string()),
            env!("CARGO_PKG_VERSION")
        ),
    })
}

/// The beginning of an error that quotes what a client has sent.
fn shortened(mut error: String) -> String {
    const LONGEST: usize = 1_000;
    if error.len() > LONGEST {
        error.truncate(error.floor_char_boundary(LONGEST));
        error.push('…');
    }
    error
}

/// A line of either side, with its end.
pub fn line(message: &impl serde::Serialize) -> String {
    let mut line =
        serde_json::to_string(message).expect("numbers, names and lists are always JSON");
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_that_programs_write_are_read() {
        let shuffle = Shuffle { seed: 7, times: 3, pause_ms: 0 };
        for (line, request) in [
            (r#"{"command":"status"}"#, Request::Status),
            (r#"{"command":"stop"}"#, Request::Stop),
            (r#"{"command":"hello"}"#, Request::Hello),
            (
                r#"{"command":"list","of":{"connections":{"lane":1}},"sort":"idle,desc","limit":5}"#,
                Request::List(ListRequest {
                    sort: Some("idle,desc".into()),
                    limit: Some(5),
                    ..ListRequest::of(Listing::Connections(ConnectionsRequest {
                        lane: Some(1),
                        ..ConnectionsRequest::default()
                    }))
                }),
            ),
            (
                r#"{"command":"table","device":"lan"}"#,
                Request::Table { device: "lan".into(), entries: None, shuffle: None },
            ),
            (
                r#"{"command":"table","device":"lan","entries":[0,1,1,0]}"#,
                Request::Table {
                    device: "lan".into(),
                    entries: Some(vec![0, 1, 1, 0]),
                    shuffle: None,
                },
            ),
            (
                r#"{"command":"table","device":"lan","shuffle":{"seed":7,"times":3}}"#,
                Request::Table { device: "lan".into(), entries: None, shuffle: Some(shuffle) },
            ),
            (
                r#"{"command":"backend","service":"web","backend":"10.0.0.2","health":"draining"}"#,
                Request::Backend {
                    service: "web".into(),
                    backend: "10.0.0.2".into(),
                    health: HealthWord::Draining,
                },
            ),
        ] {
            assert_eq!(parse(line).unwrap(), request);
            assert_eq!(parse(super::line(&request).trim()).unwrap(), request);
        }
    }

    #[test]
    fn what_is_no_request_is_answered_with_an_example() {
        for line in ["", "status", "{}", r#"{"command":"fly"}"#, r#"{"command":"table"}"#] {
            let Err(Reply::Error { message }) = parse(line) else {
                panic!("`{line}` was taken for a request");
            };
            assert!(message.contains("not a request") && message.contains("status"), "{message}");
            assert!(message.contains("versions 1 to 2 of the control protocol"), "{message}");
        }
    }

    #[test]
    fn replies_come_back_as_they_were_sent() {
        let reply = Reply::Table { device: "lan".into(), entries: vec![0, 1], rewrites: 1 };
        let text = line(&reply);
        assert_eq!(
            text,
            "{\"reply\":\"table\",\"device\":\"lan\",\"entries\":[0,1],\"rewrites\":1}\n"
        );
        assert_eq!(serde_json::from_str::<Reply>(&text).unwrap(), reply);
    }
}
