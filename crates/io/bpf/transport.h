// SPDX-License-Identifier: MIT OR Apache-2.0
/* Checks of the transport header, as strict as `rheostat_packet::Headers`: what user space refuses is
 * hashed on nothing. */
#pragma once

#include <bpf/bpf_endian.h>
#include "frame.h"
#include "packet.h"

#define ICMPV4 1
#define TCP 6
#define UDP 17
#define DCCP 33
#define GRE 47
#define ESP 50
#define AH 51
#define ICMPV6 58
#define SCTP 132
#define UDP_LITE 136

static __always_inline _Bool has_ports(__u32 protocol)
{
	return protocol == TCP || protocol == UDP || protocol == DCCP || protocol == SCTP ||
	       protocol == UDP_LITE;
}

/* Bytes a header has at least. */
static __always_inline __u32 min_header(__u32 protocol)
{
	switch (protocol) {
	case TCP:
		return 20;
	case DCCP:
	case SCTP:
	case AH:
		return 12;
	case UDP:
	case UDP_LITE:
	case ICMPV4:
	case ICMPV6:
	case ESP:
		return 8;
	case GRE:
		return 4;
	default:
		return 0;
	}
}

/* Whether the header of a packet that is no fragment is whole, and states lengths that can be. */
static __always_inline _Bool check_transport(const struct frame *frame, struct packet *packet)
{
	__u32 protocol = packet->protocol;
	__u32 len = packet->end - packet->l4;

	if (len < min_header(protocol))
		return 0;
	if (!has_ports(protocol))
		return 1;
	if (!fetch(frame, packet->l4, &packet->ports, sizeof(packet->ports)))
		return 0;
	packet->ported = 1;
	if (protocol == TCP) {
		__u8 offset, header;

		if (packet->l4 + 20 > frame->held)
			return 1;
		if (!fetch(frame, packet->l4 + 12, &offset, sizeof(offset)))
			return 0;
		header = (offset >> 4) * 4;
		return header >= 20 && header <= len;
	}
	if (protocol == UDP) {
		__be16 raw;
		__u32 stated;

		if (packet->l4 + 8 > frame->held)
			return 1;
		if (!fetch(frame, packet->l4 + 4, &raw, sizeof(raw)))
			return 0;
		stated = bpf_ntohs(raw);
		/* Zero: segmentation offload. */
		return (stated >= 8 && stated <= len) || (stated == 0 && len > 0xffff);
	}
	return 1;
}

/* Where an ICMP query has its identifier; 0 for other messages. */
static __always_inline __u32 identifier_at(__u32 version, __u32 kind)
{
	if (version == 4) {
		switch (kind) {
		case 0: case 8: case 13 ... 18: case 42: case 43:
			return 4;
		}
		return 0;
	}
	switch (kind) {
	case 128: case 129: case 160: case 161:
		return 4;
	case 139: case 140:
		return 8;
	}
	return 0;
}

/* Reads the identifier of an ICMP query as both of its ports; false for another packet. */
static __always_inline _Bool query_identifier(const struct frame *frame, struct packet *packet)
{
	__u32 end = packet->end < frame->held ? packet->end : frame->held;
	__u32 at;
	__u16 identifier;
	__u8 kind;

	if (packet->protocol != (packet->version == 4 ? ICMPV4 : ICMPV6))
		return 0;
	if (!fetch(frame, packet->l4, &kind, sizeof(kind)))
		return 0;
	at = identifier_at(packet->version, kind);
	if (at == 0 || packet->l4 + (packet->version == 4 ? 8 : at + 2) > end)
		return 0;
	if (!fetch(frame, packet->l4 + at, &identifier, sizeof(identifier)))
		return 0;
	packet->ports = identifier | (__u32)identifier << 16;
	return 1;
}
