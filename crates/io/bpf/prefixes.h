// SPDX-License-Identifier: MIT OR Apache-2.0
/* Which addresses lie inside, and which stand for inside ones, where a device carries both
 * directions. */
#pragma once

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "packet.h"

/* Inside addresses come before external ones, and these before all others. */
enum rank { RANK_INSIDE, RANK_EXTERNAL, RANK_OTHER };

struct prefix {
	/* Bits that count: eight for the version, then those of the address. */
	__u32 bits;
	__u8 version;
	__u8 address[16];
} __attribute__((packed));

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct prefix);
	__type(value, __u32);
} prefixes SEC(".maps");

static __always_inline __u32 rank_of(__u32 version, const __u32 *address)
{
	struct prefix key = { .bits = version == 4 ? 40 : 136, .version = version };
	const __u32 *rank;

	__builtin_memcpy(key.address, address, 16);
	rank = bpf_map_lookup_elem(&prefixes, &key);
	return rank ? *rank : RANK_OTHER;
}
