// SPDX-License-Identifier: MIT OR Apache-2.0
/* What parsing finds out about a packet. */
#pragma once

#include <linux/types.h>

struct packet {
	/* In host order; below 0x600 without one. */
	__u32 ethertype;
	/* 4, 6, or 0 when the packet is not IP, or is malformed. */
	__u32 version;
	/* Of what follows IP and its extension headers. */
	__u32 protocol;
	/* Whether it is a part of a datagram. */
	__u32 fragment;
	/* Where the transport header starts, and where the packet ends. */
	__u32 l4;
	__u32 end;
	/* Source, then destination; of IPv4 addresses only the first word is used. In network order. */
	__u32 source[4];
	__u32 destination[4];
	/* Whether the ports below are those of a transport protocol. */
	__u32 ported;
	/* Source port in the lower half, in network order; or twice an ICMP query's identifier. */
	__u32 ports;
	/* Whether an ICMP error quotes a segment of TCP, and where that came from: an address as above, and a
	 * port in host order. */
	__u32 quotes;
	__u32 quoted_source[4];
	__u32 quoted_port;
};
