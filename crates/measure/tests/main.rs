//! Rows of chains can be measured, and are sound.

mod rows;
