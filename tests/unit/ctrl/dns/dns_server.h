// SPDX-License-Identifier: Apache-2.0
// A name server on loopback, UDP and TCP, that does what the test says for each name. It runs on
// the test's own event loop.
// Thread: the test's.
#pragma once

#include "lb/base/rand.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct conn;
struct event;
struct event_base;

enum dns_way {
	DNS_ANSWER, // truncated if it is too long for UDP
	DNS_SILENT,
	DNS_NXDOMAIN,
	DNS_SERVFAIL,
	DNS_OTHER_ID, // as somebody who guesses
	DNS_OTHER_NAME, // an answer to another question
	DNS_GUESSED_FIRST, // OTHER_ID, then the answer
	DNS_SHORT, // less than a header
	DNS_CUT, // ends inside a record
	DNS_LOOP, // a name that points to itself
	DNS_LIES, // more records announced than are there
	DNS_RANDOM, // the answer with random damage
};

struct dns_rule {
	const char *host;
	enum dns_way way;
	const char *a, *aaaa; // addresses separated by blanks; NULL = none of the family
	uint32_t ttl;
	const char *cname; // the addresses belong to this name; NULL = to host
	uint32_t cname_ttl;
	enum dns_way aaaa_way; // when it is not ANSWER: for questions of that type
};

#define DNS_SERVER_RULES 32
struct dns_server {
	struct dns_rule rules[DNS_SERVER_RULES];
	unsigned n_rules; // names without a rule: NXDOMAIN
	unsigned n_udp, n_tcp; // questions that came
	struct rand rand;
	char address[32]; // "127.0.0.1:53535"
	struct event_base *events;
	int udp, tcp;
	struct event *udp_event, *tcp_event;
	struct conn *conns;
};

void dns_server_init(struct dns_server *, struct event_base *);
void dns_server_fini(struct dns_server *);
// Replaces the rule for the same name.
void dns_server_rule(struct dns_server *, const struct dns_rule *);
