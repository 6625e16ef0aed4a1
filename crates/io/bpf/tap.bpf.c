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

/* Finds the bucket of a packet that the filter takes, and counts it there. The buffer starts with the
 * Ethernet header. */
static __always_inline _Bool place_taken(struct __sk_buff *skb, struct placed *placed)
{
	struct packet packet = {};
	struct frame frame = frame_of(skb);

	parse_link(skb, &packet);
	if (!takes(&packet))
		return 0;
	*placed = place(&frame, &packet);
	count_in_bucket(placed->bucket, packets_in(skb), skb->len);
	return 1;
}

/* Which queue gets the packet. Not asked where there is only one. */
SEC("socket")
int rheostat_tap(struct __sk_buff *skb)
{
	struct placed placed;

	return place_taken(skb, &placed) ? lane_of(placed.bucket) : 0;
}

/* How much of a packet goes into its queue: everything, until the device stops. No other program gets
 * packets of a TAP interface, so what the filter does not take is lost. */
SEC("socket")
int rheostat_gate(struct __sk_buff *skb)
{
	struct control *control = control_words();
	struct packet packet = {};
	struct placed placed;
	_Bool taken;

	if (!control || *(volatile __u32 *)&control->stop)
		return 0;
	if (queues == 1) {
		taken = place_taken(skb, &placed);
	} else if (take_count || leave_count) {
		parse_link(skb, &packet);
		taken = takes(&packet);
	} else {
		taken = 1;
	}
	if (!taken)
		count_passed();
	return taken ? skb->len : 0;
}

char LICENSE[] SEC("license") = "MIT";
