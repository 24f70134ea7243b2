// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/forwarded.h"

#include "dataplane/proxy/xfcc.h"
#include "tlshs/result.h"

#include <string.h>

#define XFF STR("x-forwarded-for")
#define XFP STR("x-forwarded-proto")
#define XFCC STR("x-forwarded-client-cert")
#define EXTERNAL STR("x-envoy-external-address")

// HX-56: what Envoy takes from nobody but itself and internal callers, of which we know none.
static const struct str internal_names[] = {
	STR("x-envoy-internal"),
	STR("x-envoy-retry-on"),
	STR("x-envoy-retry-grpc-on"),
	STR("x-envoy-max-retries"),
	STR("x-envoy-retriable-status-codes"),
	STR("x-envoy-retriable-header-names"),
	STR("x-envoy-upstream-alt-stat-name"),
	STR("x-envoy-upstream-rq-timeout-ms"),
	STR("x-envoy-upstream-rq-per-try-timeout-ms"),
	STR("x-envoy-upstream-rq-timeout-alt-response"),
	STR("x-envoy-expected-rq-timeout-ms"),
	STR("x-envoy-hedge-on-per-try-timeout"),
	STR("x-envoy-force-trace"),
	STR("x-envoy-ip-tags"),
	STR("x-envoy-original-url"),
};
// HX-56: likewise at an edge.
static const struct str edge_names[] = {
	STR("x-envoy-decorator-operation"),
	STR("x-envoy-original-path"),
	STR("x-envoy-original-host"),
	STR("x-envoy-downstream-service-cluster"),
	STR("x-envoy-downstream-service-node"),
};

static bool is_one_of(struct str name, const struct str *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(name, list[i]))
			return true;
	return false;
}
#define IS_ONE_OF(name, list) is_one_of(name, list, sizeof(list) / sizeof((list)[0]))

// The address that stands n from the end of all x-forwarded-for together. False = none does.
static bool nth_last(const struct field *fields, size_t n_fields, uint32_t n, struct ip_addr *ret)
{
	for (size_t i = n_fields; i-- > 0;) {
		if (!fields[i].value.len || !str_eq(fields[i].name, XFF))
			continue;
		struct str left = fields[i].value;
		for (;;) {
			size_t at = left.len;
			while (at && left.p[at - 1] != ',')
				at--;
			if (!n--) {
				struct str last = {left.p + at, left.len - at};
				return ip_parse_str(str_trim(last), ret);
			}
			if (!at)
				break;
			left.len = at - 1;
		}
	}
	return false;
}

struct ip_addr proxy_forwarded_client(const struct lb_forwarding *f, const struct ip_addr *peer,
	const struct field *fields, size_t n_fields)
{
	struct ip_addr found;
	// At an edge the connection is the last hop, else the field's last address is.
	if (f->use_remote_address && !f->trusted_hops)
		return *peer;
	uint32_t n = f->trusted_hops - f->use_remote_address;
	return nth_last(fields, n_fields, n, &found) ? found : *peer;
}

struct writer {
	const struct lb_forwarding *conf;
	const struct proxy_forwarded_from *from;
	const struct proxy_forwarded_room *room;
	struct field *out;
	size_t used; // of the room's text
	bool appends_xff, sets_xfp, drops_xfcc;
	// Positions in the output, where these fields are gathered; NULL = not met yet.
	struct field *xff, *xfcc;
	bool full;
};

static void add_text(struct writer *w, struct str s)
{
	if (s.len > w->room->size - w->used) {
		w->full = true;
		return;
	}
	if (s.len)
		memcpy(w->room->text + w->used, s.p, s.len);
	w->used += s.len;
}

static struct field *add(struct writer *w, struct field f)
{
	if (w->out == w->room->fields + w->room->max_fields) {
		w->full = true;
		return w->out - 1;
	}
	*w->out = f;
	return w->out++;
}

// What is appended to must be one field: who reads the first one alone would read a forged one.
static void gather(struct writer *w, const struct h2_message *m, struct field *to, struct str name,
	struct str end)
{
	size_t begin = w->used;
	for (size_t i = 0; i < m->n_fields; i++) {
		const struct field *f = &m->fields[i];
		if (!f->value.len || !str_eq(f->name, name))
			continue;
		if (w->used > begin)
			add_text(w, STR(","));
		add_text(w, f->value);
		to->never_index |= f->never_index;
	}
	if (w->used > begin)
		add_text(w, STR(","));
	add_text(w, end);
	to->value = (struct str){w->room->text + begin, w->used - begin};
}

// True = it is left out, or takes part in another one.
static bool takes(struct writer *w, const struct field *f)
{
	const struct lb_forwarding *conf = w->conf;
	if (str_eq(f->name, XFF)) {
		if (!w->appends_xff)
			return false;
		if (!w->xff)
			w->xff = add(w, *f);
		return true;
	}
	if (str_eq(f->name, XFP))
		return w->sets_xfp;
	if (str_eq(f->name, XFCC)) {
		if (conf->cert == LB_CERT_APPEND_FORWARD && !w->drops_xfcc) {
			if (!w->xfcc)
				w->xfcc = add(w, *f);
			return true;
		}
		return w->drops_xfcc || conf->cert == LB_CERT_SANITIZE_SET;
	}
	if (!str_starts(f->name, STR("x-envoy-")))
		return false;
	return IS_ONE_OF(f->name, internal_names) ||
	       (conf->use_remote_address &&
		       (IS_ONE_OF(f->name, edge_names) || str_eq(f->name, EXTERNAL)));
}

static struct str address_text(struct writer *w, const struct ip_addr *ip)
{
	char text[IP_PORT_TEXT_MAX];
	size_t begin = w->used;
	add_text(w, str_from(ip_print(ip, text)));
	return (struct str){w->room->text + begin, w->used - begin};
}

// HX-57..HX-59
static void write_cert(struct writer *w, const struct h2_message *m)
{
	const struct lb_forwarding *conf = w->conf;
	char text[PROXY_FORWARDED_BYTES - 512];
	if (w->drops_xfcc ||
		(conf->cert != LB_CERT_APPEND_FORWARD && conf->cert != LB_CERT_SANITIZE_SET))
		return;
	size_t len = proxy_xfcc_write(conf, w->from->peer, w->from->own_uris, text, sizeof(text));
	w->full |= !len;
	if (!w->xfcc)
		w->xfcc = add(w, (struct field){.name = XFCC});
	struct str element = {text, len};
	if (conf->cert == LB_CERT_APPEND_FORWARD) {
		gather(w, m, w->xfcc, XFCC, element);
		return;
	}
	size_t begin = w->used;
	add_text(w, element);
	w->xfcc->value = (struct str){w->room->text + begin, w->used - begin};
}

static bool drops_cert(const struct lb_forwarding *f, const struct proxy_forwarded_from *from)
{
	return f->cert != LB_CERT_ALWAYS_FORWARD_ONLY &&
	       (f->cert == LB_CERT_SANITIZE || !from->peer || !from->peer->present);
}

bool proxy_forwarded_write(const struct lb_forwarding *conf,
	const struct proxy_forwarded_from *from, const struct h2_message *m,
	const struct proxy_forwarded_room *room, struct h2_message *ret, struct ip_addr *ret_client)
{
	bool has_xfp = field_find(m->fields, m->n_fields, XFP);
	bool edge = conf->use_remote_address;
	struct writer w = {.conf = conf,
		.from = from,
		.room = room,
		.out = room->fields,
		.appends_xff = edge && !conf->skip_xff_append,
		.sets_xfp = !has_xfp || (edge && !conf->trusted_hops), // HX-54
		.drops_xfcc = drops_cert(conf, from)};
	*ret_client = proxy_forwarded_client(conf, &from->address, m->fields, m->n_fields);
	for (size_t i = 0; i < m->n_fields; i++)
		if (!takes(&w, &m->fields[i]))
			add(&w, m->fields[i]);
	if (w.appends_xff) {
		char text[IP_PORT_TEXT_MAX];
		if (!w.xff)
			w.xff = add(&w, (struct field){.name = XFF});
		gather(&w, m, w.xff, XFF, str_from(ip_print(&from->address, text))); // HX-52
	}
	if (w.sets_xfp)
		add(&w, (struct field){
				.name = XFP, .value = from->is_tls ? STR("https") : STR("http")});
	if (edge)
		add(&w, (struct field){.name = EXTERNAL, .value = address_text(&w, ret_client)});
	write_cert(&w, m);
	*ret = *m;
	ret->fields = room->fields;
	ret->n_fields = (size_t)(w.out - room->fields);
	return !w.full;
}
