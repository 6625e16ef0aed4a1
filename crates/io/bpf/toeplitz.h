// SPDX-License-Identifier: MIT OR Apache-2.0
/* The Toeplitz hash: what each value of each input byte adds. The tables are those of
 * `rheostat_steer::Toeplitz`. */
#pragma once

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "settings.h"

struct toeplitz {
	__u32 byte[INPUT_WORDS * 4][256];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct toeplitz);
} toeplitz SEC(".maps");

/* What the word at `place` of the input adds; it holds bytes in network order. */
static __always_inline __u32 word_hash(const struct toeplitz *tables, const int place, __u32 word)
{
	return tables->byte[place * 4][word & 0xff] ^
	       tables->byte[place * 4 + 1][word >> 8 & 0xff] ^
	       tables->byte[place * 4 + 2][word >> 16 & 0xff] ^
	       tables->byte[place * 4 + 3][word >> 24];
}
