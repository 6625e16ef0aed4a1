// SPDX-License-Identifier: MIT OR Apache-2.0
/* For packet sockets: places packets on the sockets of a fanout group, keeps from them what is the
 * kernel's, and from the kernel what is theirs. */
#define SKB_FRAME

#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>
#include "control.h"
#include "filter.h"
#include "load.h"
#include "settings.h"
#include "skb.h"
#include "table.h"

/* Whether packets still are ours at all. */
static __always_inline _Bool is_stopped(void)
{
	struct control *control = control_words();

	return !control || *(volatile __u32 *)&control->stop;
}

/* Which socket of the group gets the packet. The buffer starts with the network layer. */
SEC("socket")
int rheostat_fanout(struct __sk_buff *skb)
{
	struct packet packet = {};
	struct placed placed;
	struct frame frame;

	if (is_stopped())
		return 0;
	parse_network(skb, &packet);
	/* What no socket takes is not counted as theirs. */
	if (!takes(&packet)) {
		count_passed();
		return 0;
	}
	frame = frame_of(skb);
	placed = place(&frame, &packet);
	count_in_bucket(placed.bucket, packets_in(skb), skb->len + ETHERNET_HEADER);
	return lane_of(placed.bucket);
}

/* Whether the sockets take a packet. The buffer starts with the Ethernet header. */
static __always_inline _Bool is_taken(struct __sk_buff *skb)
{
	struct packet packet = {};

	if (is_stopped())
		return 0;
	if (!take_count && !leave_count && !endpoint_count)
		return 1;
	parse_link(skb, &packet);
	return takes(&packet);
}

/* How much of a packet its socket gets: everything or nothing. */
SEC("socket")
int rheostat_takes(struct __sk_buff *skb)
{
	return is_taken(skb) ? 0x7fffffff : 0;
}

/* Behind the sockets: keeps what they have taken from the kernel's own stack. */
SEC("classifier")
int rheostat_exclude(struct __sk_buff *skb)
{
	return is_taken(skb) ? TC_ACT_SHOT : TC_ACT_UNSPEC;
}

char LICENSE[] SEC("license") = "MIT";
