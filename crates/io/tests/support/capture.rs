//! Captures made by hand, byte by byte, in either byte order.

/// A growing file.
pub(crate) struct Bytes {
    pub(crate) bytes: Vec<u8>,
    big_endian: bool,
}

impl Bytes {
    pub(crate) fn new(big_endian: bool) -> Bytes {
        Bytes { bytes: Vec::new(), big_endian }
    }

    pub(crate) fn u16(&mut self, value: u16) -> &mut Bytes {
        let bytes = if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
        self.raw(&bytes)
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Bytes {
        let bytes = if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
        self.raw(&bytes)
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) -> &mut Bytes {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// The header of a pcap file.
    pub(crate) fn pcap(&mut self, magic: u32, link: u32) -> &mut Bytes {
        self.u32(magic).u16(2).u16(4).u32(0).u32(0).u32(65_535).u32(link)
    }

    /// A packet of a pcap file.
    pub(crate) fn record(
        &mut self,
        seconds: u32,
        fraction: u32,
        data: &[u8],
        wire: u32,
    ) -> &mut Bytes {
        self.u32(seconds).u32(fraction).u32(data.len() as u32).u32(wire).raw(data)
    }

    /// A block of a pcapng file around what `body` writes.
    pub(crate) fn block(&mut self, kind: u32, body: impl FnOnce(&mut Bytes)) -> &mut Bytes {
        let mut inner = Bytes::new(self.big_endian);
        body(&mut inner);
        inner.bytes.resize(inner.bytes.len().next_multiple_of(4), 0);
        let length = inner.bytes.len() as u32 + 12;
        self.u32(kind).u32(length).raw(&inner.bytes).u32(length)
    }

    pub(crate) fn section(&mut self) -> &mut Bytes {
        self.block(0x0a0d_0d0a, |block| {
            block.u32(0x1a2b_3c4d).u16(1).u16(0).raw(&[0xff; 8]);
        })
    }

    /// An interface; `resolution` and `offset` become options.
    pub(crate) fn interface(
        &mut self,
        link: u16,
        resolution: Option<u8>,
        offset: Option<u64>,
    ) -> &mut Bytes {
        self.block(1, |block| {
            block.u16(link).u16(0).u32(0);
            if let Some(resolution) = resolution {
                block.u16(9).u16(1).raw(&[resolution, 0, 0, 0]);
            }
            if let Some(offset) = offset {
                let big_endian = block.big_endian;
                let bytes = if big_endian { offset.to_be_bytes() } else { offset.to_le_bytes() };
                block.u16(14).u16(8).raw(&bytes);
            }
            block.u32(0);
        })
    }

    pub(crate) fn enhanced(
        &mut self,
        interface: u32,
        ticks: u64,
        data: &[u8],
        wire: u32,
    ) -> &mut Bytes {
        self.block(6, |block| {
            block.u32(interface).u32((ticks >> 32) as u32).u32(ticks as u32);
            block.u32(data.len() as u32).u32(wire).raw(data);
        })
    }
}
