// SPDX-License-Identifier: MIT OR Apache-2.0
/* For tap interfaces: places what the kernel sends on the queues. */
#define SKB_FRAME

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "control.h"
#include "filter.h"
#include "load.h"
#include "settings.h"
#include "skb.h"
#include "table.h"

/* Which queue gets the packet. The buffer starts with the Ethernet header. */
SEC("socket")
int rheostat_tap(struct __sk_buff *skb)
{
	struct packet packet = {};
	struct placed placed;
	struct frame frame;

	parse_link(skb, &frame, &packet);
	placed = place(&frame, &packet);
	count_in_bucket(placed.bucket, packets_in(skb), skb->len);
	return lane_of(placed.bucket);
}

/* How much of a packet goes into its queue: everything, until told to stop. There is nobody else to
 * whom packets could be left, so what the filter does not take is lost. */
SEC("socket")
int rheostat_gate(struct __sk_buff *skb)
{
	struct control *control = control_words();
	struct packet packet = {};
	struct frame frame;

	if (!control || *(volatile __u32 *)&control->stop)
		return 0;
	if (take_count || leave_count) {
		parse_link(skb, &frame, &packet);
		if (!takes(&packet)) {
			count_passed();
			return 0;
		}
	}
	return skb->len;
}

char LICENSE[] SEC("license") = "MIT";
