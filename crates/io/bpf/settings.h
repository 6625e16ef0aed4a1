// SPDX-License-Identifier: MIT OR Apache-2.0
/* What user space decides before a program is loaded. It lies in read-only data, so the verifier
 * takes it for constants and removes the code of every other choice.
 *
 * The same names are set in src/backend/bpf/settings.rs. */
#pragma once

#include <linux/types.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "bytes of words are picked out as a little-endian machine lays them down"
#endif

/* Which end of a packet comes first in its key. */
enum orientation { SOURCE_FIRST, DESTINATION_FIRST, BY_PREFIX };

/* Whose address alone names flows: of the oriented ends, or of the packet's. */
enum single { WHOLE_TUPLE, INNER, OUTER, SOURCE, DESTINATION };

/* Words of the longest hash input: two IPv6 addresses and two ports. */
#define INPUT_WORDS 9

/* Entries of the indirection table, minus one. */
const volatile __u32 bucket_mask = 0;
/* Lanes. */
const volatile __u32 queues = 1;
const volatile __u32 orientation = SOURCE_FIRST;
const volatile __u32 single = WHOLE_TUPLE;
/* Whether ICMP queries are hashed on their identifier. */
const volatile __u32 icmp_identifiers = 0;
/* Whether addresses are translated; protocols whose checksum then keeps their ports are hashed on
 * addresses alone. */
const volatile __u32 translating = 0;
/* What placing takes from the input, by IP version (4, 6) and by whether ports count. */
const volatile __u32 masks[2][2][INPUT_WORDS] = {};
