//! Netlink (netlink(7), `linux/netlink.h`): the socket, messages, and their attributes. What the messages of a family state is read by
//! the module of that family.

mod attribute;
mod message;
mod socket;

pub use attribute::{attribute, attributes};
pub(crate) use attribute::{find, text, u16_at, u32_at};
#[cfg(test)]
pub(crate) use message::tests::message as message_of_kind;
pub(crate) use message::{ACKNOWLEDGE, DUMP, request};
pub use message::{Content, Message, messages};
pub use socket::{LONGEST, NetlinkSocket, Received};
