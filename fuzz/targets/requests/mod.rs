//! Bytes cut into requests as a connection does it, whole or in pieces.

use std::fmt::Debug;
use std::net::SocketAddr;

use rheostat_serve::{Application, Parsed};

/// What an application makes of bytes that arrive up to each of these places in turn, and of all in the end: what `note` writes of
/// each request, and how it refused what came then. Needs are honoured, as by a connection.
pub fn requests<A: Application>(
    app: &A,
    bytes: &[u8],
    places: &[u16],
    mut note: impl FnMut(&mut Vec<String>, A::Request),
) -> Vec<String>
where
    A::Reply: Debug,
{
    let mut conn = app.accept(SocketAddr::from(([192, 0, 2, 1], 1_024)));
    let mut ends: Vec<_> =
        places.iter().map(|place| usize::from(*place).min(bytes.len())).collect();
    ends.sort_unstable();
    ends.push(bytes.len());
    let (mut taken, mut needed, mut seen) = (0, 1, Vec::new());
    for end in ends {
        while taken < end && end - taken >= needed {
            let unparsed = &bytes[taken..end];
            match app.parse(&mut conn, unparsed) {
                Parsed::Need(more) => needed = more.max(unparsed.len() + 1),
                Parsed::Request { request, len, .. } => {
                    assert!(
                        (1..=unparsed.len()).contains(&len),
                        "a request of bytes that there are"
                    );
                    (taken, needed) = (taken + len, 1);
                    note(&mut seen, request);
                }
                Parsed::Refuse(reply) => {
                    seen.push(format!("refused: {reply:?}"));
                    return seen;
                }
            }
        }
    }
    seen.push(format!("{} bytes are no request", bytes.len() - taken));
    seen
}
