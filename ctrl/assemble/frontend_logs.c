// SPDX-License-Identifier: Apache-2.0
#include "ctrl/assemble/frontend_logs.h"

#include "ctrl/access_log/access_log.h"
#include "ctrl/assemble/assembled_frontend.h"
#include "ctrl/assemble/draft.h"
#include "ctrl/conf/config.h"
#include "ctrl/deps/config.h"
#include "ctrl/res/listener.h"
#include "lb/base/log.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "lb/pick/access_set.h"

#include <stdlib.h>

#define RETRY_NS NS_PER_SECOND

struct frontend_refused {
	uint32_t n;
	uint64_t told[ACCESS_WANTS_MAX]; // hashes of what was said
};

struct asked {
	struct assembled_frontend *f;
	const struct res_listener *l;
	struct frontend_refused refused;
	bool passes; // some of it
};

// FNV-1a: whoever finds two that are the same hides a warning of his own.
static uint64_t add_text(uint64_t hash, const char *text)
{
	do
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	while (*text++);
	return hash;
}

static bool has(const struct frontend_refused *r, uint64_t hash)
{
	uint32_t i = 0;
	while (r && i < r->n && r->told[i] != hash)
		i++;
	return r && i < r->n;
}

// Of the version before, for another frontend, or of another of the listener's chains.
static bool was_told(const struct assembled_frontend *f, uint64_t hash)
{
	const struct assembled_frontend_env *env = f->env;
	bool was = false;
	for (uint32_t i = 0; i < config_n_places(env->config) && !was; i++) {
		const struct assembled_frontend *next = env->all[i].next;
		was = has(env->all[i].refused_logs, hash) ||
		      (next && has(next->refused_logs, hash));
	}
	return was;
}

// As what its decoder left out is told of.
static void tell(void *ctx, uint32_t index, const char *reason, bool passes)
{
	struct asked *a = ctx;
	const char *name = a->l->base.name;
	struct lb_err text;
	lb_err_set(&text, "access_log \"%.128s\" is ignored: %s",
		a->l->access_logs.list[index].name, reason);
	uint64_t hash = add_text(add_text(UINT64_C(0xcbf29ce484222325), name), text.text);
	a->passes |= passes;
	if (has(&a->refused, hash))
		return;
	if (a->refused.n < ACCESS_WANTS_MAX)
		a->refused.told[a->refused.n++] = hash;
	if (!was_told(a->f, hash))
		log_warn("resource", "frontend=%s type=%s name=%s warning=%s places=1",
			log_quote(a->f->env->config->frontends[a->f->owner].name),
			log_quote(a->l->base.type->label), log_quote(name), log_quote(text.text));
}

// Without memory for it, it is told once more.
static void remember(struct assembled_frontend *f, const struct frontend_refused *r)
{
	struct frontend_refused *copy = r->n ? malloc(sizeof(*copy)) : NULL;
	if (copy)
		*copy = *r;
	free(f->refused_logs);
	f->refused_logs = copy;
}

struct lb_access_set *frontend_logs_want(struct assembled_frontend *f, const struct res_listener *l)
{
	struct asked a = {.f = f, .l = l};
	struct lb_access_set *set = access_log_want(
		f->env->access_log, l->access_logs.list, l->access_logs.n, tell, &a);
	remember(f, &a.refused);
	f->lacks_logs = a.passes;
	f->logs_retry_ns = twheel_now(f->env->wheel) + RETRY_NS;
	return set;
}

static uint32_t count(const struct lb_access_set *s)
{
	return s ? s->n : 0;
}

void frontend_logs_retry(struct assembled_frontend *f)
{
	if (!f->lacks_logs || !f->applied || twheel_now(f->env->wheel) < f->logs_retry_ns)
		return;
	struct lb_access_set *set = frontend_logs_want(f, f->applied->listener);
	if (count(set) <= count(f->access)) {
		lb_access_set_put(set);
		return;
	}
	lb_access_set_put(f->access);
	f->access = set;
	if (!f->is_next)
		draft_set_access(f->env->draft, f->index, set);
	log_info("access logs found room", "frontend=%s name=%s logs=%u",
		log_quote(f->env->config->frontends[f->owner].name),
		log_quote(f->applied->listener->base.name), count(set));
}

void frontend_logs_drop(struct assembled_frontend *f)
{
	lb_access_set_put(f->access);
	free(f->refused_logs);
	f->access = NULL;
	f->refused_logs = NULL;
	f->lacks_logs = false;
}
