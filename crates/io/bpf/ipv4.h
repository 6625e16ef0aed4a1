// SPDX-License-Identifier: MIT OR Apache-2.0
/* IPv4. */
#pragma once

#include <bpf/bpf_endian.h>
#include "frame.h"
#include "packet.h"
#include "transport.h"

struct ipv4 {
	__u8 version_and_words;
	__u8 tos;
	__be16 total;
	__be16 id;
	__be16 flags_and_offset;
	__u8 ttl;
	__u8 protocol;
	__be16 checksum;
	__u32 source;
	__u32 destination;
};

/* Any of these set: more fragments follow, or an offset. */
#define IS_FRAGMENT 0x3fff

/* Reads the packet at `l3`; false if it is malformed. */
static __always_inline _Bool parse_ipv4(const struct frame *frame, __u32 l3, struct packet *packet)
{
	struct ipv4 ip;
	__u32 header, total;

	if (!fetch(frame, l3, &ip, sizeof(ip)) || ip.version_and_words >> 4 != 4)
		return 0;
	header = (ip.version_and_words & 0xf) * 4;
	if (header < sizeof(ip) || l3 + header > frame->held)
		return 0;
	packet->protocol = ip.protocol;
	packet->fragment = (bpf_ntohs(ip.flags_and_offset) & IS_FRAGMENT) != 0;
	packet->l4 = l3 + header;
	total = bpf_ntohs(ip.total);
	packet->end = l3 + total;
	if (total < header || packet->end > frame->len) {
		/* A frame before segmentation offload states no length. */
		if (total != 0 || packet->fragment || (ip.protocol != TCP && ip.protocol != UDP))
			return 0;
		packet->end = frame->len;
	}
	packet->source[0] = ip.source;
	packet->destination[0] = ip.destination;
	return packet->fragment || check_transport(frame, packet);
}
