//! The clients of a store, as `CLIENT` lists them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rheostat_base::Time;

/// Locks over which clients are spread.
const STRIPES: u64 = 64;
/// Clients that one list has at most: a reply of about 1 MB.
const LISTED: usize = 10_000;
/// The longest name.
const NAME: usize = 256;

/// All clients, by their numbers.
#[derive(Debug)]
pub(super) struct Clients {
    stripes: Vec<Mutex<BTreeMap<u64, Arc<Client>>>>,
    /// Connections accepted so far.
    accepted: AtomicU64,
}

/// A client. It is in the list until its connection is dropped.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) id: u64,
    peer: SocketAddr,
    since: Time,
    /// Looked at for each command, and so beside the lock. Relaxed: commands of a connection follow each other.
    has_resp3: AtomicBool,
    /// What the client states about itself, by [`Attribute`].
    names: Mutex<[String; 3]>,
}

/// The version of the protocol in which a client gets replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Protocol {
    #[default]
    Resp2,
    Resp3,
}

/// What a client names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attribute {
    Name,
    Library,
    LibraryVersion,
}

/// A name with spaces, control characters or others than ASCII, or one that is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BadName;

/// Takes a client out of the list when it is dropped.
#[derive(Debug)]
pub(super) struct Registration {
    clients: Arc<Clients>,
    pub(super) client: Arc<Client>,
}

impl Clients {
    pub(super) fn new() -> Clients {
        let stripes = (0..STRIPES).map(|_| Mutex::default()).collect();
        Clients { stripes, accepted: AtomicU64::new(0) }
    }

    /// Enters a client that connected at `now`. The first has the number 1.
    pub(super) fn register(self: &Arc<Clients>, peer: SocketAddr, now: Time) -> Registration {
        // Relaxed: the number publishes nothing.
        let id = self.accepted.fetch_add(1, Ordering::Relaxed) + 1;
        let (has_resp3, names) = (AtomicBool::new(false), Mutex::default());
        let client = Arc::new(Client { id, peer, since: now, has_resp3, names });
        self.stripe(id).insert(id, client.clone());
        Registration { clients: self.clone(), client }
    }

    fn stripe(&self, id: u64) -> MutexGuard<'_, BTreeMap<u64, Arc<Client>>> {
        let stripe = &self.stripes[(id % STRIPES) as usize];
        stripe.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connections accepted so far.
    pub(super) fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    /// Clients that are connected.
    pub(super) fn len(&self) -> usize {
        (0..STRIPES).map(|stripe| self.stripe(stripe).len()).sum()
    }

    /// A line for each client, or for each of these, 10,000 at most. Takes time in proportion.
    pub(super) fn list(&self, ids: Option<&[u64]>, now: Time) -> String {
        let mut found = Vec::new();
        match ids {
            Some(ids) => found
                .extend(ids.iter().take(LISTED).filter_map(|id| self.stripe(*id).get(id).cloned())),
            None => {
                for stripe in 0..STRIPES {
                    let room = LISTED - found.len();
                    found.extend(self.stripe(stripe).values().take(room).cloned());
                }
            }
        }
        found.sort_unstable_by_key(|client| client.id);
        found.iter().map(|client| client.line(now)).collect()
    }
}

impl Client {
    pub(super) fn protocol(&self) -> Protocol {
        match self.has_resp3.load(Ordering::Relaxed) {
            true => Protocol::Resp3,
            false => Protocol::Resp2,
        }
    }

    pub(super) fn set_protocol(&self, protocol: Protocol) {
        self.has_resp3.store(protocol == Protocol::Resp3, Ordering::Relaxed);
    }

    pub(super) fn name(&self) -> String {
        self.names()[Attribute::Name as usize].clone()
    }

    /// Names the client, its library or the library's version.
    pub(super) fn set(&self, attribute: Attribute, value: &[u8]) -> Result<(), BadName> {
        let is_right = value.len() <= NAME && value.iter().all(u8::is_ascii_graphic);
        let value = std::str::from_utf8(value).ok().filter(|_| is_right).ok_or(BadName)?;
        value.clone_into(&mut self.names()[attribute as usize]);
        Ok(())
    }

    /// As if it had just connected.
    pub(super) fn reset(&self) {
        self.set_protocol(Protocol::Resp2);
        *self.names() = Default::default();
    }

    /// The line of the client in a list.
    pub(super) fn line(&self, now: Time) -> String {
        let [name, library, version] = self.names().clone();
        let (id, peer, age) = (self.id, self.peer, now.since(self.since).as_secs());
        let protocol = if self.protocol() == Protocol::Resp3 { 3 } else { 2 };
        format!(
            "id={id} addr={peer} name={name} age={age} flags=N db=0 resp={protocol} \
             lib-name={library} lib-ver={version}\n"
        )
    }

    /// Only the lane that has the connection changes them; lists read them.
    fn names(&self) -> MutexGuard<'_, [String; 3]> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.clients.stripe(self.client.id).remove(&self.client.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_listed_while_they_are_connected() {
        let clients = Arc::new(Clients::new());
        let peer = SocketAddr::from(([10, 0, 0, 2], 5_000));
        let mut all: Vec<_> =
            (0..200).map(|_| clients.register(peer, Time::from_secs(1))).collect();
        all[0].client.set(Attribute::Name, b"first").unwrap();
        all[0].client.set(Attribute::Library, b"lib").unwrap();
        all[0].client.set_protocol(Protocol::Resp3);
        assert_eq!(
            clients.list(Some(&[1, 7_000]), Time::from_secs(9)),
            "id=1 addr=10.0.0.2:5000 name=first age=8 flags=N db=0 resp=3 lib-name=lib lib-ver=\n"
        );
        let text = clients.list(None, Time::from_secs(9));
        let ids: Vec<_> = text.lines().map(|line| line.split(' ').next().unwrap()).collect();
        let expected: Vec<_> = (1..=200).map(|id| format!("id={id}")).collect();
        assert_eq!(ids, expected);
        all.truncate(1);
        assert_eq!((clients.len(), clients.accepted()), (1, 200));
        all[0].client.reset();
        assert_eq!(
            (all[0].client.name(), all[0].client.protocol()),
            (String::new(), Protocol::Resp2)
        );
    }

    #[test]
    fn a_name_is_a_word() {
        let clients = Arc::new(Clients::new());
        let one = clients.register(SocketAddr::from(([10, 0, 0, 2], 5_000)), Time::ZERO);
        let long = [b'x'; NAME + 1];
        for name in [&b"a b"[..], b"a\n", b"\xff", "\u{fc}".as_bytes(), &long] {
            assert_eq!(one.client.set(Attribute::Name, name), Err(BadName), "{name:?}");
        }
        assert_eq!(one.client.set(Attribute::Name, &long[1..]), Ok(()));
        assert_eq!(one.client.set(Attribute::Name, b""), Ok(()), "without a name again");
    }
}
