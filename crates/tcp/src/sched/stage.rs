//! What is done for a request, in order.

/// A stage of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Taking the packet from a receive queue.
    Delivery,
    /// Inbound TCP, up to a parsed request.
    TcpIn,
    /// The application's work on the request.
    Application,
    /// Outbound TCP: the reply leaves.
    TcpOut,
}

impl Stage {
    /// All stages, in the order in which a request passes them.
    pub const ALL: [Stage; 4] = [Stage::Delivery, Stage::TcpIn, Stage::Application, Stage::TcpOut];
}
