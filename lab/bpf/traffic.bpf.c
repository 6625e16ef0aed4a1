// SPDX-License-Identifier: MIT OR Apache-2.0
/* What the benchmark of live paths needs at both ends: a program that makes flows out of the frames
 * that BPF_PROG_TEST_RUN repeats, one that counts and drops what arrives, and two that forward or
 * receive without looking, the least a path can cost. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* The discard service (RFC 863): everything of the benchmark goes there, and nothing else. */
#define DISCARD 9

struct frame {
	struct ethhdr ethernet;
	struct iphdr ip;
	struct udphdr udp;
} __attribute__((packed, aligned(2)));

/* Flows, minus one; a power of two. Set before the program is loaded. */
const volatile __u32 flow_mask = 0;

/* Addresses on the link, as lab/src/live/wires.rs sets them. */
static const __u8 lan[6] = {0x02, 0, 0, 0, 0x4d, 0x01}, us[6] = {0x02, 0, 0, 0, 0x4d, 0x0a};

/* Frames made so far: which flow is next. */
__u64 made = 0;

/* What arrived, by processor. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} arrived SEC(".maps");

/* Where `forward` sends. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bpf_devmap_val);
} way SEC(".maps");

/* The socket that `receive` gives frames to. */
struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} socket SEC(".maps");

static __always_inline struct frame *whole(void *start, void *end)
{
	struct frame *frame = start;

	if ((void *)(frame + 1) > end)
		return 0;
	if (frame->ethernet.h_proto != bpf_htons(ETH_P_IP) || frame->ip.protocol != IPPROTO_UDP ||
	    frame->udp.dest != bpf_htons(DISCARD))
		return 0;
	return frame;
}

static __always_inline struct frame *discarded(struct xdp_md *ctx)
{
	return whole((void *)(long)ctx->data, (void *)(long)ctx->data_end);
}

static __always_inline void count(void)
{
	__u32 first = 0;
	__u64 *count = bpf_map_lookup_elem(&arrived, &first);

	if (count)
		*count += 1;
}

static __always_inline __u16 folded(__u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

/* Sends the frame out of the interface it is said to have come in by, as a packet of the next flow.
 *
 * Flows differ in their source port, and every 32,768 in one more source and one more destination
 * address: so no two flows to one destination share a port, and a NAT that translates them needs no
 * other one. They come in an order that no cache can foresee, each once in as many frames as there
 * are flows. A frame that comes round again has been changed before, so everything is written anew,
 * with its checksums. */
SEC("xdp")
int generate(struct xdp_md *ctx)
{
	struct frame *frame = discarded(ctx);
	__u32 flow, source, destination, port, sum;

	if (!frame)
		return XDP_PASS;
	flow = (__u32)(made++ * 0x9e3779b1) & flow_mask;
	/* 192.168.77.10 and 198.18.0.1 (RFC 2544) and up. */
	source = 0xc0a84d0a + (flow >> 15);
	destination = 0xc6120001 + (flow >> 15);
	port = 2048 + (flow & 0x7fff);

	__builtin_memcpy(frame->ethernet.h_dest, lan, sizeof(lan));
	__builtin_memcpy(frame->ethernet.h_source, us, sizeof(us));
	frame->ip.saddr = bpf_htonl(source);
	frame->ip.daddr = bpf_htonl(destination);
	frame->ip.ttl = 64;
	frame->udp.source = bpf_htons(port);

	/* RFC 1071: addresses are in both sums. */
	sum = (source >> 16) + (source & 0xffff) + (destination >> 16) + (destination & 0xffff);
	frame->ip.check = bpf_htons(folded(sum + 0x4500 + bpf_ntohs(frame->ip.tot_len) +
					   bpf_ntohs(frame->ip.id) + bpf_ntohs(frame->ip.frag_off) +
					   (64 << 8) + IPPROTO_UDP));
	/* The data are zeros. */
	frame->udp.check = bpf_htons(folded(sum + IPPROTO_UDP + 2 * bpf_ntohs(frame->udp.len) + port +
					    DISCARD));
	return XDP_TX;
}

/* Counts the benchmark's frames and drops them; what else there is, such as ARP, goes on. */
SEC("xdp")
int sink(struct xdp_md *ctx)
{
	if (!discarded(ctx))
		return XDP_PASS;
	count();
	return XDP_DROP;
}

/* The same where the kernel's own packets arrive. A program for XDP would have each of them copied that
 * has no room before it for what such programs may add, and no host has one on its interface. */
SEC("classifier")
int host(struct __sk_buff *packet)
{
	if (!whole((void *)(long)packet->data, (void *)(long)packet->data_end))
		return TC_ACT_OK;
	count();
	return TC_ACT_SHOT;
}

/* Redirects the benchmark's frames to the one other interface. */
SEC("xdp")
int forward(struct xdp_md *ctx)
{
	return discarded(ctx) ? bpf_redirect_map(&way, 0, XDP_DROP) : XDP_PASS;
}

/* Gives the benchmark's frames to a socket. */
SEC("xdp")
int receive(struct xdp_md *ctx)
{
	return discarded(ctx) ? bpf_redirect_map(&socket, 0, XDP_DROP) : XDP_PASS;
}

char LICENSE[] SEC("license") = "MIT";
