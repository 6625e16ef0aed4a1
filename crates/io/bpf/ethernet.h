// SPDX-License-Identifier: MIT OR Apache-2.0
/* From the Ethernet header over VLAN tags to the network layer. */
#pragma once

#include <bpf/bpf_endian.h>
#include "frame.h"

#define ETHERNET_HEADER 14
#define ETHERTYPE_AT 12
#define TAG 4
#define MAX_TAGS 8

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd

static __always_inline _Bool is_vlan(__u32 ethertype)
{
	return ethertype == 0x8100 || ethertype == 0x88a8 || ethertype == 0x9100;
}

/* Skips the tags that start at `*l3`, behind `tags` others, and says what is behind them. */
static __always_inline _Bool untag(const struct frame *frame, __u32 tags, __u32 *l3, __u32 *ethertype)
{
	struct {
		__be16 control;
		__be16 ethertype;
	} tag;

	for (int i = 0; i <= MAX_TAGS; i++) {
		if (!is_vlan(*ethertype))
			return 1;
		if (tags == MAX_TAGS || !fetch(frame, *l3, &tag, sizeof(tag)))
			return 0;
		*ethertype = bpf_ntohs(tag.ethertype);
		*l3 += TAG;
		tags++;
	}
	return 0;
}

/* Finds the network layer of a frame that starts with its Ethernet header. */
static __always_inline _Bool link_layer(const struct frame *frame, __u32 *l3, __u32 *ethertype)
{
	__be16 raw;

	*ethertype = 0;
	*l3 = ETHERNET_HEADER;
	if (!fetch(frame, ETHERTYPE_AT, &raw, sizeof(raw)))
		return 0;
	*ethertype = bpf_ntohs(raw);
	return untag(frame, 0, l3, ethertype);
}
