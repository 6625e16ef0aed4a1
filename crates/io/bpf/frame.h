// SPDX-License-Identifier: MIT OR Apache-2.0
/* The bytes of a packet, whichever kind of program looks at them.
 *
 * A program defines one of XDP_FRAME (bytes are read where they lie) and SKB_FRAME (the kernel
 * copies them, because such programs may not look themselves). */
#pragma once

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* No header we look at lies behind this. */
#define MAX_OFFSET 0x7fff

#ifdef XDP_FRAME
#define CONTEXT struct xdp_md
#else
#define CONTEXT struct __sk_buff
#endif

struct frame {
#ifdef XDP_FRAME
	void *data;
	void *end;
#else
	struct __sk_buff *skb;
#endif
	/* Bytes that can be read. */
	__u32 held;
	/* Bytes on the wire, from the same first byte on. */
	__u32 len;
};

/* The packet that a program is run for. */
static __always_inline struct frame frame_of(CONTEXT *context)
{
	struct frame frame;

#ifdef XDP_FRAME
	frame.data = (void *)(long)context->data;
	frame.end = (void *)(long)context->data_end;
	frame.held = frame.end - frame.data;
	frame.len = bpf_xdp_get_buff_len(context);
#else
	frame.skb = context;
	frame.held = frame.len = context->len;
#endif
	return frame;
}

/* Copies `count` bytes, a constant, from `at` on; false if they are not there. */
static __always_inline _Bool fetch(const struct frame *frame, __u32 at, void *to, const __u32 count)
{
#ifdef XDP_FRAME
	const __u8 *from;

	if (at > MAX_OFFSET)
		return 0;
	from = frame->data + at;
	if (from + count > (const __u8 *)frame->end)
		return 0;
	/* The kernel allows it where the processor does, and then words are loaded whole. */
	__builtin_memcpy(to, __builtin_assume_aligned(from, 4), count);
	return 1;
#else
	return at <= MAX_OFFSET && bpf_skb_load_bytes(frame->skb, at, to, count) == 0;
#endif
}
