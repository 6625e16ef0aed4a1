// SPDX-License-Identifier: MIT OR Apache-2.0
/* From a parsed packet to its hash: `rheostat_steer::hash_packet`, bit by bit. */
#pragma once

#include <bpf/bpf_endian.h>
#include "endpoints.h"
#include "ethernet.h"
#include "ipv4.h"
#include "ipv6.h"
#include "prefixes.h"
#include "toeplitz.h"

/* What a hash covers: `rheostat_packet::HashKind`. */
enum hash_kind { HASH_NONE, HASH_ADDRESSES, HASH_PORTS };

struct placed {
	__u32 hash;
	__u32 kind;
	__u32 bucket;
};

/* Reads the network and transport layers at `l3`. What is not IP, or malformed, keeps version 0.
 *
 * Not inlined, and global: the verifier looks at it once, not for every number of VLAN tags. */
__attribute__((noinline)) int parse(CONTEXT *context, __u32 l3, struct packet *packet)
{
	struct frame frame = frame_of(context);

	if (!packet)
		return 0;
	if (packet->ethertype == ETHERTYPE_IPV4) {
		if (parse_ipv4(&frame, l3, packet))
			packet->version = 4;
	} else if (packet->ethertype == ETHERTYPE_IPV6) {
		if (parse_ipv6(&frame, l3, packet))
			packet->version = 6;
	}
	if (endpoint_count != 0 && packet->version != 0)
		read_quote(&frame, packet);
	return 0;
}

/* The same from the Ethernet header on. */
static __always_inline void parse_link(CONTEXT *context, struct packet *packet)
{
	struct frame frame = frame_of(context);
	__u32 l3;

	if (link_layer(&frame, &l3, &packet->ethertype))
		parse(context, l3, packet);
}

/* What the hash of a packet must cover. Sets its ports as hashing takes them: fragments, ICMP errors
 * and protocols without ports have none. */
static __always_inline __u32 kind_of(const struct frame *frame, struct packet *packet)
{
	__u32 protocol = packet->protocol;

	if (single != WHOLE_TUPLE || packet->fragment) {
		packet->ports = 0;
		return HASH_ADDRESSES;
	}
	if (packet->ported) {
		/* The checksums of these keep a translator from choosing other ports. */
		if (translating && (protocol == DCCP || protocol == SCTP))
			return HASH_ADDRESSES;
		return HASH_PORTS;
	}
	packet->ports = 0;
	if (icmp_identifiers && query_identifier(frame, packet))
		return HASH_PORTS;
	return HASH_ADDRESSES;
}

/* Whether the first end is the lower one, by address and then by port. */
static __always_inline _Bool is_sorted(const struct packet *packet)
{
	for (int i = 0; i < 4; i++) {
		__u32 a = bpf_ntohl(packet->source[i]), b = bpf_ntohl(packet->destination[i]);

		if (a != b)
			return a < b;
	}
	return bpf_ntohs(packet->ports & 0xffff) <= bpf_ntohs(packet->ports >> 16);
}

/* Whether the source comes first. */
static __always_inline _Bool is_forward(const struct packet *packet)
{
	__u32 a, b;

	if (orientation != BY_PREFIX)
		return orientation == SOURCE_FIRST;
	a = rank_of(packet->version, packet->source);
	b = rank_of(packet->version, packet->destination);
	/* Between two external addresses a packet turns round, and comes as if from outside. */
	if (a == RANK_EXTERNAL && b == RANK_EXTERNAL)
		return 0;
	return a != b ? a < b : is_sorted(packet);
}

/* Whether the source comes first in what is hashed. */
static __always_inline _Bool source_first(const struct packet *packet)
{
	switch (single) {
	case SOURCE:
		return 1;
	case DESTINATION:
		return 0;
	case OUTER:
		return !is_forward(packet);
	default:
		return is_forward(packet);
	}
}

static __always_inline struct placed place(const struct frame *frame, struct packet *packet)
{
	struct placed placed = { .hash = 0, .kind = HASH_NONE, .bucket = 0 };
	const struct toeplitz *tables;
	__u32 zero = 0, hash, ports, ported;
	_Bool forward;

	if (packet->version == 0)
		return placed;
	tables = bpf_map_lookup_elem(&toeplitz, &zero);
	if (!tables)
		return placed;
	placed.kind = kind_of(frame, packet);
	ported = placed.kind == HASH_PORTS;
	forward = source_first(packet);
	ports = packet->ports;
	if (!forward)
		ports = ports << 16 | ports >> 16;
	if (packet->version == 4) {
		__u32 a = forward ? packet->source[0] : packet->destination[0];
		__u32 b = forward ? packet->destination[0] : packet->source[0];

		hash = word_hash(tables, 0, a & masks[0][ported][0]) ^
		       word_hash(tables, 1, b & masks[0][ported][1]);
		if (ported)
			hash ^= word_hash(tables, 2, ports & masks[0][1][2]);
	} else {
		hash = 0;
		for (int i = 0; i < 4; i++) {
			__u32 a = forward ? packet->source[i] : packet->destination[i];
			__u32 b = forward ? packet->destination[i] : packet->source[i];

			hash ^= word_hash(tables, i, a & masks[1][ported][i]) ^
				word_hash(tables, i + 4, b & masks[1][ported][i + 4]);
		}
		if (ported)
			hash ^= word_hash(tables, 8, ports & masks[1][1][8]);
	}
	placed.hash = hash;
	placed.bucket = hash & bucket_mask;
	return placed;
}
