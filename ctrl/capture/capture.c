// SPDX-License-Identifier: Apache-2.0
#include "ctrl/capture/capture.h"

#include "ctrl/access_log/place.h"
#include "ctrl/assemble/workers.h"
#include "ctrl/base/show_port.h"
#include "ctrl/conf/config.h"
#include "lb/base/log.h"
#include "lb/base/time.h"
#include "lb/pick/link.h"
#include "tlshs/keylog.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(CONFIG_MAX_PORTS <= LB_CAPTURE_PORTS, "ports");

struct capture {
	struct capture_conf conf;
	struct capture_writer *writer; // NULL = off
	bool begun, ending; // workers are to begin; to end, or they need not begin
	struct {
		bool copies; // as it was told last
		uint32_t n_sent; // commands, ever
	} told[LB_MAX_WORKERS];
	char file[ACCESS_PATH_MAX + 1];
	bool has_last;
	struct capture_numbers last;
	bool with_keys; // the capture at hand, or the last one
	uint64_t n_keys, n_keys_lost; // of the last one
};

struct capture *capture_new(const struct capture_conf *conf)
{
	struct capture *c = calloc(1, sizeof(*c));
	if (c)
		c->conf = *conf;
	return c;
}

static const char *end_of(const struct capture_numbers *n)
{
	static const char *const names[] = {
		[CAPTURE_STOPPED] = "stopped",
		[CAPTURE_COUNT] = "count",
		[CAPTURE_SIZE] = "size",
		[CAPTURE_SECONDS] = "seconds",
	};
	return n->end == CAPTURE_FAILED ? strerror(n->error) : names[n->end];
}

static void close_writer(struct capture *c)
{
	c->last = capture_writer_close(c->writer);
	c->has_last = true;
	c->writer = NULL;
	if (c->with_keys) {
		tlshs_keylog_count(c->conf.keys, &c->n_keys, &c->n_keys_lost);
		tlshs_keylog_end(c->conf.keys);
	}
	if (!c->begun)
		return;
	log_info("capture ended",
		"file=%s frames=%" PRIu64 " bytes=%" PRIu64 " dropped=%" PRIu64 " end=%s",
		log_quote(c->file), c->last.n_frames, c->last.n_bytes, c->last.n_dropped,
		log_quote(end_of(&c->last)));
}

void capture_free(struct capture *c)
{
	if (!c)
		return;
	if (c->writer) {
		capture_writer_finish(c->writer);
		close_writer(c);
	}
	free(c);
}

static bool is_over(enum capture_phase phase)
{
	return phase == CAPTURE_OVER || phase == CAPTURE_DONE;
}

static bool is_wanted(const struct capture *c)
{
	return c->begun && !c->ending;
}

// All know whether they are to copy frames.
static bool all_heard(const struct capture *c)
{
	for (uint32_t i = 0; i < workers_count(c->conf.workers); i++) {
		const struct lb_capture *w = workers_link(c->conf.workers, i)->capture;
		if (c->told[i].copies != is_wanted(c) ||
			__atomic_load_n(&w->n_heard, __ATOMIC_ACQUIRE) != c->told[i].n_sent)
			return false;
	}
	return true;
}

static const char *state_of(const struct capture *c, enum capture_phase phase)
{
	if (is_over(phase) || c->ending)
		return "ending";
	return c->begun && all_heard(c) ? "on" : "opening";
}

struct capture_report capture_report(const struct capture *c)
{
	struct capture_report r = {.state = "off",
		.file = c->file,
		.ended = "",
		.with_keys = c->with_keys,
		.n_keys = c->n_keys,
		.n_keys_lost = c->n_keys_lost};
	if (c->writer && c->with_keys)
		tlshs_keylog_count(c->conf.keys, &r.n_keys, &r.n_keys_lost);
	bool over = c->has_last;
	r.numbers = c->last;
	if (c->writer) {
		enum capture_phase phase = capture_writer_phase(c->writer);
		over = is_over(phase);
		r.state = state_of(c, phase);
		r.numbers = capture_writer_numbers(c->writer);
	}
	if (over)
		r.ended = end_of(&r.numbers);
	return r;
}

static int name_file(const struct capture *c, const char *path, char ret[ACCESS_PATH_MAX + 1],
	struct lb_err *reterr)
{
	const char *below = c->conf.config->capture->directory;
	struct access_place place = {.kind = ACCESS_FILE, .path = ret, .below = below};
	bool from_root = path[0] == '/';
	int n = snprintf(ret, ACCESS_PATH_MAX + 1, "%s%s%s", from_root ? "" : below,
		from_root ? "" : "/", path);
	if (n > ACCESS_PATH_MAX)
		return lb_err_set(reterr, "the path has more than %d bytes", ACCESS_PATH_MAX);
	return access_place_check(&place, reterr);
}

static struct counter_set names_of(const struct lb_link *link, const char *group)
{
	for (uint32_t i = 0; i < link->n_groups; i++)
		if (strcmp(link->groups[i].name, group) == 0)
			return link->groups[i].set;
	return (struct counter_set){0};
}

static void read_mac(const char *text, uint8_t ret[6])
{
	unsigned b[6] = {0};
	(void)sscanf(text, "%x:%x:%x:%x:%x:%x", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5]);
	for (int i = 0; i < 6; i++)
		ret[i] = (uint8_t)b[i];
}

static int start_writer(struct capture *c, const char *file, const struct capture_ask *ask,
	struct capture_writer **ret)
{
	const struct config *config = c->conf.config;
	const struct lb_link *first = workers_link(c->conf.workers, 0);
	struct access_place place = {.kind = ACCESS_FILE,
		.path = file,
		.below = config->capture->directory,
		.is_new = true,
		.is_private = ask->with_keys};
	struct lb_capture *workers[LB_MAX_WORKERS];
	struct capture_port ports[LB_CAPTURE_PORTS] = {0};
	char names[LB_CAPTURE_PORTS][16];
	for (uint32_t i = 0; i < workers_count(c->conf.workers); i++)
		workers[i] = workers_link(c->conf.workers, i)->capture;
	for (uint32_t i = 0; i < config->n_ports; i++) {
		snprintf(names[i], sizeof(names[i]), "port%u", i);
		ports[i].name = names[i];
		ports[i].device = config->ports[i].device;
		read_mac(c->conf.ports[i].mac, ports[i].mac);
	}
	const struct capture_writer_conf conf = {
		.place = &place,
		.application = "shuntd " SHUNT_VERSION,
		.comment = ask->words,
		.workers = workers,
		.n_workers = workers_count(c->conf.workers),
		.ports = ports,
		.n_ports = config->n_ports,
		.net = names_of(first, "net"),
		.tcp = names_of(first, "tcp"),
		.bounds = ask->bounds,
		.keys = ask->with_keys ? c->conf.keys : NULL,
		.snaplen = ask->frames.snaplen,
		.clock_ns = c->conf.clock_ns,
		.wall_ns = c->conf.wall_ns,
	};
	return capture_writer_new(&conf, ret);
}

// What was told of the last capture stays if this one is refused.
int capture_start(struct capture *c, const struct capture_ask *ask, struct lb_err *reterr)
{
	char file[sizeof(c->file)];
	if (c->writer)
		return lb_err_set(reterr, "there is a capture already, try show capture");
	if (name_file(c, ask->path, file, reterr))
		return -EINVAL;
	if (ask->with_keys && !(c->conf.keys && tlshs_keylog_begin(c->conf.keys)))
		return lb_err_set(reterr, "out of memory for keys");
	struct capture_writer *writer;
	int rc = start_writer(c, file, ask, &writer);
	if (rc) {
		if (ask->with_keys)
			tlshs_keylog_end(c->conf.keys);
		return lb_err_set(reterr, "cannot begin: %s", strerror(-rc));
	}
	strcpy(c->file, file);
	c->writer = writer;
	c->last = (struct capture_numbers){0};
	c->has_last = c->begun = c->ending = false;
	c->n_keys = c->n_keys_lost = 0;
	c->with_keys = ask->with_keys;
	for (uint32_t i = 0; i < workers_count(c->conf.workers); i++)
		workers_link(c->conf.workers, i)->capture->ask = ask->frames;
	return 0;
}

// A command that is lost for want of memory is sent again at the next tick.
static void tell(struct capture *c)
{
	bool wanted = is_wanted(c);
	const struct lb_command command = {
		.kind = wanted ? LB_COMMAND_CAPTURE : LB_COMMAND_CAPTURE_END};
	for (uint32_t i = 0; i < workers_count(c->conf.workers); i++) {
		if (c->told[i].copies == wanted || !workers_send(c->conf.workers, i, &command))
			continue;
		c->told[i].copies = wanted;
		c->told[i].n_sent++;
	}
}

int capture_stop(struct capture *c, struct lb_err *reterr)
{
	if (!c->writer)
		return lb_err_set(reterr, "there is no capture");
	c->ending = true;
	tell(c);
	return 0;
}

void capture_tick(struct capture *c)
{
	if (!c || !c->writer)
		return;
	enum capture_phase phase = capture_writer_phase(c->writer);
	if (phase == CAPTURE_RUNS && !c->begun && !c->ending) {
		c->begun = true;
		log_info("capture begins", "file=%s", log_quote(c->file));
		if (c->with_keys)
			log_warn("capture with keys",
				"file=%s text=\"whoever reads it reads what TLS hid\"",
				log_quote(c->file));
	}
	if (is_over(phase))
		c->ending = true;
	tell(c);
	if (phase == CAPTURE_DONE)
		close_writer(c);
	else if (c->ending && all_heard(c))
		capture_writer_finish(c->writer);
}
