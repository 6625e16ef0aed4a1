// SPDX-License-Identifier: MIT OR Apache-2.0
/* Ports of TCP at addresses of this machine: `rheostat_io::Endpoints`. */
#pragma once

#include <bpf/bpf_endian.h>
#include "frame.h"
#include "ipv4.h"
#include "ipv6.h"
#include "packet.h"
#include "transport.h"

#define MAX_ADDRESSES 16

struct endpoint_address {
	__u32 version;
	__u32 words[4];
};

const volatile __u32 endpoint_count = 0;
const volatile struct endpoint_address endpoint_addresses[MAX_ADDRESSES] = {};
/* A bit for each port. */
const volatile __u8 endpoint_ports[8192] = {};

/* An ICMP error quotes the packet behind this. */
#define ICMP_HEADER 8

#define FRAGMENT_OFFSET 0x1fff

/* Redirects are for the kernel, which has the routes. */
static __always_inline _Bool is_icmp_error(__u32 version, __u32 kind)
{
	if (version == 6)
		return kind < 128;
	return kind == 3 || kind == 4 || kind == 11 || kind == 12;
}

/* Notes where the segment that an ICMP error quotes came from. A segment of ours has no extension header
 * between IPv6 and TCP. */
static __always_inline void read_quote(const struct frame *frame, struct packet *packet)
{
	__u32 at = packet->l4 + ICMP_HEADER;
	__be16 ports[2];
	__u8 kind;

	if (packet->fragment || packet->protocol != (packet->version == 4 ? ICMPV4 : ICMPV6))
		return;
	if (!fetch(frame, packet->l4, &kind, sizeof(kind)) || !is_icmp_error(packet->version, kind))
		return;
	if (packet->version == 4) {
		struct ipv4 ip;
		__u32 header;

		if (!fetch(frame, at, &ip, sizeof(ip)) || ip.version_and_words >> 4 != 4)
			return;
		header = (ip.version_and_words & 0xf) * 4;
		if (header < sizeof(ip) || ip.protocol != TCP ||
		    bpf_ntohs(ip.flags_and_offset) & FRAGMENT_OFFSET)
			return;
		packet->quoted_source[0] = ip.source;
		at += header;
	} else {
		struct ipv6 ip;

		if (!fetch(frame, at, &ip, sizeof(ip)) || (ip.version_and_label & 0xf0) != 0x60 ||
		    ip.next != TCP)
			return;
		__builtin_memcpy(packet->quoted_source, ip.source, sizeof(ip.source));
		at += sizeof(ip);
	}
	if (at + sizeof(ports) > packet->end || !fetch(frame, at, ports, sizeof(ports)))
		return;
	packet->quoted_port = bpf_ntohs(ports[0]);
	packet->quotes = 1;
}

static __always_inline _Bool is_endpoint(__u32 version, const __u32 *address, __u32 port)
{
	if (!(endpoint_ports[(port >> 3) & 8191] >> (port & 7) & 1))
		return 0;
	for (__u32 i = 0; i < MAX_ADDRESSES; i++) {
		const volatile struct endpoint_address *own = &endpoint_addresses[i];

		if (i >= endpoint_count)
			return 0;
		if (own->version == version && own->words[0] == address[0] &&
		    own->words[1] == address[1] && own->words[2] == address[2] &&
		    own->words[3] == address[3])
			return 1;
	}
	return 0;
}

/* Whether the packet goes to an endpoint, or is an ICMP error about what one has sent. */
static __always_inline _Bool concerns_endpoint(const struct packet *packet)
{
	if (packet->version == 0)
		return 0;
	if (packet->protocol == TCP)
		return packet->ported &&
		       is_endpoint(packet->version, packet->destination, bpf_ntohs(packet->ports >> 16));
	return packet->quotes && is_endpoint(packet->version, packet->quoted_source, packet->quoted_port);
}
