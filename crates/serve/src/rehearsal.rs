//! Tries an application out on bytes, without TCP: for its tests.

use std::net::SocketAddr;

use rheostat_base::LaneId;

use crate::application::{Application, Encoded, Handled, Parsed, ReplyBuffer};

/// Room for a reply each time: little, so that long ones are written in pieces.
const ROOM: usize = 1_024;

/// What an application said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rehearsal {
    /// The replies, in order.
    pub said: Vec<u8>,
    /// Bytes that are no whole request.
    pub left: Vec<u8>,
    /// How it ended the connection, if it did.
    pub ended: Option<Ended>,
}

/// How an application ends a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Behind the last reply.
    Closed,
    /// By a reset, since a reply could not be finished.
    Aborted,
}

/// Shows `app` a connection on which these pieces arrive one after the other, as TCP may cut them.
///
/// ```
/// use rheostat_serve::{echo::Echo, rehearse};
///
/// assert_eq!(rehearse(&Echo, &[b"ab", b"c"]).said, b"abc");
/// ```
pub fn rehearse<A: Application>(app: &A, pieces: &[&[u8]]) -> Rehearsal {
    let peer = SocketAddr::from(([192, 0, 2, 1], 1_024));
    let (mut conn, mut worker) = (app.accept(peer), app.worker(LaneId(0)));
    let mut rehearsal = Rehearsal::default();
    for piece in pieces {
        rehearsal.left.extend_from_slice(piece);
        while rehearsal.ended.is_none() && !rehearsal.left.is_empty() {
            let (mut reply, is_last) = match app.parse(&mut conn, &rehearsal.left) {
                Parsed::Need(_) => break,
                Parsed::Refuse(reply) => (reply, true),
                Parsed::Request { request, len, .. } => {
                    rehearsal.left.drain(..len);
                    let mut handled = app.handle(&mut worker, request);
                    loop {
                        match handled {
                            Handled::Done(reply) => break (reply, false),
                            Handled::More(request) => handled = app.handle(&mut worker, request),
                        }
                    }
                }
            };
            rehearsal.ended = write(app, &mut conn, &mut reply, &mut rehearsal.said);
            if is_last {
                rehearsal.ended.get_or_insert(Ended::Closed);
            }
        }
    }
    rehearsal
}

/// Writes a reply in as many pieces as it takes.
fn write<A: Application>(
    app: &A,
    conn: &mut A::Conn,
    reply: &mut A::Reply,
    said: &mut Vec<u8>,
) -> Option<Ended> {
    loop {
        let mut piece = Vec::new();
        let encoded = app.encode(conn, reply, &mut ReplyBuffer::new(&mut piece, ROOM, usize::MAX));
        said.extend_from_slice(&piece);
        match encoded {
            Encoded::Done => return None,
            Encoded::Close => return Some(Ended::Closed),
            Encoded::More if !piece.is_empty() => {}
            Encoded::More | Encoded::Abort => return Some(Ended::Aborted),
        }
    }
}
