// SPDX-License-Identifier: MIT OR Apache-2.0
/* Packets as programs behind the driver see them: buffers of the kernel, from which it has taken the
 * outermost VLAN tag, and which may be segmented or have their checksum filled in later. */
#pragma once

#include <bpf/bpf_endian.h>
#include "ethernet.h"
#include "steer.h"

/* Parses a buffer that starts with the network layer. */
static __always_inline void parse_network(struct __sk_buff *skb, struct packet *packet)
{
	struct frame frame = frame_of(skb);
	__u32 l3 = 0;

	packet->ethertype = bpf_ntohs(skb->protocol);
	if (untag(&frame, skb->vlan_present != 0, &l3, &packet->ethertype))
		parse(skb, l3, packet);
}

/* Packets that the buffer will be cut into. */
static __always_inline __u32 packets_in(struct __sk_buff *skb)
{
	return skb->gso_segs > 1 ? skb->gso_segs : 1;
}
