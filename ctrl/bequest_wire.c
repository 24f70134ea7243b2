// SPDX-License-Identifier: Apache-2.0
#include "ctrl/bequest_wire.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT 1
#define HEAD 8
#define RECORD_HEAD 4
#define FIELD_HEAD 4
#define ADDRESS_LEN 18
#define NAME_MAX_LEN 4096 // of a cluster

enum record { RECORD_LEAF = 1, RECORD_ENDPOINT, RECORD_OVERRIDE, RECORD_TICKETS };

enum field { // ids are of all records
	FIELD_CLUSTER = 1, // text
	FIELD_LEAF, // text
	FIELD_ADDRESSES, // each 16 bytes and a port
	FIELD_MULTIPLIER, // 32 bit
	FIELD_EJECTED_AGO, // ns, 64 bit: it is ejected
	FIELD_SERVES, // 32 bit: 0 or 1
	FIELD_REPORT, // requests and failures a second, utilization (floats), age in ns (64 bit)
	FIELD_SERIES_AGO, // ns, 64 bit
	FIELD_HEALTH, // 32 bit, as in EDS
	FIELD_WEIGHT, // 32 bit
	FIELD_SECRET, // BEQUEST_SECRET bytes
};
#define REPORT_LEN 20

static const uint8_t head[HEAD] = {'S', 'H', 'B', 'Q', 0, FORMAT, 0, 0};

// Numbers

static void put(uint8_t *at, uint64_t n, size_t len)
{
	for (size_t i = len; i-- > 0; n >>= 8)
		at[i] = (uint8_t)n;
}

static uint64_t get(const uint8_t *at, size_t len)
{
	uint64_t n = 0;
	for (size_t i = 0; i < len; i++)
		n = n << 8 | at[i];
	return n;
}

static void put_float(uint8_t *at, float x)
{
	uint32_t bits;
	memcpy(&bits, &x, sizeof(bits));
	put(at, bits, sizeof(bits));
}

// What no report can have is none.
static float get_float(const uint8_t *at)
{
	uint32_t bits = (uint32_t)get(at, sizeof(bits));
	float x;
	memcpy(&x, &bits, sizeof(x));
	return isfinite(x) && x > 0 ? x : 0;
}

// Writing

void bequest_wire_fini(struct bequest_writer *w)
{
	if (w->bytes)
		explicit_bzero(w->bytes, w->len);
	free(w->bytes);
	*w = (struct bequest_writer){.bytes = NULL};
}

// Not by realloc(), which may leave what was there.
static bool grow(struct bequest_writer *w, size_t len)
{
	size_t room = w->room ? w->room : 4096;
	while (room - w->len < len)
		room *= 2;
	uint8_t *bytes = room <= BEQUEST_MAX_LEN ? malloc(room) : NULL;
	if (!bytes)
		return false;
	if (w->bytes) {
		memcpy(bytes, w->bytes, w->len);
		explicit_bzero(w->bytes, w->len);
	}
	free(w->bytes);
	w->bytes = bytes;
	w->room = room;
	return true;
}

static uint8_t *claim(struct bequest_writer *w, size_t len)
{
	if (len > w->room - w->len && !grow(w, len))
		return NULL;
	uint8_t *at = w->bytes + w->len;
	w->len += len;
	return at;
}

// A record that is begun, or has no room and is left out at its end.
struct draft {
	struct bequest_writer *w;
	size_t from;
	bool is_full;
};

static struct draft begin(struct bequest_writer *w, enum record kind)
{
	struct draft d = {w, w->len, false};
	uint8_t *at = claim(w, RECORD_HEAD);
	d.is_full = !at;
	if (at)
		put(at, kind, 2);
	return d;
}

static void add(struct draft *d, enum field id, const void *bytes, size_t len)
{
	uint8_t *at = d->is_full || len > UINT16_MAX ? NULL : claim(d->w, FIELD_HEAD + len);
	d->is_full |= !at;
	if (!at)
		return;
	put(at, id, 2);
	put(at + 2, len, 2);
	memcpy(at + FIELD_HEAD, bytes, len);
}

static void add_number(struct draft *d, enum field id, uint64_t n, size_t len)
{
	uint8_t bytes[8];
	put(bytes, n, len);
	add(d, id, bytes, len);
}

static void add_addresses(struct draft *d, const struct ip_port *addresses, uint32_t n)
{
	uint8_t bytes[BEQUEST_MAX_ADDRESSES * ADDRESS_LEN];
	d->is_full |= n > BEQUEST_MAX_ADDRESSES;
	for (uint32_t i = 0; !d->is_full && i < n; i++) {
		memcpy(bytes + (size_t)i * ADDRESS_LEN, addresses[i].ip.b, 16);
		put(bytes + (size_t)i * ADDRESS_LEN + 16, addresses[i].port, 2);
	}
	add(d, FIELD_ADDRESSES, bytes, (size_t)n * ADDRESS_LEN);
}

// False = it has no room, and is left out.
static bool end(struct draft *d)
{
	size_t len = d->w->len - d->from - RECORD_HEAD;
	if (!d->is_full && len <= UINT16_MAX) {
		put(d->w->bytes + d->from + 2, len, 2);
		return true;
	}
	d->w->len = d->from;
	d->w->n_left_out++;
	return false;
}

bool bequest_wire_begin(struct bequest_writer *w)
{
	*w = (struct bequest_writer){.bytes = NULL};
	uint8_t *at = claim(w, HEAD);
	if (at)
		memcpy(at, head, HEAD);
	return at;
}

static void add_report(struct draft *d, const struct lb_orca_bequest *o)
{
	uint8_t bytes[REPORT_LEN];
	put_float(bytes, o->qps);
	put_float(bytes + 4, o->eps);
	put_float(bytes + 8, o->utilization);
	put(bytes + 12, o->last_ago_ns, 8);
	add(d, FIELD_REPORT, bytes, sizeof(bytes));
	if (o->in_series)
		add_number(d, FIELD_SERIES_AGO, o->since_ago_ns, 8);
}

void bequest_wire_leaf(struct bequest_writer *w, const char *cluster, const char *leaf)
{
	struct draft d = begin(w, RECORD_LEAF);
	add(&d, FIELD_CLUSTER, cluster, strlen(cluster));
	add(&d, FIELD_LEAF, leaf, strlen(leaf));
	w->has_leaf = end(&d);
}

void bequest_wire_endpoint(struct bequest_writer *w, const struct assembler_bequest *b)
{
	struct draft d = begin(w, RECORD_ENDPOINT);
	d.is_full |= !w->has_leaf;
	add_addresses(&d, b->addresses, b->n_addresses);
	if (b->of.ejection.multiplier)
		add_number(&d, FIELD_MULTIPLIER, b->of.ejection.multiplier, 4);
	if (b->of.ejection.is_ejected)
		add_number(&d, FIELD_EJECTED_AGO, b->of.ejection.ago_ns, 8);
	if (b->of.is_checked)
		add_number(&d, FIELD_SERVES, b->of.serves, 4);
	if (b->of.orca.qps > 0)
		add_report(&d, &b->of.orca);
	(void)end(&d);
}

void bequest_wire_override(struct bequest_writer *w, const char *cluster,
	const struct ip_port *address, const struct override *what)
{
	struct draft d = begin(w, RECORD_OVERRIDE);
	add(&d, FIELD_CLUSTER, cluster, strlen(cluster));
	add_addresses(&d, address, 1);
	if (what->has_health)
		add_number(&d, FIELD_HEALTH, what->health, 4);
	if (what->weight)
		add_number(&d, FIELD_WEIGHT, what->weight, 4);
	(void)end(&d);
}

void bequest_wire_secret(struct bequest_writer *w, const uint8_t secret[BEQUEST_SECRET])
{
	struct draft d = begin(w, RECORD_TICKETS);
	add(&d, FIELD_SECRET, secret, BEQUEST_SECRET);
	(void)end(&d);
}

// Reading

struct reading {
	const struct bequest_events *events; // NULL = it is only checked
	void *ctx;
	char cluster[NAME_MAX_LEN + 1], leaf[NAME_MAX_LEN + 1]; // of the endpoints that follow
	struct ip_port addresses[BEQUEST_MAX_ADDRESSES];
	// Of the record.
	char name[NAME_MAX_LEN + 1]; // of an override's cluster
	struct assembler_bequest endpoint;
	struct override override;
	const uint8_t *secret; // NULL = none
};

static int read_text(const uint8_t *bytes, size_t len, char ret[NAME_MAX_LEN + 1])
{
	if (len == 0 || len > NAME_MAX_LEN || memchr(bytes, 0, len))
		return -EPROTO;
	memcpy(ret, bytes, len);
	ret[len] = 0;
	return 0;
}

static int read_addresses(struct reading *r, const uint8_t *bytes, size_t len)
{
	if (len == 0 || len % ADDRESS_LEN || len / ADDRESS_LEN > BEQUEST_MAX_ADDRESSES)
		return -EPROTO;
	r->endpoint.addresses = r->addresses;
	r->endpoint.n_addresses = (uint32_t)(len / ADDRESS_LEN);
	for (uint32_t i = 0; i < r->endpoint.n_addresses; i++, bytes += ADDRESS_LEN) {
		memcpy(r->addresses[i].ip.b, bytes, 16);
		r->addresses[i].port = (uint16_t)get(bytes + 16, 2);
	}
	return 0;
}

static int read_report(struct lb_orca_bequest *o, const uint8_t *bytes, size_t len)
{
	if (len != REPORT_LEN)
		return -EPROTO;
	o->qps = get_float(bytes);
	o->eps = get_float(bytes + 4);
	o->utilization = get_float(bytes + 8);
	o->last_ago_ns = get(bytes + 12, 8);
	return 0;
}

static void take_number(struct reading *r, uint32_t id, uint64_t n)
{
	struct lb_bequest *of = &r->endpoint.of;
	switch (id) {
	case FIELD_MULTIPLIER:
		of->ejection.multiplier = (uint32_t)n;
		break;
	case FIELD_EJECTED_AGO:
		of->ejection.is_ejected = true;
		of->ejection.ago_ns = n;
		break;
	case FIELD_SERVES:
		of->is_checked = true;
		of->serves = n != 0;
		break;
	case FIELD_SERIES_AGO:
		of->orca.in_series = true;
		of->orca.since_ago_ns = n;
		break;
	case FIELD_HEALTH:
		r->override.has_health = n < LB_LEAF_OTHER;
		r->override.health = n < LB_LEAF_OTHER ? (enum lb_leaf_health)n : LB_LEAF_OTHER;
		break;
	case FIELD_WEIGHT:
		r->override.weight = n < OVERRIDE_MAX_WEIGHT ? (uint32_t)n : OVERRIDE_MAX_WEIGHT;
		break;
	default: // of a later version
		break;
	}
}

static int read_field(
	struct reading *r, enum record kind, uint32_t id, const uint8_t *bytes, size_t len)
{
	switch (id) {
	case FIELD_CLUSTER:
		return read_text(bytes, len, kind == RECORD_LEAF ? r->cluster : r->name);
	case FIELD_LEAF:
		return read_text(bytes, len, r->leaf);
	case FIELD_ADDRESSES:
		return read_addresses(r, bytes, len);
	case FIELD_REPORT:
		return read_report(&r->endpoint.of.orca, bytes, len);
	case FIELD_SECRET:
		r->secret = bytes;
		return len == BEQUEST_SECRET ? 0 : -EPROTO;
	case FIELD_EJECTED_AGO:
	case FIELD_SERIES_AGO:
		if (len != 8)
			return -EPROTO;
		break;
	case FIELD_MULTIPLIER:
	case FIELD_SERVES:
	case FIELD_HEALTH:
	case FIELD_WEIGHT:
		if (len != 4)
			return -EPROTO;
		break;
	default:
		return 0;
	}
	take_number(r, id, get(bytes, len));
	return 0;
}

// A later version may have another one than this.
static void tell_secret(struct reading *r)
{
	if (r->events && r->secret)
		r->events->on_secret(r->ctx, r->secret);
}

static int tell(struct reading *r, enum record kind)
{
	if (kind == RECORD_TICKETS) {
		tell_secret(r);
		return 0;
	}
	if (kind == RECORD_LEAF)
		return r->cluster[0] && r->leaf[0] ? 0 : -EPROTO;
	if (!r->endpoint.n_addresses || !(kind == RECORD_ENDPOINT ? r->leaf : r->name)[0])
		return -EPROTO;
	if (r->events && kind == RECORD_ENDPOINT)
		r->events->on_endpoint(r->ctx, &r->endpoint);
	else if (r->events)
		r->events->on_override(r->ctx, r->name, &r->addresses[0], r->override);
	return 0;
}

// One that is not known is skipped.
static int read_record(struct reading *r, uint32_t kind, const uint8_t *bytes, size_t len)
{
	if (kind < RECORD_LEAF || kind > RECORD_TICKETS)
		return 0;
	if (kind == RECORD_LEAF)
		r->cluster[0] = r->leaf[0] = 0;
	r->name[0] = 0;
	r->endpoint = (struct assembler_bequest){.cluster = r->cluster, .leaf = r->leaf};
	r->override = (struct override){.has_health = false};
	r->secret = NULL;
	for (size_t at = 0; at < len;) {
		if (len - at < FIELD_HEAD || len - at - FIELD_HEAD < get(bytes + at + 2, 2))
			return -EPROTO;
		size_t n = get(bytes + at + 2, 2);
		if (read_field(r, kind, (uint32_t)get(bytes + at, 2), bytes + at + FIELD_HEAD, n))
			return -EPROTO;
		at += FIELD_HEAD + n;
	}
	return tell(r, kind);
}

static int read_all(struct reading *r, const uint8_t *bytes, size_t len)
{
	r->cluster[0] = r->leaf[0] = 0;
	for (size_t at = HEAD; at < len;) {
		if (len - at < RECORD_HEAD || len - at - RECORD_HEAD < get(bytes + at + 2, 2))
			return -EPROTO;
		size_t n = get(bytes + at + 2, 2);
		if (read_record(r, (uint32_t)get(bytes + at, 2), bytes + at + RECORD_HEAD, n))
			return -EPROTO;
		at += RECORD_HEAD + n;
	}
	return 0;
}

int bequest_wire_read(
	const uint8_t *bytes, size_t len, const struct bequest_events *events, void *ctx)
{
	struct reading r = {.events = NULL, .ctx = ctx};
	if (len < HEAD || memcmp(bytes, head, HEAD - 2) != 0)
		return -EPROTO;
	int rc = read_all(&r, bytes, len);
	r.events = events;
	return rc ? rc : read_all(&r, bytes, len);
}
