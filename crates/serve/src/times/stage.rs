//! Where a request spends its time.

/// What a request goes through, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestStage {
    /// It waits in the receive queue of the device.
    ReceiveQueue,
    /// Its segment is taken by TCP, and it is parsed.
    TcpIn,
    /// It waits to be handled.
    Queue,
    /// The application handles it.
    Application,
    /// Its reply waits for those to earlier requests of its connection, and for a worker to send it.
    Turn,
    /// Its reply is encoded and sent.
    TcpOut,
}

impl RequestStage {
    /// How many there are.
    pub const COUNT: usize = 6;
    /// All stages, in order.
    pub const ALL: [RequestStage; RequestStage::COUNT] = [
        RequestStage::ReceiveQueue,
        RequestStage::TcpIn,
        RequestStage::Queue,
        RequestStage::Application,
        RequestStage::Turn,
        RequestStage::TcpOut,
    ];

    /// A name of one word, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            RequestStage::ReceiveQueue => "receive_queue",
            RequestStage::TcpIn => "tcp_in",
            RequestStage::Queue => "queue",
            RequestStage::Application => "application",
            RequestStage::Turn => "turn",
            RequestStage::TcpOut => "tcp_out",
        }
    }
}
