// SPDX-License-Identifier: MIT OR Apache-2.0
/* IPv6 and its extension headers. */
#pragma once

#include <bpf/bpf_endian.h>
#include "frame.h"
#include "packet.h"
#include "transport.h"

struct ipv6 {
	__u32 version_and_label;
	__be16 payload;
	__u8 next;
	__u8 hops;
	__u32 source[4];
	__u32 destination[4];
};

#define HOP_BY_HOP 0
#define ROUTING 43
#define FRAGMENT 44
#define NO_NEXT_HEADER 59
#define DESTINATION_OPTIONS 60
#define MOBILITY 135
#define HIP 139
#define SHIM6 140

#define MAX_EXTENSIONS 10

static __always_inline _Bool is_extension(__u32 protocol)
{
	switch (protocol) {
	case HOP_BY_HOP: case ROUTING: case FRAGMENT: case AH:
	case DESTINATION_OPTIONS: case MOBILITY: case HIP: case SHIM6:
		return 1;
	}
	return 0;
}

/* The first eight bytes of any extension header. */
struct extension {
	__u8 next;
	__u8 words;
	__be16 offset_and_more;
	__u32 rest;
};

/* Walks the extension headers up to the transport layer; false if one is malformed. */
static __always_inline _Bool skip_extensions(const struct frame *frame, struct packet *packet)
{
	__u32 end = packet->end < frame->held ? packet->end : frame->held;
	__u32 seen_fragment = 0;

	for (int seen = 0; seen <= MAX_EXTENSIONS; seen++) {
		__u32 protocol = packet->protocol;
		struct extension extension;
		__u32 len;

		if (!is_extension(protocol))
			return 1;
		if (seen == MAX_EXTENSIONS || (protocol == HOP_BY_HOP && seen > 0))
			return 0;
		if (packet->l4 + sizeof(extension) > end)
			return 0;
		if (!fetch(frame, packet->l4, &extension, sizeof(extension)))
			return 0;
		if (protocol == FRAGMENT) {
			if (seen_fragment)
				return 0;
			seen_fragment = 1;
			len = sizeof(extension);
		} else if (protocol == AH) {
			len = (extension.words + 2) * 4;
			if (len < 12)
				return 0;
		} else {
			len = (extension.words + 1) * 8;
		}
		if (packet->l4 + len > end)
			return 0;
		packet->l4 += len;
		packet->protocol = extension.next;
		if (protocol == FRAGMENT) {
			__u32 word = bpf_ntohs(extension.offset_and_more);

			/* An atomic fragment is none (RFC 6946). */
			packet->fragment |= (word & 0xfff9) != 0;
			/* Behind a later fragment's header lies data of any kind. */
			if (word & 0xfff8)
				return 1;
		}
	}
	return 0;
}

/* Reads the packet at `l3`; false if it is malformed. Jumbograms (RFC 2675), which no link we know
 * carries, are not told from malformed packets. */
static __always_inline _Bool parse_ipv6(const struct frame *frame, __u32 l3, struct packet *packet)
{
	struct ipv6 ip;
	__u32 payload;

	if (!fetch(frame, l3, &ip, sizeof(ip)) || (ip.version_and_label & 0xf0) != 0x60)
		return 0;
	packet->protocol = ip.next;
	packet->l4 = l3 + sizeof(ip);
	payload = bpf_ntohs(ip.payload);
	packet->end = packet->l4 + payload;
	/* A frame before segmentation offload states no length. */
	if (payload == 0 && ip.next == TCP)
		packet->end = frame->len;
	if (packet->end > frame->len)
		return 0;
	__builtin_memcpy(packet->source, ip.source, sizeof(ip.source));
	__builtin_memcpy(packet->destination, ip.destination, sizeof(ip.destination));
	if (!skip_extensions(frame, packet))
		return 0;
	return packet->fragment || check_transport(frame, packet);
}
