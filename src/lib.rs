//! The face of rheostat: what the author of a network function imports.
