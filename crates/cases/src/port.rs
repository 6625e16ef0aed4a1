//! The devices of a case.

/// One of the two devices of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Port {
    Lan,
    Wan,
}

impl Port {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Port::Lan => "lan",
            Port::Wan => "wan",
        }
    }

    pub(crate) fn parse(word: &str) -> Option<Port> {
        [Port::Lan, Port::Wan].into_iter().find(|port| port.name() == word)
    }
}
