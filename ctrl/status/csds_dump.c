// SPDX-License-Identifier: Apache-2.0
// The outer two messages are framed by hand, since their length is known only when the last entry
// is encoded; entries are encoded by protobuf-c, many to a block.
#include "ctrl/status/csds_dump.h"

#include "ctrl/xds/client.h"
#include "ctrl/xds/wire.h"
#include "envoy/service/status/v3/csds.pb-c.h"
#include "lb/base/check.h"
#include "lb/base/grow.h"
#include "lb/base/time.h"
#include "proto/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// Fields: ClientStatusResponse.config, ClientConfig.node, ClientConfig.generic_xds_configs.
enum { CONFIG = 1, NODE = 1, GENERIC = 3 };

typedef Envoy__Service__Status__V3__ClientConfig__GenericXdsConfig Entry;
typedef Envoy__Admin__V3__UpdateFailureState Failure;
typedef Google__Protobuf__Timestamp Timestamp;

struct item {
	struct item *next;
	const struct xds_type *type; // static
	struct xds_res *res; // counted; NULL = no value, or not asked for, or encoded already
	struct xds_refused *refused; // as res
	char *name, *version, *error, *error_version, *refused_url; // in `texts`
	uint64_t updated_ns, error_ns; // the wheel's; 0 = never
	enum xds_status status;
	bool has_value;
	size_t len; // of the entry when encoded
	char texts[];
};

struct csds_dump {
	struct csds_dump_conf conf;
	struct lb_arena arena; // the items
	struct item *first, *last;
	struct item *next; // the first that is not encoded yet
	bool begun, failed;
	struct rpc_part *parts; // [0] is the frame, made last
	size_t n_parts;
	uint32_t parts_room;
	size_t len; // of the parts
};

struct csds_dump *csds_dump_new(const struct csds_dump_conf *conf)
{
	struct csds_dump *d = calloc(1, sizeof(*d));
	if (d)
		d->conf = *conf;
	return d;
}

void csds_dump_free(struct csds_dump *d)
{
	if (!d)
		return;
	for (struct item *i = d->first; i; i = i->next) {
		xds_res_put(i->res);
		xds_refused_put(i->refused);
	}
	for (size_t i = 0; i < d->n_parts; i++)
		free(d->parts[i].bytes);
	free(d->parts);
	lb_arena_fini(&d->arena);
	free(d);
}

static char *copy(char **at, const char *text)
{
	size_t len = strlen(text) + 1;
	char *to = memcpy(*at, text, len);
	xds_wire_clean(to);
	*at += len;
	return to;
}

// One block an item: this is the part that can't be cut into slices.
void csds_dump_add(void *dump, const struct xds_entry_info *e)
{
	struct csds_dump *d = dump;
	DCHECK(!d->begun);
	size_t text_len = strlen(e->name) + strlen(e->version) + strlen(e->error) +
	                  strlen(e->error_version) + 5;
	const struct xds_refused *refused = d->conf.exclude_contents ? NULL : e->refused;
	if (refused)
		text_len += strlen(refused->type_url);
	struct item *i = lb_arena_alloc(&d->arena, 1, sizeof(*i) + text_len);
	if (!i) {
		d->failed = true;
		return;
	}
	char *at = i->texts;
	i->type = e->type;
	i->status = e->status;
	i->has_value = e->res;
	i->updated_ns = e->updated_ns;
	i->error_ns = e->error_ns;
	i->name = copy(&at, e->name);
	i->version = copy(&at, e->version);
	i->error = copy(&at, e->error);
	i->error_version = copy(&at, e->error_version);
	i->refused_url = copy(&at, refused ? refused->type_url : "");
	i->refused = refused ? xds_refused_get(e->refused) : NULL;
	if (e->res && !d->conf.exclude_contents) {
		// Counting is no change that anybody could see.
		i->res = xds_res_get((struct xds_res *)(uintptr_t)e->res);
	}
	*(d->last ? &d->last->next : &d->first) = i;
	d->last = i;
}

// Entries

static void set_time(const struct csds_dump *d, uint64_t ns, Timestamp *at, Timestamp **field)
{
	if (ns == 0)
		return;
	int64_t wall = (int64_t)ns + d->conf.wall_offset_ns;
	const int64_t second = NS_PER_SECOND;
	int64_t nanos = (wall % second + second) % second; // also before 1970
	google__protobuf__timestamp__init(at);
	at->seconds = (wall - nanos) / second;
	at->nanos = (int32_t)nanos;
	*field = at;
}

// What an entry is made of, on the stack while it is measured or encoded.
struct entry {
	Entry msg;
	Google__Protobuf__Any any, refused;
	Failure failure;
	Timestamp updated, failed;
};

static void set_any(Google__Protobuf__Any *any, const char *type_url, const uint8_t *bytes,
	size_t len, Google__Protobuf__Any **field)
{
	google__protobuf__any__init(any);
	any->type_url = (char *)(uintptr_t)type_url;
	any->value = (ProtobufCBinaryData){len, (uint8_t *)(uintptr_t)bytes};
	*field = any;
}

static void entry_fill(const struct csds_dump *d, const struct item *i, struct entry *e)
{
	envoy__service__status__v3__client_config__generic_xds_config__init(&e->msg);
	e->msg.type_url = (char *)(uintptr_t)i->type->url;
	e->msg.name = i->name;
	e->msg.client_status = (Envoy__Admin__V3__ClientResourceStatus)i->status; // CS-05
	if (i->has_value) {
		e->msg.version_info = i->version;
		set_time(d, i->updated_ns, &e->updated, &e->msg.last_updated);
	}
	if (i->res)
		set_any(&e->any, i->type->url, i->res->bytes, i->res->len, &e->msg.xds_config);
	if (i->error[0]) { // CS-06
		envoy__admin__v3__update_failure_state__init(&e->failure);
		e->failure.details = i->error;
		e->failure.version_info = i->error_version;
		set_time(d, i->error_ns, &e->failed, &e->failure.last_update_attempt);
		if (i->refused)
			set_any(&e->refused, i->refused_url, i->refused->bytes, i->refused->len,
				&e->failure.failed_configuration);
		e->msg.error_state = &e->failure;
	}
}

static uint8_t *put_head(uint8_t *to, uint32_t number, size_t len)
{
	const struct proto_head h = proto_head_of(number, len);
	return (uint8_t *)memcpy(to, h.bytes, h.len) + h.len;
}

// Parts

// A block of this length at the end of the list. NULL = out of memory.
static uint8_t *add_part(struct csds_dump *d, size_t len)
{
	bool has_room = grow(&d->parts, d->n_parts, &d->parts_room, sizeof(d->parts[0]));
	uint8_t *bytes = has_room ? malloc(len) : NULL;
	if (!bytes)
		return NULL;
	d->parts[d->n_parts++] = (struct rpc_part){bytes, len};
	d->len += len;
	return bytes;
}

static int begin(struct csds_dump *d)
{
	d->begun = true;
	d->next = d->first;
	uint8_t *frame = add_part(
		d, 2 * PROTO_HEAD_MAX + protobuf_c_message_get_packed_size(&d->conf.node->base));
	if (!frame)
		return -ENOMEM;
	d->len = 0; // the frame's length is known in the end
	return 0;
}

static void finish(struct csds_dump *d)
{
	struct rpc_part *frame = &d->parts[0];
	size_t node_len = protobuf_c_message_get_packed_size(&d->conf.node->base);
	size_t node_head_len = proto_head_of(NODE, node_len).len;
	uint8_t *at = put_head(frame->bytes, CONFIG, node_head_len + node_len + d->len);
	at = put_head(at, NODE, node_len);
	at += protobuf_c_message_pack(&d->conf.node->base, at);
	frame->len = (size_t)(at - frame->bytes);
	d->len += frame->len;
}

// The entries from d->next to before `end`, `len` bytes in all.
static int encode(struct csds_dump *d, const struct item *end, size_t len)
{
	uint8_t *at = add_part(d, len);
	if (!at)
		return -ENOMEM;
	for (struct item *i = d->next; i != end; i = i->next) {
		struct entry e;
		entry_fill(d, i, &e);
		at = put_head(at, GENERIC, i->len);
		at += protobuf_c_message_pack(&e.msg.base, at);
		xds_res_put(i->res);
		xds_refused_put(i->refused);
		i->res = NULL;
		i->refused = NULL;
	}
	return 0;
}

int csds_dump_step(struct csds_dump *d, size_t budget)
{
	if (d->failed || (!d->begun && begin(d)))
		return -ENOMEM;
	struct item *end = d->next;
	size_t len = 0;
	for (; end && len < budget; end = end->next) {
		struct entry e;
		entry_fill(d, end, &e);
		end->len = protobuf_c_message_get_packed_size(&e.msg.base);
		len += proto_head_of(GENERIC, end->len).len + end->len;
	}
	if (len > CSDS_MAX_LEN - d->len)
		return -E2BIG;
	if (len && encode(d, end, len))
		return -ENOMEM;
	d->next = end;
	if (end)
		return 0;
	finish(d);
	return 1;
}

size_t csds_dump_take(struct csds_dump *d, const struct rpc_part **ret, size_t *ret_len)
{
	size_t n = d->n_parts;
	d->n_parts = 0;
	*ret = d->parts;
	*ret_len = d->len;
	return n;
}
