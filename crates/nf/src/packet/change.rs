//! Changes of a packet: setters that keep its checksums right.

use std::net::IpAddr;

use rheostat_packet::Network;
use rheostat_packet::wire::{
    End, Ipv4PacketMut, Ipv6PacketMut, Quoted, Rewrite, RewriteError, replace_endpoint, tcp,
};

use super::Packet;

/// Bytes of a transport header that a function can change: up to TCP's checksum and urgent pointer.
const TRANSPORT: usize = 20;
/// Bytes of the longest TCP header, with options.
const LONGEST_TCP: usize = 60;

/// Every setter adjusts the checksums that cover the field. One that was right stays right, one that was
/// wrong stays wrong by as much, and a UDP datagram without one still has none.
impl Packet<'_> {
    /// The addresses and ports, to change several of them at once.
    ///
    /// # Errors
    /// [`RewriteError`] unless the packet is IP and its checksums can be kept.
    #[inline]
    pub fn rewrite(&mut self) -> Result<Rewrite<'_>, RewriteError> {
        self.rewritten = true;
        self.keep(usize::from(self.info.headers.l4) + TRANSPORT);
        Rewrite::new(self.mbuf.data_mut(), &self.info.headers)
    }

    /// Sets the address that the packet comes from.
    ///
    /// # Errors
    /// [`RewriteError`] unless the packet is IP of the address's family, and its checksums can be kept.
    pub fn set_source(&mut self, address: IpAddr) -> Result<(), RewriteError> {
        self.rewrite()?.set_source(address)
    }

    /// Sets the address that the packet goes to.
    ///
    /// # Errors
    /// As [`Packet::set_source`].
    pub fn set_destination(&mut self, address: IpAddr) -> Result<(), RewriteError> {
        self.rewrite()?.set_destination(address)
    }

    /// Sets the source port, or the identifier of an ICMP query.
    ///
    /// # Errors
    /// [`RewriteError::NoPorts`] for packets without ports, fragments other than the first among them, and
    /// as [`Packet::set_source`].
    pub fn set_source_port(&mut self, port: u16) -> Result<(), RewriteError> {
        self.rewrite()?.set_source_port(port)
    }

    /// Sets the destination port, or the identifier of an ICMP query.
    ///
    /// # Errors
    /// As [`Packet::set_source_port`].
    pub fn set_destination_port(&mut self, port: u16) -> Result<(), RewriteError> {
        self.rewrite()?.set_destination_port(port)
    }

    /// Sets one address, and beside it the port, if there is a new one; fragments other than the first
    /// have no ports to set.
    ///
    /// # Errors
    /// As [`Packet::set_source_port`]. The address may have been set when the port cannot be.
    #[inline]
    pub fn set_endpoint(
        &mut self,
        end: End,
        address: IpAddr,
        port: Option<u16>,
    ) -> Result<(), RewriteError> {
        let port = port.filter(|_| !self.is_later_fragment());
        let mut rewrite = self.rewrite()?;
        match end {
            End::Source => {
                rewrite.set_source(address)?;
                port.map_or(Ok(()), |port| rewrite.set_source_port(port))
            }
            End::Destination => {
                rewrite.set_destination(address)?;
                port.map_or(Ok(()), |port| rewrite.set_destination_port(port))
            }
        }
    }

    /// Replaces one endpoint of a packet of TCP or UDP, and adjusts the checksums: the same as [`Packet::set_endpoint`], and
    /// faster, for fast paths.
    ///
    /// # Errors
    /// As [`replace_endpoint`].
    #[inline(always)]
    pub fn replace_endpoint(
        &mut self,
        end: End,
        endpoint: (IpAddr, u16),
    ) -> Result<(), RewriteError> {
        self.rewritten = true;
        self.keep(usize::from(self.info.headers.l4) + TRANSPORT);
        replace_endpoint(self.mbuf.data_mut(), &self.info.headers, end, endpoint)
    }

    /// The packet that this ICMP error quotes, to be given other endpoints.
    ///
    /// # Errors
    /// [`RewriteError::Quote`] when the packet is no ICMP error.
    pub fn quoted(&mut self) -> Result<Quoted<'_>, RewriteError> {
        self.rewritten = true;
        // What is quoted may have headers of any length.
        self.keep(usize::MAX);
        Quoted::new(self.mbuf.data_mut(), &self.info.headers)
    }

    /// Sets the time to live of IPv4, or the hop limit of IPv6.
    ///
    /// # Errors
    /// [`RewriteError::NotIp`].
    pub fn set_hop_limit(&mut self, hops: u8) -> Result<(), RewriteError> {
        self.change_ip(|ip| ip.set_ttl(hops), |ip| ip.set_hop_limit(hops))
    }

    /// Sets the type of service of IPv4, or the traffic class of IPv6: DSCP and ECN.
    ///
    /// # Errors
    /// [`RewriteError::NotIp`].
    #[inline]
    pub fn set_traffic_class(&mut self, class: u8) -> Result<(), RewriteError> {
        self.change_ip(|ip| ip.set_tos(class), |ip| ip.set_traffic_class(class))
    }

    /// Sets the code point of differentiated services, up to 63; ECN stays.
    ///
    /// # Errors
    /// [`RewriteError::NotIp`], and [`RewriteError::TooLarge`].
    pub fn set_dscp(&mut self, dscp: u8) -> Result<(), RewriteError> {
        let class = self.traffic_class().ok_or(RewriteError::NotIp)?;
        if dscp > 63 {
            return Err(RewriteError::TooLarge(dscp));
        }
        self.set_traffic_class(dscp << 2 | class & 3)
    }

    /// Sets explicit congestion notification, up to 3; DSCP stays.
    ///
    /// # Errors
    /// As [`Packet::set_dscp`].
    pub fn set_ecn(&mut self, ecn: u8) -> Result<(), RewriteError> {
        let class = self.traffic_class().ok_or(RewriteError::NotIp)?;
        if ecn > 3 {
            return Err(RewriteError::TooLarge(ecn));
        }
        self.set_traffic_class(class & !3 | ecn)
    }

    /// Sets the largest segment that the sender of this TCP segment takes, in bytes.
    ///
    /// # Errors
    /// [`RewriteError::NoMss`] when the packet is no TCP segment that states one.
    pub fn set_mss(&mut self, bytes: u16) -> Result<(), RewriteError> {
        if self.tcp().and_then(|tcp| tcp.mss()).is_none() {
            return Err(RewriteError::NoMss);
        }
        let l4 = usize::from(self.headers().l4);
        self.keep(l4 + LONGEST_TCP);
        let segment = self.mbuf.data_mut().get_mut(l4..).ok_or(RewriteError::NoMss)?;
        if tcp::set_mss(segment, bytes)? { Ok(()) } else { Err(RewriteError::NoMss) }
    }

    /// Changes the IP header, of either version.
    #[inline]
    fn change_ip(
        &mut self,
        v4: impl FnOnce(&mut Ipv4PacketMut<'_>),
        v6: impl FnOnce(&mut Ipv6PacketMut<'_>),
    ) -> Result<(), RewriteError> {
        self.keep(self.info.headers.l4.into());
        let l3 = usize::from(self.info.headers.l3);
        let ip = self.mbuf.data_mut().get_mut(l3..).ok_or(RewriteError::NotIp)?;
        match self.info.headers.network {
            Network::Ipv4 => v4(&mut Ipv4PacketMut::new(ip)?),
            Network::Ipv6 => v6(&mut Ipv6PacketMut::new(ip)?),
            Network::Arp | Network::Other => return Err(RewriteError::NotIp),
        }
        Ok(())
    }

    /// Makes room for `count` bytes between the link header and the IP header, and returns them, to be
    /// filled. `None` when there is no room in front of the packet. From then on the packet is no
    /// longer the one its headers describe, so this is for the last function of a chain.
    pub fn encapsulate(&mut self, count: usize) -> Option<&mut [u8]> {
        let link = usize::from(self.info.headers.l3);
        self.keep(link);
        self.mbuf.prepend(count)?;
        let data = self.mbuf.data_mut();
        data.copy_within(count..count + link, 0);
        data.get_mut(link..link + count)
    }
}
