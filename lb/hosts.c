// SPDX-License-Identifier: Apache-2.0
#include "lb/hosts.h"

#include "lb/base/check.h"
#include "lb/hash.h"

#include <stdlib.h>

// A picker may hold endpoints that left until the new ones are connected to. How long that takes
// nobody says here, so the texts stay for this many updates.
#define UPDATES_KEPT 4

struct slot {
	struct ip_port address;
	uint32_t host; // index + 1; 0 = free
};

struct entry {
	struct lb_host host;
	uint32_t first_address; // in hosts.addresses
	uint32_t n_addresses;
	uint32_t age; // updates since it left; 0 = it is there
};

struct lb_hosts {
	uint32_t n_refs; // ctrl only
	uint32_t n;
	uint32_t n_addresses;
	uint32_t mask;
	struct entry *entries; // owned
	struct ip_port *addresses; // owned
	struct slot *slots; // owned; open addressing, at most half full
	char *text; // owned
};

static uint32_t place_of(const struct lb_hosts *h, const struct ip_port *a)
{
	uint8_t key[sizeof(a->ip.b) + 2]; // without the padding of struct ip_port
	memcpy(key, a->ip.b, sizeof(a->ip.b));
	memcpy(key + sizeof(a->ip.b), &a->port, 2);
	uint32_t at = (uint32_t)lb_hash(key, sizeof(key)) & h->mask;
	while (h->slots[at].host && !ip_port_eq(&h->slots[at].address, a))
		at = (at + 1) & h->mask;
	return at;
}

const struct lb_host *lb_hosts_find(const struct lb_hosts *h, const struct ip_port *a)
{
	uint32_t found = h ? h->slots[place_of(h, a)].host : 0;
	return found ? &h->entries[found - 1].host : NULL;
}

struct sizes {
	uint32_t n, n_addresses;
	size_t text;
};

static bool allocate(struct lb_hosts *h, const struct sizes *s)
{
	uint32_t n_slots = 2;
	while (n_slots < 2 * s->n_addresses)
		n_slots *= 2;
	h->mask = n_slots - 1;
	h->slots = calloc(n_slots, sizeof(*h->slots));
	h->entries = calloc((size_t)s->n + 1, sizeof(*h->entries));
	h->addresses = calloc((size_t)s->n_addresses + 1, sizeof(*h->addresses));
	h->text = malloc(s->text + 1);
	return h->slots && h->entries && h->addresses && h->text;
}

static struct str add_text(char **at, struct str s)
{
	struct str copy = {*at, s.len};
	if (s.len)
		memcpy(*at, s.p, s.len);
	*at += s.len;
	return copy;
}

static struct str add_list(char **at, const struct ip_port *addresses, uint32_t n)
{
	char *start = *at;
	for (uint32_t i = 0; i < n; i++) {
		char one[IP_PORT_TEXT_MAX];
		if (i)
			*(*at)++ = ',';
		add_text(at, str_from(ip_port_print(&addresses[i], one)));
	}
	return (struct str){start, (size_t)(*at - start)};
}

static void add(struct lb_hosts *h, char **text, const struct lb_host_conf *c, uint32_t age)
{
	struct entry *e = &h->entries[h->n++];
	*e = (struct entry){
		.host = {.endpoint = c->endpoint ? lb_endpoint_get_again(c->endpoint) : NULL,
			.hostname = add_text(text, c->hostname),
			.addresses = add_list(text, c->addresses, c->n_addresses),
			.is_session_target = c->is_session_target},
		.first_address = h->n_addresses,
		.n_addresses = c->n_addresses,
		.age = age,
	};
	for (uint32_t i = 0; i < c->n_addresses; i++) {
		h->addresses[h->n_addresses++] = c->addresses[i];
		struct slot *s = &h->slots[place_of(h, &c->addresses[i])];
		if (!s->host)
			*s = (struct slot){c->addresses[i], h->n};
	}
}

static void measure(
	struct sizes *s, struct str hostname, const struct ip_port *addresses, uint32_t n_addresses)
{
	char one[IP_PORT_TEXT_MAX];
	s->n++;
	s->n_addresses += n_addresses;
	s->text += hostname.len;
	for (uint32_t i = 0; i < n_addresses; i++)
		s->text += strlen(ip_port_print(&addresses[i], one)) + 1; // and a comma
}

struct lb_hosts *lb_hosts_new(
	const struct lb_host_conf *conf, uint32_t n, const struct lb_hosts *before)
{
	struct lb_hosts *h = calloc(1, sizeof(*h));
	if (!h)
		return NULL;
	h->n_refs = 1;
	struct sizes sizes = {0};
	for (uint32_t i = 0; i < n; i++)
		measure(&sizes, conf[i].hostname, conf[i].addresses, conf[i].n_addresses);
	for (uint32_t i = 0; before && i < before->n; i++) {
		const struct entry *old = &before->entries[i];
		measure(&sizes, old->host.hostname, &before->addresses[old->first_address],
			old->n_addresses);
	}
	if (!allocate(h, &sizes)) {
		lb_hosts_put(h);
		return NULL;
	}
	char *text = h->text;
	for (uint32_t i = 0; i < n; i++)
		add(h, &text, &conf[i], 0);
	for (uint32_t i = 0; before && i < before->n; i++) {
		const struct entry *old = &before->entries[i];
		const struct ip_port *addresses = &before->addresses[old->first_address];
		struct lb_host_conf left = {
			NULL, addresses, old->n_addresses, old->host.hostname, false};
		if (old->age < UPDATES_KEPT && !lb_hosts_find(h, &addresses[0]))
			add(h, &text, &left, old->age + 1);
	}
	return h;
}

struct lb_hosts *lb_hosts_get(struct lb_hosts *h)
{
	h->n_refs++;
	return h;
}

void lb_hosts_put(struct lb_hosts *h)
{
	if (!h)
		return;
	CHECK(h->n_refs > 0);
	if (--h->n_refs)
		return;
	for (uint32_t i = 0; i < h->n; i++) {
		struct lb_endpoint *e = h->entries[i].host.endpoint;
		if (e)
			lb_endpoint_put(e->table, e);
	}
	free(h->entries);
	free(h->addresses);
	free(h->slots);
	free(h->text);
	free(h);
}
