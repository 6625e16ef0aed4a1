//! The devices of a case.

/// One of the two devices of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CasePort {
    Lan,
    Wan,
}

impl CasePort {
    pub(crate) fn name(self) -> &'static str {
        match self {
            CasePort::Lan => "lan",
            CasePort::Wan => "wan",
        }
    }

    pub(crate) fn parse(word: &str) -> Option<CasePort> {
        [CasePort::Lan, CasePort::Wan].into_iter().find(|port| port.name() == word)
    }
}
