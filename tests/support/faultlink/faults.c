// SPDX-License-Identifier: Apache-2.0
#include "tests/support/faultlink/faults.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PARTS 2
#define SEPARATORS " \t\n"

struct unit {
	const char *name;
	double factor;
};

static const struct unit shares[] = {{"%", 0.01}, {NULL, 0}};
static const struct unit times[] = {{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {NULL, 0}};
static const struct unit rates[] = {{"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}, {NULL, 0}};
static const struct unit counts[] = {{"", 1}, {NULL, 0}};

struct part {
	const struct unit *units; // NULL = there is no such part
	size_t offset;
	double most;
};

#define SHARE(field)                                                                               \
	{                                                                                          \
		shares, offsetof(struct faults, field), 1                                          \
	}
#define TIME(field)                                                                                \
	{                                                                                          \
		times, offsetof(struct faults, field), 1e12                                        \
	}
#define RATE(field)                                                                                \
	{                                                                                          \
		rates, offsetof(struct faults, field), 1e12                                        \
	}
#define COUNT(field, most)                                                                         \
	{                                                                                          \
		counts, offsetof(struct faults, field), most                                       \
	}

static const struct key {
	const char *name;
	struct part parts[MAX_PARTS]; // separated by colons
} keys[] = {
	{"loss", {SHARE(loss)}},
	{"burst", {SHARE(burst_begin), SHARE(burst_end)}},
	{"corrupt", {SHARE(corrupt)}},
	{"forge", {SHARE(forge)}},
	{"duplicate", {SHARE(duplicate)}},
	{"reorder", {SHARE(reorder), TIME(reorder_ns)}},
	{"delay", {TIME(delay_ns)}},
	{"jitter", {TIME(jitter_ns)}},
	{"rate", {RATE(rate)}},
	{"queue", {COUNT(queue, 65536)}},
	{"blackout", {TIME(dark_from_ns), TIME(dark_ns)}},
	{"pause", {TIME(pause_every_ns), TIME(pause_ns)}},
	{"mtu", {COUNT(mtu, 65535)}},
	{"silent", {COUNT(silent, 1)}},
};

static const struct key *find(const char *word, size_t len)
{
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (strlen(keys[i].name) == len && memcmp(keys[i].name, word, len) == 0)
			return &keys[i];
	}
	return NULL;
}

// A number and its unit. Returns what follows, NULL = no such thing.
static const char *parse_part(struct faults *f, const struct part *p, const char *text)
{
	char *end;
	double number = strtod(text, &end);
	size_t len = strcspn(end, ":" SEPARATORS);
	const struct unit *u = p->units;
	while (u->name && (strlen(u->name) != len || memcmp(u->name, end, len) != 0))
		u++;
	double value = number * u->factor;
	if (end == text || !u->name || !(value >= 0 && value <= p->most))
		return NULL;
	uint8_t *field = (uint8_t *)f + p->offset;
	if (p->units == shares) {
		memcpy(field, &value, sizeof(value));
	} else {
		uint64_t whole = (uint64_t)value;
		memcpy(field, &whole, sizeof(whole));
	}
	return end + len;
}

// "key=value" or "key=value:value". Returns what follows, NULL = no such thing.
static const char *parse_word(struct faults *f, const char *word)
{
	size_t len = strcspn(word, "=" SEPARATORS);
	const struct key *key = word[len] == '=' ? find(word, len) : NULL;
	if (!key)
		return NULL;
	const char *at = parse_part(f, &key->parts[0], word + len + 1);
	if (at && key->parts[1].units)
		at = *at == ':' ? parse_part(f, &key->parts[1], at + 1) : NULL;
	return at && (!*at || strchr(SEPARATORS, *at)) ? at : NULL;
}

int faults_parse(struct faults *f, const char *text, const char **ret_word)
{
	struct faults made = *f;
	for (const char *at = text + strspn(text, SEPARATORS); *at; at += strspn(at, SEPARATORS)) {
		const char *word = at;
		at = parse_word(&made, word);
		// A pause that never ends would hold every frame for good.
		if (!at || (made.pause_ns && made.pause_ns >= made.pause_every_ns)) {
			*ret_word = word;
			return -EINVAL;
		}
	}
	*f = made;
	return 0;
}
