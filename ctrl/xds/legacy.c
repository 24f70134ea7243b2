// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/legacy.h"

#include "ctrl/base/sealed_file.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/cache.h"
#include "ctrl/xds/state/state_file.h"
#include "lb/base/container_of.h"
#include "lb/base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct xds_legacy {
	struct xds_settled hook;
	xds_each_client_fn each;
	void *of;
	struct xds_state state;
};

// Writing

static int make_failed(int rc)
{
	log_warn("no resources left to the newer process", "error=%s", log_quote(strerror(-rc)));
	return -1;
}

static int file_of(const struct xds_state_image *image, const struct xds_state *before)
{
	uint8_t *bytes;
	size_t len;
	int rc = xds_state_encode(image, before, &bytes, &len);
	if (rc)
		return make_failed(rc);
	int fd = sealed_file_make("shunt-resources", bytes, len);
	free(bytes);
	return fd < 0 ? make_failed(fd) : fd;
}

int xds_legacy_make(xds_each_client_fn each, void *of, const struct xds_bootstrap *b,
	const struct xds_state *before, uint64_t wall_s)
{
	struct xds_gathered *g = xds_gather(each, of, b->node_id, wall_s, true);
	if (!g)
		return make_failed(-ENOMEM);
	bool has_any = g->n_fresh || before->n_sections;
	int fd = has_any ? file_of(&g->job.image, before) : -1;
	xds_gathered_free(g);
	return fd;
}

// Reading

static void say_unused(const char *why)
{
	log_warn("no resources taken from the older process", "reason=%s", log_quote(why));
}

// Of another node nothing is taken; of servers that the bootstrap does not have nobody asks.
static bool read_state(int fd, const struct xds_bootstrap *b, struct xds_state *ret)
{
	struct lb_err err = {""};
	uint8_t *bytes;
	size_t len;
	int rc = sealed_file_read(fd, XDS_STATE_MAX_LEN, &bytes, &len);
	if (rc == 0)
		rc = xds_state_parse(bytes, len, ret, &err);
	if (rc) {
		say_unused(*err.text ? err.text : strerror(-rc));
		return false;
	}
	if (!str_eq(ret->node_id, str_from(b->node_id))) {
		say_unused("they are of another node");
		xds_state_fini(ret);
		return false;
	}
	ret->from = "the older process";
	return true;
}

static void note_standby(void *ctx, struct xds_client *client)
{
	bool *is_on = ctx;
	*is_on |= xds_client_cache(client)->stands_by;
}

// Nobody looks anything up any more: the servers have spoken.
static void on_settled(struct xds_settled *hook)
{
	struct xds_legacy *l = CONTAINER_OF(hook, struct xds_legacy, hook);
	bool is_on = false;
	l->each(l->of, note_standby, &is_on);
	if (!is_on)
		xds_state_fini(&l->state);
}

struct xds_legacy *xds_legacy_take(int fd, const struct xds_bootstrap *b)
{
	if (fd < 0)
		return NULL;
	struct xds_legacy *l = calloc(1, sizeof(*l));
	if (!l)
		say_unused("out of memory");
	if (l && !read_state(fd, b, &l->state)) {
		free(l);
		l = NULL;
	}
	close(fd);
	if (l)
		l->hook.fn = on_settled;
	return l;
}

const struct xds_state *xds_legacy_state(const struct xds_legacy *l)
{
	return &l->state;
}

struct xds_settled *xds_legacy_follow(struct xds_legacy *l, xds_each_client_fn each, void *of)
{
	l->each = each;
	l->of = of;
	return &l->hook;
}

void xds_legacy_free(struct xds_legacy *l)
{
	if (!l)
		return;
	xds_state_fini(&l->state);
	free(l);
}
