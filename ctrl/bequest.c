// SPDX-License-Identifier: Apache-2.0
#include "ctrl/bequest.h"

#include "ctrl/assemble/assemble.h"
#include "ctrl/assemble/overrides.h"
#include "ctrl/base/sealed_file.h"
#include "ctrl/bequest_wire.h"
#include "ctrl/certs/credentials.h"
#include "ctrl/certs/material.h"
#include "lb/base/log.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)BEQUEST_SECRET == CERT_TICKET_SECRET, "a secret of a process's own is told");

// Writing

struct making {
	struct bequest_writer writer;
	const char *cluster, *leaf; // whose endpoints are told; borrowed
};

static void add_override(
	void *ctx, const char *cluster, const struct ip_port *address, const struct override *what)
{
	bequest_wire_override(&((struct making *)ctx)->writer, cluster, address, what);
}

static void add_endpoint(void *ctx, const struct assembler_bequest *b)
{
	struct making *m = ctx;
	if (b->cluster != m->cluster || b->leaf != m->leaf)
		bequest_wire_leaf(&m->writer, b->cluster, b->leaf);
	m->cluster = b->cluster;
	m->leaf = b->leaf;
	bequest_wire_endpoint(&m->writer, b);
}

static int file_of(const struct bequest_writer *w)
{
	int fd = sealed_file_make("shunt-bequest", w->bytes, w->len);
	if (fd < 0)
		log_warn("nothing left to the newer process", "error=%s", log_quote(strerror(-fd)));
	return fd < 0 ? -1 : fd;
}

int bequest_make(const struct assembler *a, const struct credentials *c)
{
	struct making m = {.cluster = NULL};
	if (!bequest_wire_begin(&m.writer)) {
		log_warn("nothing left to the newer process", "error=\"out of memory\"");
		return -1;
	}
	overrides_each(assembler_overrides(a), add_override, &m);
	struct str secret = credentials_own_tickets(c);
	if (secret.len)
		bequest_wire_secret(&m.writer, (const uint8_t *)secret.p);
	assembler_bequeath(a, add_endpoint, &m);
	if (m.writer.n_left_out)
		log_warn("not all left to the newer process", "records=%u", m.writer.n_left_out);
	int fd = file_of(&m.writer);
	bequest_wire_fini(&m.writer);
	return fd;
}

// Reading

struct taking {
	struct assembler *assembler;
	uint32_t n_ejections, n_weights, n_verdicts, n_overrides, n_unused; // endpoints; overrides
	const uint8_t *secret; // borrowed; NULL = none
};

static void take_endpoint(void *ctx, const struct assembler_bequest *b)
{
	struct taking *t = ctx;
	if (!assembler_inherit(t->assembler, b)) {
		t->n_unused++;
		return;
	}
	t->n_ejections += b->of.ejection.is_ejected;
	t->n_weights += b->of.orca.qps > 0;
	t->n_verdicts += b->of.is_checked;
}

static void take_override(
	void *ctx, const char *cluster, const struct ip_port *address, struct override what)
{
	struct taking *t = ctx;
	bool took = assembler_inherit_override(t->assembler, cluster, address, what);
	t->n_overrides += took;
	t->n_unused += !took;
}

static void take_secret(void *ctx, const uint8_t secret[BEQUEST_SECRET])
{
	((struct taking *)ctx)->secret = secret;
}

static void text_free(uint8_t *bytes, size_t len)
{
	if (bytes)
		explicit_bzero(bytes, len);
	free(bytes);
}

static bool take_tickets(struct credentials *c, const uint8_t secret[BEQUEST_SECRET])
{
	return credentials_inherit_tickets(c, (struct str){(const char *)secret, BEQUEST_SECRET});
}

void bequest_take(struct assembler *a, struct credentials *c, int fd)
{
	static const struct bequest_events events = {take_endpoint, take_override, take_secret};
	struct taking t = {.assembler = a};
	uint8_t *bytes = NULL;
	size_t len = 0;
	int rc = sealed_file_read(fd, BEQUEST_MAX_LEN, &bytes, &len);
	rc = rc ? rc : bequest_wire_read(bytes, len, &events, &t);
	bool has_secret = rc == 0 && t.secret && take_tickets(c, t.secret);
	text_free(bytes, len);
	if (rc) {
		log_warn("nothing taken from the older process", "error=%s",
			log_quote(strerror(-rc)));
		return;
	}
	assembler_settle_bequests(a);
	log_info("taken from the older process",
		"ejections=%u weights=%u verdicts=%u overrides=%u tickets=%d unused=%u",
		t.n_ejections, t.n_weights, t.n_verdicts, t.n_overrides, has_secret, t.n_unused);
}
