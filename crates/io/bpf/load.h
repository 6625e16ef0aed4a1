// SPDX-License-Identifier: MIT OR Apache-2.0
/* What is counted. Each processor has rows of its own in memory that user space has mapped, so that
 * counting is a plain addition and reading costs no call. */
#pragma once

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "settings.h"

struct load {
	__u64 packets;
	__u64 bytes;
};

/* Of each bucket, for processor 0, then for processor 1, and so on. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct load);
} bucket_load SEC(".maps");

struct totals {
	/* Packets left to the kernel. */
	__u64 passed;
	/* Packets for which no socket could be found. */
	__u64 unplaced;
};

/* One for each processor. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct totals);
} totals SEC(".maps");

static __always_inline void count_in_bucket(__u32 bucket, __u32 packets, __u32 bytes)
{
	__u32 row = bpf_get_smp_processor_id() * (bucket_mask + 1) + bucket;
	struct load *load = bpf_map_lookup_elem(&bucket_load, &row);

	if (load) {
		load->packets += packets;
		load->bytes += bytes;
	}
}

static __always_inline struct totals *own_totals(void)
{
	__u32 processor = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&totals, &processor);
}

static __always_inline void count_passed(void)
{
	struct totals *totals = own_totals();

	if (totals)
		totals->passed++;
}

static __always_inline void count_unplaced(void)
{
	struct totals *totals = own_totals();

	if (totals)
		totals->unplaced++;
}
