// SPDX-License-Identifier: Apache-2.0
#include "ctrl/access_log/logs.h"

#include "ctrl/access_log/collector.h"
#include "ctrl/access_log/file.h"
#include "ctrl/access_log/format.h"
#include "lb/pick/access_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(ACCESS_LOGS == 64, "logs are bits");
#define OWN_LINES 0
#define OWN_ENTRIES (ACCESS_LOGS - 1)
_Static_assert(LB_ACCESS_OWN == (UINT64_C(1) << OWN_LINES | UINT64_C(1) << OWN_ENTRIES),
	"the first and the last");
// What an entry of shunt.yaml's log has beside what all have.
#define OWN_ENTRY "request traceparent\n"

enum state {
	FREE, // ctrl's
	SERVES,
	LEAVES, // ctrl: no worker tells of it any more
	LEFT, // the writer: it has no records of it, and does not look at it again
};

struct one {
	atomic_int state; // w: ctrl (release), the writer LEFT (release)
	struct access_output *out; // of outputs
	struct access_format *format; // owned
	uint64_t leaves_ns; // the writer's: when it first saw it leave; 0 = it has not
	// Ctrl's alone:
	enum access_form form;
	char *text; // owned: what the format was made of
	uint32_t n_users; // in sets
};

struct access_logs {
	struct access_logs_conf conf;
	struct one all[ACCESS_LOGS]; // the first and the last are shunt.yaml's
	struct access_output *outputs[ACCESS_LOGS]; // owned; ctrl's; NULL = a free place
	struct lb_access_set **sets; // owned, counted; ctrl's
	uint32_t n_sets;
	struct access_logs_totals closed; // ctrl's
};

static int state_of(const struct one *k)
{
	return atomic_load_explicit(&k->state, memory_order_acquire);
}

static void set_state(struct one *k, enum state state)
{
	atomic_store_explicit(&k->state, (int)state, memory_order_release);
}

// Outputs

static bool is_at(const struct access_output *o, const struct access_place *p)
{
	return o && access_place_eq(&o->place, p);
}

static int make_output(struct access_logs *l, const struct access_place *place, bool is_own,
	struct access_output **ret, struct lb_err *reterr)
{
	if (place->kind == ACCESS_COLLECTOR)
		return access_collector_new(place, &l->conf.node, l->conf.seed++, ret, reterr);
	return access_file_new(place, !is_own, ret, reterr);
}

// Of listeners' outputs there are so many of a kind at a time.
static int check_room(const struct access_place *place, unsigned n, unsigned most, const char *what,
	struct lb_err *reterr)
{
	if (n < most)
		return 0;
	lb_err_set(reterr, "%s: there are %u %s already", place->path, most, what);
	return -ENOSPC;
}

static int get_output(struct access_logs *l, const struct access_place *place, bool is_own,
	struct access_output **ret, struct lb_err *reterr)
{
	struct access_output **free_place = NULL;
	unsigned n_files = 0, n_collectors = 0;
	int rc = 0;
	for (unsigned i = 0; i < ACCESS_LOGS; i++) {
		struct access_output *o = l->outputs[i];
		if (is_at(o, place)) {
			o->n_users++;
			*ret = o;
			return 0;
		}
		n_files += o && o->place.below;
		n_collectors += o && o->place.kind == ACCESS_COLLECTOR;
		if (!o && !free_place)
			free_place = &l->outputs[i];
	}
	if (place->below)
		rc = check_room(place, n_files, ACCESS_XDS_FILES, "files", reterr);
	else if (place->kind == ACCESS_COLLECTOR && !is_own)
		rc = check_room(place, n_collectors, ACCESS_XDS_COLLECTORS, "collectors", reterr);
	// There are as many places as logs, each of which needs no more than one.
	if (!rc)
		rc = make_output(l, place, is_own, free_place, reterr);
	if (!rc) {
		(*free_place)->n_users = 1;
		(*free_place)->own = l->all[OWN_LINES].out; // NULL while that is made
		*ret = *free_place;
	}
	return rc;
}

static void put_output(struct access_logs *l, struct access_output *o)
{
	if (--o->n_users)
		return;
	for (unsigned i = 0; i < ACCESS_LOGS; i++)
		if (l->outputs[i] == o)
			l->outputs[i] = NULL;
	l->closed.n_lines += counter_read(&o->n_lines);
	l->closed.n_cut += counter_read(&o->n_cut);
	l->closed.n_failed += counter_read(&o->n_failed);
	l->closed.n_unopened += counter_read(&o->n_unopened);
	l->closed.n_cut += access_output_n_waiting(o); // nobody will have them
	access_output_free(o);
}

// Logs

static int make_format(const struct access_want *w, struct access_format **ret, struct lb_err *err)
{
	int rc;
	switch (w->form) {
	case ACCESS_TEXT:
		rc = access_format_new(w->format, ret, err);
		break;
	case ACCESS_ENTRY:
		rc = access_format_new_entry(w->format, ret, err);
		break;
	default:
		rc = access_format_new_json(w->format, w->form == ACCESS_JSON_TYPED, ret, err);
	}
	return rc == -EINVAL ? lb_err_within(err, "format") : rc;
}

static void clear(struct access_logs *l, struct one *k)
{
	if (k->out)
		put_output(l, k->out);
	access_format_free(k->format);
	free(k->text);
	k->out = NULL;
	k->format = NULL;
	k->text = NULL;
	set_state(k, FREE);
}

static bool is_own(const struct access_logs *l, const struct one *k)
{
	return k == &l->all[OWN_LINES] || k == &l->all[OWN_ENTRIES];
}

// The form and the output are in place before the state says so.
static int start(
	struct access_logs *l, struct one *k, const struct access_want *w, struct lb_err *reterr)
{
	int rc = make_format(w, &k->format, reterr);
	if (!rc)
		rc = get_output(l, &w->place, is_own(l, k), &k->out, reterr);
	k->form = w->form;
	k->leaves_ns = 0;
	k->text = rc || !w->format ? NULL : strdup(w->format);
	if (!rc && w->format && !k->text)
		rc = -ENOMEM;
	if (rc)
		clear(l, k);
	else
		set_state(k, SERVES);
	return rc;
}

static bool is_same(const struct one *k, const struct access_want *w)
{
	return state_of(k) == SERVES && k->form == w->form && k->text &&
	       strcmp(k->text, w->format) == 0 && is_at(k->out, &w->place);
}

// Its address is shunt.yaml's to say, as whoever is told of traces is.
static int permit_collector(
	const struct access_logs *l, struct access_place *place, struct lb_err *reterr)
{
	for (uint32_t i = 0; i < l->conf.n_xds_collectors; i++)
		if (strcmp(l->conf.xds_collectors[i].name, place->path) == 0) {
			place->path = l->conf.xds_collectors[i].address;
			return 0;
		}
	return lb_err_set(reterr,
		"%.128s: shunt.yaml names no address of this cluster (access_log.xds_collectors)",
		place->path);
}

static int permit(const struct access_logs *l, struct access_place *place, struct lb_err *reterr)
{
	if (place->kind == ACCESS_COLLECTOR)
		return permit_collector(l, place, reterr);
	if (place->kind != ACCESS_FILE)
		return l->conf.xds_stdout ? 0
		                          : lb_err_set(reterr,
						    "%s: shunt.yaml does not permit it "
						    "(access_log.xds_stdout)",
						    access_place_name(place));
	if (!l->conf.xds_directory)
		return lb_err_set(reterr,
			"%.128s: shunt.yaml names no directory for it (access_log.xds_directory)",
			place->path);
	place->below = l->conf.xds_directory;
	return access_place_check(place, reterr);
}

static int find(struct access_logs *l, const struct access_want *asked, struct one **ret,
	struct lb_err *reterr)
{
	struct access_want w = *asked;
	struct one *free_one = NULL;
	int rc = permit(l, &w.place, reterr);
	for (unsigned i = OWN_LINES + 1; !rc && i < OWN_ENTRIES; i++) {
		struct one *k = &l->all[i];
		if (is_same(k, &w)) {
			*ret = k;
			return 0;
		}
		if (!free_one && state_of(k) == FREE)
			free_one = k;
	}
	if (!rc && !free_one) {
		lb_err_set(reterr, "there are %d logs of listeners already", ACCESS_WANTS_MAX);
		rc = -ENOSPC;
	}
	if (!rc)
		rc = start(l, free_one, &w, reterr);
	if (!rc)
		*ret = free_one;
	return rc;
}

// Nobody wants it: it never did serve, or its last set is gone.
static void drop_user(struct one *k)
{
	if (!--k->n_users)
		set_state(k, LEAVES);
}

static void drop_users(struct access_logs *l, const struct lb_access_log *logs, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		drop_user(&l->all[__builtin_ctzll(logs[i].bit)]);
}

static struct lb_access_set *keep_set(
	struct access_logs *l, const struct lb_access_log *logs, uint32_t n)
{
	struct lb_access_set **more = realloc(l->sets, (l->n_sets + 1) * sizeof(*more));
	if (!more)
		return NULL;
	l->sets = more;
	struct lb_access_set *s = lb_access_set_new(logs, n);
	if (s)
		l->sets[l->n_sets++] = s;
	return lb_access_set_get(s);
}

struct lb_access_set *access_logs_want(struct access_logs *l, const struct access_want *wants,
	uint32_t n, access_refused_fn *tell, void *ctx)
{
	struct lb_access_log *logs = calloc((size_t)n + 1, sizeof(*logs));
	uint32_t n_logs = 0;
	for (uint32_t i = 0; logs && i < n; i++) {
		struct one *k;
		struct lb_err err = {"out of memory"};
		int rc = find(l, &wants[i], &k, &err);
		if (rc) {
			tell(ctx, i, err.text, rc != -EINVAL);
			continue;
		}
		k->n_users++;
		logs[n_logs++] = (struct lb_access_log){UINT64_C(1) << (k - l->all), wants[i].test};
	}
	struct lb_access_set *s = n_logs ? keep_set(l, logs, n_logs) : NULL;
	if (!s && n_logs) {
		drop_users(l, logs, n_logs);
		tell(ctx, 0, "out of memory", true);
	}
	free(logs);
	return s;
}

// Of a set that nobody else has, no snapshot has been read since a grace period.
static void sweep_sets(struct access_logs *l)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < l->n_sets; i++) {
		struct lb_access_set *s = l->sets[i];
		if (s->n_refs > 1) {
			l->sets[n++] = s;
			continue;
		}
		drop_users(l, s->logs, s->n);
		lb_access_set_put(s);
	}
	l->n_sets = n;
}

void access_logs_sweep(struct access_logs *l)
{
	sweep_sets(l);
	for (unsigned i = OWN_LINES + 1; i < OWN_ENTRIES; i++)
		if (state_of(&l->all[i]) == LEFT)
			clear(l, &l->all[i]);
}

int access_logs_new(
	const struct access_logs_conf *conf, struct access_logs **ret, struct lb_err *reterr)
{
	struct access_logs *l = calloc(1, sizeof(*l));
	if (!l) {
		lb_err_set(reterr, "out of memory");
		return -ENOMEM;
	}
	l->conf = *conf;
	int rc = 0;
	if (conf->own) {
		const struct access_want own = {.place = *conf->own, .format = conf->text_format};
		rc = start(l, &l->all[OWN_LINES], &own, reterr);
	}
	if (!rc && conf->own_collector) {
		const struct access_want own = {
			.place = *conf->own_collector, .form = ACCESS_ENTRY, .format = OWN_ENTRY};
		rc = start(l, &l->all[OWN_ENTRIES], &own, reterr);
	}
	if (rc) {
		access_logs_free(l);
		return rc;
	}
	*ret = l;
	return 0;
}

void access_logs_free(struct access_logs *l)
{
	if (!l)
		return;
	for (uint32_t i = 0; i < l->n_sets; i++)
		lb_access_set_put(l->sets[i]);
	for (unsigned i = 0; i < ACCESS_LOGS; i++)
		clear(l, &l->all[i]);
	free(l->sets);
	free(l);
}

const struct access_format *access_logs_own_format(const struct access_logs *l)
{
	return l->all[OWN_LINES].format;
}

void access_logs_each_output(
	const struct access_logs *l, void (*fn)(void *ctx, struct access_output *), void *ctx)
{
	for (unsigned i = 0; i < ACCESS_LOGS; i++)
		if (l->outputs[i])
			fn(ctx, l->outputs[i]);
}

static void add_up(void *ctx, struct access_output *o)
{
	struct access_logs_totals *sum = ctx;
	int error = atomic_load_explicit(&o->error, memory_order_relaxed);
	int reopen_error = atomic_load_explicit(&o->reopen_error, memory_order_relaxed);
	sum->n_lines += counter_read(&o->n_lines);
	sum->n_cut += counter_read(&o->n_cut);
	sum->n_failed += counter_read(&o->n_failed);
	sum->n_unopened += counter_read(&o->n_unopened);
	if (error)
		sum->error = error;
	if (reopen_error)
		sum->reopen_error = reopen_error;
}

struct access_logs_totals access_logs_totals(const struct access_logs *l)
{
	struct access_logs_totals sum = l->closed;
	access_logs_each_output(l, add_up, &sum);
	return sum;
}

// The writer

static bool is_served(const struct one *k)
{
	int state = state_of(k);
	return state == SERVES || state == LEAVES;
}

void access_logs_look(struct access_logs *l, struct access_logs_now *ret)
{
	ret->n = 0;
	ret->leaving = 0;
	for (unsigned i = 0; i < ACCESS_LOGS; i++) {
		const struct one *k = &l->all[i];
		if (!is_served(k))
			continue;
		if (state_of(k) == LEAVES)
			ret->leaving |= UINT64_C(1) << i;
		uint32_t j = 0;
		while (j < ret->n && ret->outputs[j] != k->out)
			j++;
		if (j == ret->n)
			ret->outputs[ret->n++] = k->out;
	}
}

// What fails to be written is not waited for, nor for long a reader who does not read: each change
// of a listener would take another number.
static bool is_done(struct one *k, uint64_t now_ns)
{
	if (!k->leaves_ns)
		k->leaves_ns = now_ns;
	return !access_output_waits(k->out) || now_ns - k->leaves_ns >= ACCESS_LAST_NS ||
	       atomic_load_explicit(&k->out->error, memory_order_relaxed);
}

// Ctrl may let another log have the output meanwhile: then it is opened again.
static bool is_last(const struct access_logs *l, const struct one *k)
{
	for (unsigned i = 0; i < ACCESS_LOGS; i++)
		if (&l->all[i] != k && is_served(&l->all[i]) && l->all[i].out == k->out)
			return false;
	return true;
}

void access_logs_let_go(struct access_logs *l, struct access_logs_now *now, uint64_t now_ns)
{
	for (uint64_t bits = now->leaving; bits; bits &= bits - 1) {
		struct one *k = &l->all[__builtin_ctzll(bits)];
		bool last = is_last(l, k);
		access_output_finish(k->out, last);
		if (last && !is_done(k, now_ns))
			continue;
		if (last)
			access_output_close(k->out);
		set_state(k, LEFT);
	}
	access_logs_look(l, now);
}

void access_logs_write(struct access_logs *l, const struct access_view *v)
{
	for (uint64_t bits = v->record->logs; bits; bits &= bits - 1) {
		const struct one *k = &l->all[__builtin_ctzll(bits)];
		struct access_output *o = is_served(k) ? k->out : NULL;
		if (o && access_output_room(o) < ACCESS_LINE_MAX)
			access_output_flush(o);
		if (o && access_output_room(o) < ACCESS_LINE_MAX)
			access_output_drop(o);
		else if (o) {
			struct access_line line = {.p = o->buf + o->len, .size = ACCESS_LINE_MAX};
			access_format_write(k->format, v, &line);
			o->len += line.len;
		}
	}
}
