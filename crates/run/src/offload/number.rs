//! Names a flow that is away.

use std::fmt;

use rheostat_base::LaneId;

/// A flow that is away from its home, which chose the number. It names another one once the flow is home again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowNumber(u32);

impl FlowNumber {
    /// The `place`-th flow of `home`.
    pub(crate) fn new(home: LaneId, place: usize) -> FlowNumber {
        FlowNumber(u32::from(home.0) << 16 | place as u32 & 0xffff)
    }

    /// The number that has these bits.
    #[inline]
    pub fn from_bits(bits: u32) -> FlowNumber {
        FlowNumber(bits)
    }

    /// The number's bits.
    #[inline]
    pub fn bits(self) -> u32 {
        self.0
    }

    /// The flow's home.
    #[inline]
    pub(crate) fn home(self) -> LaneId {
        LaneId((self.0 >> 16) as u16)
    }

    /// Which of its home's flows it is.
    #[inline]
    pub(crate) fn place(self) -> usize {
        (self.0 & 0xffff) as usize
    }
}

impl fmt::Display for FlowNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "flow {} of {}", self.place(), self.home())
    }
}
