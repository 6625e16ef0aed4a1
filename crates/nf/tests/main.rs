//! What the code of network functions may not contain.

mod fence;
