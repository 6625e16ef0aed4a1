// SPDX-License-Identifier: MIT OR Apache-2.0
/* What user space and the programs tell each other while packets arrive: mapped memory, no calls. */
#pragma once

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct control {
	/* Written by user space: from now on every packet is the kernel's. */
	__u32 stop;
	/* Written by the XDP program: the driver has no room for metadata, so packets come without
	 * their hash. */
	__u32 without_metadata;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct control);
} control SEC(".maps");

static __always_inline struct control *control_words(void)
{
	__u32 first = 0;

	return bpf_map_lookup_elem(&control, &first);
}
