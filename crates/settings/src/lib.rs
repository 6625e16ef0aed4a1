//! Reading of configurations: TOML text becomes typed values, and every mistake is noted with its place and its fix.
//!
//! | file | content |
//! |---|---|
//! | `document` | text to a TOML document, with all errors of syntax |
//! | `reader` | a document's keys to typed values, with all that do not fit |
//! | `declared` | settings declared once: reading, flags, help and descriptions come from the declaration |
//! | `findings` | the mistakes noted so far, and the place of each key |
//! | `given` | the values of a file as text, for comparison |
//! | `diagnostic` | a mistake, and its report with lines of the file |
//! | `device` | devices by name and side, as other settings refer to them |
//! | `ethertype` | Ethernet types by name or number |
//! | `section` | the keys of a table to a type of the caller's, by serde too |
//! | `quantity` | numbers with units, as people write and read them |
//! | `lifetime` | lifetimes of flows, with the least that RFCs require |
//! | `suggestion` | the nearest known word, lists of words |

pub mod declared;
pub mod device;
pub mod diagnostic;
pub mod document;
pub mod ethertype;
pub mod findings;
pub mod given;
pub mod lifetime;
pub mod quantity;
pub mod reader;
pub mod section;
pub mod suggestion;

pub use diagnostic::{Finding, Report};
pub use findings::Findings;
pub use given::GivenValue;
pub use reader::{Table, Value};
pub use section::Section;
