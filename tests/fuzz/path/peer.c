// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/path/peer.h"

#include "dataplane/net/csum.h"
#include "dataplane/tcp/csum.h"
#include "dataplane/tcp/wire.h"
#include "lb/base/check.h"

#include <string.h>

#define ETH_LEN 14
#define IP4_LEN 20
#define IP6_LEN 40
#define ND_LEN 32 // a message with a link-layer address
#define ND_SOLICITATION 135
#define ND_ADVERTISEMENT 136
#define MSS 1400
#define PREFACE_LEN 24 // of HTTP/2
#define H2_HEADERS 1

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 2}; // of all peers

// With the tag that the wire may have.
static void transmit(struct peers *all, const uint8_t *frame, size_t len)
{
	uint8_t f[VLAN_TAG + PATH_FRAME_MAX];
	CHECK(len <= PATH_FRAME_MAX);
	memcpy(f + VLAN_TAG, frame, len);
	if (all->worker->mode.vlan)
		path_worker_receive(
			all->worker, vlan_insert(f + VLAN_TAG, PATH_VLAN), len + VLAN_TAG);
	else
		path_worker_receive(all->worker, frame, len);
}

static size_t ip_len(const struct peer *p)
{
	return ip_is_v4(&p->address) ? IP4_LEN : IP6_LEN;
}

static void write_eth(uint8_t *f, uint16_t type)
{
	memcpy(f, path_mac, 6);
	memcpy(f + 6, mac, 6);
	store16(f + 12, type);
}

static void write_ip(uint8_t *f, const struct peer *p, uint8_t protocol, size_t len)
{
	uint8_t *ip = f + ETH_LEN;
	if (!ip_is_v4(&p->address)) {
		write_eth(f, 0x86dd);
		ip[0] = 0x60;
		store16(ip + 4, (uint16_t)len);
		ip[6] = protocol;
		ip[7] = 255;
		memcpy(ip + 8, p->address.b, 16);
		memcpy(ip + 24, p->other.b, 16);
		return;
	}
	write_eth(f, 0x0800);
	ip[0] = 0x45;
	store16(ip + 2, (uint16_t)(IP4_LEN + len));
	ip[8] = 64;
	ip[9] = protocol;
	memcpy(ip + 12, p->address.b + 12, 4);
	memcpy(ip + 16, p->other.b + 12, 4);
	uint16_t sum = csum(ip, IP4_LEN);
	memcpy(ip + 10, &sum, 2);
}

static void send_segment(struct peers *all, const struct peer *p, uint8_t flags, uint32_t seq,
	uint32_t ack, const uint8_t *data, size_t len)
{
	uint8_t f[PATH_FRAME_MAX] = {0};
	size_t options = flags & TCP_SYN ? 4 : 0, tcp_len = TCP_HEADER_LEN + options + len;
	CHECK(ETH_LEN + ip_len(p) + tcp_len <= sizeof(f));
	write_ip(f, p, 6, tcp_len);
	struct tcp_header h = {
		.offset = (uint8_t)((TCP_HEADER_LEN + options) / 4 << 4), .flags = flags};
	put16(h.src_port, p->port);
	put16(h.dst_port, p->other_port);
	put32(h.seq, seq);
	put32(h.ack, flags & TCP_ACK ? ack : 0);
	put16(h.window, p->window);
	uint8_t *tcp = f + ETH_LEN + ip_len(p);
	memcpy(tcp, &h, sizeof(h));
	if (options)
		put32(tcp + TCP_HEADER_LEN, 2u << 24 | 4u << 16 | MSS);
	if (len)
		memcpy(tcp + TCP_HEADER_LEN + options, data, len);
	uint16_t sum = tcp_csum_segment(tcp_csum_flow(&p->address, &p->other), tcp, tcp_len);
	memcpy(tcp + offsetof(struct tcp_header, checksum), &sum, 2);
	transmit(all, f, ETH_LEN + ip_len(p) + tcp_len);
}

static void answer_arp(struct peers *all, const uint8_t *request)
{
	uint8_t f[42] = {0};
	memcpy(f, request, sizeof(f));
	memcpy(f, path_mac, 6);
	memcpy(f + 6, mac, 6);
	f[21] = 2;
	memcpy(f + 22, mac, 6);
	memcpy(f + 28, request + 38, 4);
	memcpy(f + 32, path_mac, 6);
	memcpy(f + 38, request + 28, 4);
	transmit(all, f, sizeof(f));
}

// A neighbor solicitation that has a sender.
static void answer_solicitation(struct peers *all, const uint8_t *ip)
{
	uint8_t f[ETH_LEN + IP6_LEN + ND_LEN] = {0}, *message = f + ETH_LEN + IP6_LEN;
	struct peer as = {.port = 0};
	memcpy(as.address.b, ip + IP6_LEN + 8, 16);
	memcpy(as.other.b, ip + 8, 16);
	if (as.other.b[0] != 0xfd || as.address.b[0] != 0xfd)
		return;
	write_ip(f, &as, 58, ND_LEN);
	message[0] = ND_ADVERTISEMENT;
	message[4] = 0x60; // solicited, overrides
	memcpy(message + 8, as.address.b, 16);
	message[24] = 2;
	message[25] = 1;
	memcpy(message + 26, mac, 6);
	static const uint8_t pseudo[8] = {[3] = ND_LEN, [7] = 58};
	uint64_t sum = csum_add(csum_add(0, f + ETH_LEN + 8, 32), pseudo, sizeof(pseudo));
	uint16_t field = csum_fold(csum_add(sum, message, ND_LEN));
	memcpy(message + 2, &field, 2);
	transmit(all, f, sizeof(f));
}

// A connection to a backend begins.
static void accept_backend(struct peers *all, const struct peer *as, uint32_t seq)
{
	uint32_t number = as->address.b[15] - 1u;
	for (uint32_t i = PEER_CLIENTS; i < PEERS; i++) {
		struct peer *p = &all->list[i];
		if (p->state == PEER_OPEN || p->state == PEER_SILENT || number >= 32 ||
			!(all->listening >> number & 1))
			continue;
		*p = *as;
		p->state = PEER_OPEN;
		p->ack = seq + 1;
		p->seq = i * 0x1000000;
		p->window = UINT16_MAX;
		p->skip = PREFACE_LEN;
		send_segment(all, p, TCP_SYN | TCP_ACK, p->seq, p->ack, NULL, 0);
		p->seq++;
		return;
	}
	send_segment(all, as, TCP_RST | TCP_ACK, 0, seq + 1, NULL, 0);
}

static void scan(struct peer *p, const uint8_t *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (p->skip) {
			p->skip--;
			continue;
		}
		p->head[p->n_head++] = data[i];
		if (p->n_head < sizeof(p->head))
			continue;
		p->n_head = 0;
		p->skip = load32(p->head) >> 8;
		if (p->head[3] == H2_HEADERS)
			p->last_stream = load32(p->head + 5) & INT32_MAX;
	}
}

static void take(struct peers *all, struct peer *p, const uint8_t *tcp, size_t len)
{
	uint8_t flags = tcp[13];
	size_t header = (size_t)(tcp[12] >> 4) * 4, n = len - header;
	CHECK(header <= len);
	if (flags & TCP_RST) {
		p->state = PEER_NONE;
		return;
	}
	if (p->state == PEER_SILENT)
		return;
	if (p->state == PEER_GONE || p->state == PEER_NONE) {
		send_segment(all, p, TCP_RST, get32(tcp + 8), 0, NULL, 0);
		return;
	}
	if (p->state == PEER_OPENING && flags & TCP_SYN) {
		p->state = PEER_OPEN;
		p->ack = get32(tcp + 4) + 1;
		n = 0;
	} else if (get32(tcp + 4) == p->ack) {
		scan(p, tcp + header, n);
		p->ack += (uint32_t)n + (flags & TCP_FIN ? 1 : 0);
	}
	if ((n || flags & (TCP_FIN | TCP_SYN)) && !p->holds_acks)
		send_segment(all, p, TCP_ACK, p->seq, p->ack, NULL, 0);
}

static bool is_of(const struct peer *p, const struct peer *as)
{
	return ip_eq(&p->address, &as->address) && p->port == as->port &&
	       p->other_port == as->other_port && ip_eq(&p->other, &as->other);
}

// A segment's flow as the peer sees it, and where it is; false = it is none.
static bool segment_of(
	const uint8_t *f, size_t len, struct peer *ret, const uint8_t **ret_tcp, size_t *ret_len)
{
	const uint8_t *ip = f + ETH_LEN;
	if (load16(f + 12) == 0x0800 && len >= ETH_LEN + IP4_LEN && ip[9] == 6) {
		CHECK(ip[0] == 0x45 && csum(ip, IP4_LEN) == 0);
		ret->address = ip_from_v4(load32(ip + 16));
		ret->other = ip_from_v4(load32(ip + 12));
		*ret_tcp = ip + IP4_LEN;
		*ret_len = (size_t)load16(ip + 2) - IP4_LEN;
	} else if (load16(f + 12) == 0x86dd && len >= ETH_LEN + IP6_LEN && ip[6] == 6) {
		CHECK(ip[0] >> 4 == 6 && ip[7] == 64);
		memcpy(ret->address.b, ip + 24, 16);
		memcpy(ret->other.b, ip + 8, 16);
		*ret_tcp = ip + IP6_LEN;
		*ret_len = load16(ip + 4);
	} else {
		return false;
	}
	CHECK((size_t)(*ret_tcp - f) + *ret_len <= len && *ret_len >= TCP_HEADER_LEN);
	ret->port = get16(*ret_tcp + 2);
	ret->other_port = get16(*ret_tcp);
	CHECK(tcp_csum_segment(tcp_csum_flow(&ret->address, &ret->other), *ret_tcp, *ret_len) == 0);
	return true;
}

static void answer_neighbor(struct peers *all, const uint8_t *f, size_t len)
{
	if (len >= 42 && load16(f + 12) == 0x0806 && f[21] == 1)
		answer_arp(all, f);
	if (len >= ETH_LEN + IP6_LEN + ND_LEN && load16(f + 12) == 0x86dd && f[ETH_LEN + 6] == 58 &&
		f[ETH_LEN + IP6_LEN] == ND_SOLICITATION)
		answer_solicitation(all, f + ETH_LEN);
}

static void on_frame(void *ctx, const uint8_t *f, size_t len)
{
	struct peers *all = ctx;
	struct peer as = {.port = 0};
	const uint8_t *tcp;
	size_t tcp_len;
	uint8_t untagged[PATH_FRAME_MAX + VLAN_TAG];
	if (all->worker->mode.vlan) {
		CHECK(len <= sizeof(untagged) && vlan_of(f, (uint32_t)len) == PATH_VLAN);
		memcpy(untagged, f, len);
		f = vlan_strip(untagged);
		len -= VLAN_TAG;
	}
	if (all->answers_arp)
		answer_neighbor(all, f, len);
	if (!segment_of(f, len, &as, &tcp, &tcp_len))
		return;
	for (uint32_t i = 0; i < PEERS; i++)
		if (is_of(&all->list[i], &as)) {
			take(all, &all->list[i], tcp, tcp_len);
			return;
		}
	if (tcp[13] == TCP_SYN && as.port == PEER_PORT_BACKENDS)
		accept_backend(all, &as, get32(tcp + 4));
	else if (!(tcp[13] & TCP_RST)) // nobody has this port
		send_segment(all, &as, TCP_RST, get32(tcp + 8), 0, NULL, 0);
}

void peers_init(struct peers *all, struct path_worker *w)
{
	*all = (struct peers){
		.worker = w, .listening = UINT32_MAX, .answers_arp = true, .next_port = 1024};
	w->on_frame = on_frame;
	w->ctx = all;
}

void peer_connect(struct peers *all, uint32_t client, uint32_t frontend, uint32_t source)
{
	struct peer *p = &all->list[client];
	if (p->state != PEER_NONE && p->state != PEER_GONE)
		peer_reset(all, p);
	path_worker_settle(all->worker); // what is gone is answered under its old port
	*p = (struct peer){.state = PEER_OPENING,
		.address = wire_address(all->worker->mode.clients_v6 ? WIRE_V6 : 0, 1 + source % 4),
		.other = path_frontend_address(all->worker, frontend),
		.port = all->next_port++,
		.other_port = 80,
		.seq = client * 0x7fffff00,
		.window = UINT16_MAX,
		.next_stream = 1};
	send_segment(all, p, TCP_SYN, p->seq, 0, NULL, 0);
	p->seq++;
	path_worker_settle(all->worker);
}

void peer_say(struct peers *all, struct peer *p, const uint8_t *data, size_t len)
{
	while (p->state == PEER_OPEN && len) {
		size_t n = len < MSS ? len : MSS;
		send_segment(all, p, TCP_ACK | TCP_PSH, p->seq, p->ack, data, n);
		p->seq += (uint32_t)n;
		data += n;
		len -= n;
	}
}

void peer_segment(struct peers *all, struct peer *p, uint8_t flags, uint32_t seq, uint32_t ack,
	const uint8_t *data, size_t len)
{
	if (p->state != PEER_NONE)
		send_segment(all, p, flags, p->seq + seq, p->ack + ack, data, len);
}

void peer_finish(struct peers *all, struct peer *p)
{
	if (p->state != PEER_OPEN)
		return;
	send_segment(all, p, TCP_FIN | TCP_ACK, p->seq, p->ack, NULL, 0);
	p->seq++;
}

void peer_reset(struct peers *all, struct peer *p)
{
	if (p->state == PEER_NONE)
		return;
	send_segment(all, p, TCP_RST, p->seq, 0, NULL, 0);
	p->state = PEER_GONE;
}
