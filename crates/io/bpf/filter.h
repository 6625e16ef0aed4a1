// SPDX-License-Identifier: MIT OR Apache-2.0
/* Which packets are rheostat's: `rheostat_io::Filter`. */
#pragma once

#include <bpf/bpf_endian.h>
#include "endpoints.h"
#include "packet.h"

#define MAX_MATCHES 16

/* What of a match counts. */
#define MATCH_ETHERTYPE 1
#define MATCH_PROTOCOL 2
#define MATCH_ADDRESS 4
#define MATCH_PORT 8

struct match {
	__u32 what;
	__u32 ethertype;
	__u32 protocol;
	__u32 port;
	__u32 version;
	__u32 address[4];
	__u32 mask[4];
};

const volatile __u32 take_count = 0;
const volatile struct match take[MAX_MATCHES] = {};
const volatile __u32 leave_count = 0;
const volatile struct match leave[MAX_MATCHES] = {};

static __always_inline _Bool in_prefix(const volatile struct match *match, const __u32 *address)
{
	__u32 difference = 0;

	for (int i = 0; i < 4; i++)
		difference |= (address[i] ^ match->address[i]) & match->mask[i];
	return difference == 0;
}

static __always_inline _Bool matches(const volatile struct match *match, const struct packet *packet)
{
	__u32 what = match->what;

	if (what & MATCH_ETHERTYPE && packet->ethertype != match->ethertype)
		return 0;
	if (!(what & (MATCH_PROTOCOL | MATCH_ADDRESS | MATCH_PORT)))
		return 1;
	if (packet->version == 0)
		return 0;
	if (what & MATCH_PROTOCOL && packet->protocol != match->protocol)
		return 0;
	if (what & MATCH_ADDRESS) {
		if (packet->version != match->version)
			return 0;
		if (!in_prefix(match, packet->source) && !in_prefix(match, packet->destination))
			return 0;
	}
	if (what & MATCH_PORT) {
		if (!packet->ported)
			return 0;
		return bpf_ntohs(packet->ports & 0xffff) == match->port ||
		       bpf_ntohs(packet->ports >> 16) == match->port;
	}
	return 1;
}

/* Not inlined, and global: the verifier looks at it once, not for every way a packet can be parsed. */
__attribute__((noinline)) int filter(const struct packet *packet)
{
	_Bool wanted = take_count == 0 && endpoint_count == 0;

	if (!packet)
		return 0;
	if (endpoint_count != 0 && concerns_endpoint(packet))
		wanted = 1;
	for (__u32 i = 0; i < MAX_MATCHES; i++) {
		if (wanted || i >= take_count)
			break;
		if (matches(&take[i], packet)) {
			wanted = 1;
			break;
		}
	}
	if (!wanted)
		return 0;
	for (__u32 i = 0; i < MAX_MATCHES; i++) {
		if (i >= leave_count)
			break;
		if (matches(&leave[i], packet))
			return 0;
	}
	return 1;
}

static __always_inline _Bool takes(const struct packet *packet)
{
	return (take_count == 0 && leave_count == 0 && endpoint_count == 0) || filter(packet);
}
