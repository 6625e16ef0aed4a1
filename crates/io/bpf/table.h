// SPDX-License-Identifier: MIT OR Apache-2.0
/* The indirection table: from a bucket to a lane. User space rewrites it with plain stores. */
#pragma once

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "settings.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} indirection SEC(".maps");

static __always_inline __u32 lane_of(__u32 bucket)
{
	const volatile __u32 *lane = bpf_map_lookup_elem(&indirection, &bucket);

	return lane ? *lane : 0;
}
