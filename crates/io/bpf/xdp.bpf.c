// SPDX-License-Identifier: MIT OR Apache-2.0
/* Receive-side scaling in software: hashes each packet and redirects it to the socket of the lane
 * that the indirection table names. */
#define XDP_FRAME

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "control.h"
#include "filter.h"
#include "load.h"
#include "settings.h"
#include "steer.h"
#include "table.h"

/* One entry for each lane of each hardware queue: queue * lanes + lane. */
struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} sockets SEC(".maps");

/* What the lane finds in front of the packet, so that it need not hash again. */
struct metadata {
	__u32 hash;
	__u8 kind;
	__u8 magic;
	__u16 bucket;
};

#define MAGIC 0x72

static __always_inline _Bool tell(struct xdp_md *ctx, struct placed placed)
{
	struct metadata *metadata;

	if (bpf_xdp_adjust_meta(ctx, -(int)sizeof(*metadata)))
		return 0;
	metadata = (void *)(long)ctx->data_meta;
	if ((void *)(metadata + 1) > (void *)(long)ctx->data)
		return 0;
	metadata->hash = placed.hash;
	metadata->kind = placed.kind;
	metadata->magic = MAGIC;
	metadata->bucket = placed.bucket;
	return 1;
}

SEC("xdp.frags")
int rheostat_xdp(struct xdp_md *ctx)
{
	struct control *control = control_words();
	struct packet packet = {};
	struct placed placed;
	struct frame frame;
	__u32 lane;

	if (!control || *(volatile __u32 *)&control->stop)
		return XDP_PASS;
	parse_link(ctx, &packet);
	if (!takes(&packet)) {
		count_passed();
		return XDP_PASS;
	}
	frame = frame_of(ctx);
	placed = place(&frame, &packet);
	count_in_bucket(placed.bucket, 1, frame.len);
	if (!tell(ctx, placed))
		*(volatile __u32 *)&control->without_metadata = 1;
	lane = lane_of(placed.bucket);
	if (lane < queues &&
	    bpf_redirect_map(&sockets, ctx->rx_queue_index * queues + lane, XDP_PASS) == XDP_REDIRECT)
		return XDP_REDIRECT;
	count_unplaced();
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "MIT";
