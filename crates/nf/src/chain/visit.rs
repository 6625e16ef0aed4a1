//! The kinds of packets, by which the handlers for them are chosen.

use std::fmt;

use rheostat_state::FlowMut;

/// What a packet is to a chain whose functions have states of type `S` for a new flow.
pub enum Visit<'a, 'f, S> {
    /// The first of a flow: the functions that admit it leave their states here.
    First(&'a mut S),
    /// One of a live flow.
    Known(&'a mut FlowMut<'f>),
    /// One of no flow.
    NonFlow,
}

impl<'f, A, B> Visit<'_, 'f, (A, B)> {
    /// What the packet is to the first of two chains.
    #[inline(always)]
    pub(super) fn of_first(&mut self) -> Visit<'_, 'f, A> {
        match self {
            Visit::First((states, _)) => Visit::First(states),
            Visit::Known(flow) => Visit::Known(flow),
            Visit::NonFlow => Visit::NonFlow,
        }
    }

    /// What the packet is to the second of two chains.
    #[inline(always)]
    pub(super) fn of_second(&mut self) -> Visit<'_, 'f, B> {
        match self {
            Visit::First((_, states)) => Visit::First(states),
            Visit::Known(flow) => Visit::Known(flow),
            Visit::NonFlow => Visit::NonFlow,
        }
    }
}

impl<S> fmt::Debug for Visit<'_, '_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Visit::First(_) => "First",
            Visit::Known(_) => "Known",
            Visit::NonFlow => "NonFlow",
        })
    }
}
