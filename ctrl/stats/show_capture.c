// SPDX-License-Identifier: Apache-2.0
// `capture start`, `capture stop` and `show capture` (docs/capture.md). The first two answer once
// all workers copy frames, and once the file is whole: that takes as long as the disk does.
#include "ctrl/capture/capture.h"
#include "ctrl/conf/config.h"
#include "ctrl/stats/answer.h"
#include "ctrl/stats/show_inside.h"
#include "ctrl/stats/show_json.h"
#include "ctrl/stats/stats_server.h"
#include "lb/base/container_of.h"
#include "lb/base/str.h"
#include "lb/base/twheel.h"

#include <event2/buffer.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_S 30
#define CONDITIONS_TEXT_MAX 256
#define LEAST_SNAPLEN 64 // addresses and ports, even with tags
#define BYTES_OF_MB UINT64_C(1000000)

struct capture_wait {
	struct stats_follow follow;
	const struct show *show;
	const char *until_not; // the state that is waited for to end
	uint64_t until_ns;
	bool json;
};

static json_t *build(const struct capture_report *r)
{
	json_t *o = json_object();
	show_set_text(o, "state", r->state);
	show_set_text(o, "file", r->file);
	show_set_u64(o, "frames", r->numbers.n_frames);
	show_set_u64(o, "bytes", r->numbers.n_bytes);
	show_set_u64(o, "dropped", r->numbers.n_dropped);
	json_object_set_new(o, "seconds", json_real(show_seconds(r->numbers.ns)));
	show_set_text(o, "ended", r->ended);
	json_object_set_new(o, "with_keys", json_boolean(r->with_keys));
	show_set_u64(o, "keys", r->n_keys);
	show_set_u64(o, "keys_lost", r->n_keys_lost);
	return o;
}

static bool has_failed(const struct capture_report *r)
{
	return r->ended[0] && r->numbers.end == CAPTURE_FAILED;
}

static bool more(struct stats_follow *f, struct evbuffer *out)
{
	struct capture_wait *w = CONTAINER_OF(f, struct capture_wait, follow);
	const struct capture_report r = capture_report(w->show->conf.capture);
	struct lb_err err = {.text = ""};
	if (strcmp(r.state, w->until_not) == 0) {
		if (twheel_now(w->show->conf.wheel) < w->until_ns)
			return true;
		lb_err_set(&err, "still %s after %d s, try show capture", r.state, PATIENCE_S);
	} else if (has_failed(&r)) {
		lb_err_set(&err, "%s: %s", r.file, r.ended);
	}
	answer_append(out, answer_either(err.text[0] ? NULL : build(&r), w->json, err.text));
	return false;
}

static void wait_free(struct stats_follow *f)
{
	free(CONTAINER_OF(f, struct capture_wait, follow));
}

static void wait_while(const struct show *s, struct show_args *args, const char *state)
{
	struct capture_wait *w = malloc(sizeof(*w));
	if (!w)
		return; // out of memory is the answer
	*w = (struct capture_wait){
		.follow = {.more = more, .free = wait_free, .is_soon = true},
		.show = s,
		.until_not = state,
		.until_ns = twheel_now(s->conf.wheel) + PATIENCE_S * NS_PER_SECOND,
		.json = args->json,
	};
	args->follow = &w->follow;
}

static bool is_there(const struct show *s, struct show_args *args)
{
	if (!s->conf.capture)
		lb_err_set(&args->err, "there is no capture.directory in shunt.yaml");
	return s->conf.capture;
}

enum { HOST, DIRECTION, PORT, INTERFACE, SNAPLEN, COUNT, SECONDS, SIZE, N_KEYS };

static bool read_direction(const char *word, struct lb_capture_ask *ret)
{
	bool rx = strcmp(word, "rx") == 0;
	ret->ways = 1u << (rx ? LB_CAPTURE_RX : LB_CAPTURE_TX);
	return rx || strcmp(word, "tx") == 0;
}

static void set_number(struct capture_ask *to, int key, uint64_t n)
{
	switch (key) {
	case PORT:
		to->frames.port = (uint16_t)n;
		break;
	case INTERFACE:
		to->frames.interfaces = (uint8_t)(1u << n);
		break;
	case SNAPLEN:
		to->frames.snaplen = (uint32_t)n;
		break;
	case COUNT:
		to->bounds.n_frames = n;
		break;
	case SECONDS:
		to->bounds.ns = n * NS_PER_SECOND;
		break;
	default:
		to->bounds.n_bytes = n * BYTES_OF_MB;
	}
}

// `keys`, or one of `KEY=VALUE`. 0, or -EINVAL with args->err.
static int read_word(
	const struct show *s, struct show_args *args, const char *word, struct capture_ask *ret)
{
	const struct {
		const char *name;
		uint64_t least, most;
	} keys[N_KEYS] = {
		[HOST] = {"host="},
		[DIRECTION] = {"direction="},
		[PORT] = {"port=", 1, UINT16_MAX},
		[INTERFACE] = {"interface=", 0, s->conf.config->n_ports - 1},
		[SNAPLEN] = {"snaplen=", LEAST_SNAPLEN, LB_CAPTURE_SNAPLEN},
		[COUNT] = {"count=", 1, CAPTURE_FRAMES_MOST},
		[SECONDS] = {"seconds=", 1, CAPTURE_SECONDS_MOST},
		[SIZE] = {"size=", 1, CAPTURE_MB_MOST},
	};
	int key = 0;
	uint64_t n;
	if (strcmp(word, "keys") == 0) {
		ret->with_keys = true;
		return 0;
	}
	while (key < N_KEYS && strncmp(word, keys[key].name, strlen(keys[key].name)) != 0)
		key++;
	if (key == N_KEYS)
		return lb_err_set(&args->err, "unexpected argument '%s', try help", word);
	const char *value = word + strlen(keys[key].name);
	if (key == HOST)
		return ip_parse(value, &ret->frames.host) && !ip_is_none(&ret->frames.host)
		               ? 0
		               : lb_err_set(&args->err, "host: '%s' is not an address", value);
	if (key == DIRECTION)
		return read_direction(value, &ret->frames)
		               ? 0
		               : lb_err_set(
					 &args->err, "direction: '%s' is neither rx nor tx", value);
	if (!str_number(str_from(value), keys[key].most, &n) || n < keys[key].least)
		return lb_err_set(&args->err, "%.*s: '%s' is not between %" PRIu64 " and %" PRIu64,
			(int)strcspn(word, "="), word, value, keys[key].least, keys[key].most);
	set_number(ret, key, n);
	return 0;
}

// `PATH [KEY=VALUE]...`. False = args->err says what is wrong.
static bool read_words(const struct show *s, struct show_args *args, struct capture_ask *ret,
	char words[CONDITIONS_TEXT_MAX])
{
	if (!args->n || !args->words[0][0]) {
		lb_err_set(&args->err, "the path of a file must follow");
		return false;
	}
	*ret = (struct capture_ask){.path = args->words[0],
		.words = words,
		.frames = {.ways = (1u << LB_CAPTURE_WAYS) - 1,
			.interfaces = (uint8_t)((1u << s->conf.config->n_ports) - 1),
			.snaplen = LB_CAPTURE_SNAPLEN},
		.bounds = {.n_frames = UINT64_MAX,
			.n_bytes = CAPTURE_MB_FALLBACK * BYTES_OF_MB,
			.ns = CAPTURE_SECONDS_FALLBACK * NS_PER_SECOND}};
	words[0] = 0;
	for (unsigned i = 1; i < args->n; i++) {
		size_t len = strlen(words);
		if (show_comes_twice(args, 1, 1, i) || read_word(s, args, args->words[i], ret))
			return false;
		snprintf(words + len, CONDITIONS_TEXT_MAX - len, "%s%s", len ? " " : "",
			args->words[i]);
	}
	return true;
}

json_t *show_capture_start(const struct show *s, struct show_args *args)
{
	struct capture_ask ask;
	char words[CONDITIONS_TEXT_MAX];
	if (is_there(s, args) && read_words(s, args, &ask, words) &&
		capture_start(s->conf.capture, &ask, &args->err) == 0)
		wait_while(s, args, "opening");
	return NULL;
}

json_t *show_capture_stop(const struct show *s, struct show_args *args)
{
	if (is_there(s, args) && capture_stop(s->conf.capture, &args->err) == 0)
		wait_while(s, args, "ending");
	return NULL;
}

json_t *show_capture(const struct show *s, struct show_args *args)
{
	if (!is_there(s, args))
		return NULL;
	const struct capture_report r = capture_report(s->conf.capture);
	return build(&r);
}
