// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_lookups.h"

#include "lb/base/check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void answer(struct dns_lookup *lookup, const char *addresses, uint32_t ttl_s)
{
	struct ip_addr addrs[DNS_MAX_FOUND];
	struct dns_found found = {.addrs = addrs, .ttl_s = ttl_s};
	char text[4096], *rest = text;
	CHECK(snprintf(text, sizeof(text), "%s", addresses) < (int)sizeof(text));
	for (char *word; (word = strtok_r(rest, " ", &rest)); found.n++)
		CHECK(found.n < DNS_MAX_FOUND && ip_parse(word, &addrs[found.n]));
	lookup->done(lookup, &found);
}

static int fake_start(struct dns_lookups *base, const char *host, struct dns_lookup *lookup)
{
	struct fake_lookups *f = (struct fake_lookups *)base;
	CHECK(!lookup->query);
	if (f->starve)
		return -ENOMEM;
	f->n_started++;
	if (f->instant) {
		answer(lookup, f->instant, 0);
		return 0;
	}
	struct dns_query *q = f->open;
	while (q < f->open + FAKE_LOOKUPS_MAX && *q->host)
		q++;
	CHECK(q < f->open + FAKE_LOOKUPS_MAX);
	snprintf(q->host, sizeof(q->host), "%s", host);
	q->lookup = lookup;
	lookup->query = q;
	return 0;
}

static void fake_cancel(struct dns_lookups *base, struct dns_lookup *lookup)
{
	if (!lookup->query)
		return;
	lookup->query->host[0] = '\0';
	lookup->query = NULL;
}

static void fake_free(struct dns_lookups *base)
{
	CHECK(false); // the test's own
}

static const struct dns_lookups_ops ops = {fake_start, fake_cancel, fake_free};

void fake_lookups_init(struct fake_lookups *f)
{
	*f = (struct fake_lookups){.base.ops = &ops};
}

void fake_lookups_fini(struct fake_lookups *f)
{
	for (unsigned i = 0; i < FAKE_LOOKUPS_MAX; i++)
		CHECK(!*f->open[i].host);
}

static struct dns_query *find(const struct fake_lookups *f, const char *host)
{
	for (unsigned i = 0; i < FAKE_LOOKUPS_MAX; i++)
		if (strcmp(f->open[i].host, host) == 0)
			return (struct dns_query *)(uintptr_t)&f->open[i];
	return NULL;
}

bool fake_lookups_asks(const struct fake_lookups *f, const char *host)
{
	return find(f, host);
}

static struct dns_lookup *close_query(struct fake_lookups *f, const char *host)
{
	struct dns_query *q = find(f, host);
	CHECK(q);
	q->host[0] = '\0';
	q->lookup->query = NULL;
	return q->lookup;
}

void fake_lookups_answer(
	struct fake_lookups *f, const char *host, const char *addresses, uint32_t ttl_s)
{
	answer(close_query(f, host), addresses, ttl_s);
}

void fake_lookups_fail(struct fake_lookups *f, const char *host, const char *why)
{
	struct dns_lookup *lookup = close_query(f, host);
	lookup->done(lookup, &(struct dns_found){.error = why});
}
