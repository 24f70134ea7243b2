// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/response.h"

#include "ctrl/base/slice.h"
#include "ctrl/xds/raw.h"
#include "ctrl/xds/variants/constraints.h"
#include "envoy/service/discovery/v3/discovery.pb-c.h"
#include "lb/base/time.h"

#include <errno.h>

#define WRAPPER_FIELDS_MAX 262144 // without what is in it (TH-136)

#define HEAD_STEP 256 // fields of a head, which are read faster than the time is
#define DURATION_MAX_S 315576000000ll // protobuf's
#define TTL_MAX_S 1000000000u // 31 years, which any clock can hold

// Short names; protobuf-c's own are typedefs.
typedef Envoy__Service__Discovery__V3__Resource Wrapper;
typedef Envoy__Service__Discovery__V3__ResourceError ResourceError;
typedef Envoy__Service__Discovery__V3__ResourceName ResourceName;
#define WRAPPER_TYPE (&envoy__service__discovery__v3__resource__descriptor)
#define ERROR_TYPE (&envoy__service__discovery__v3__resource_error__descriptor)
#define NAME_TYPE (&envoy__service__discovery__v3__resource_name__descriptor)

// Fields of google.protobuf.Any, Resource, ResourceName and ResourceError.
enum { ANY_TYPE_URL = PROTO_TAG(1, PROTO_BYTES), ANY_VALUE = PROTO_TAG(2, PROTO_BYTES) };
enum {
	WRAPPED_RESOURCE = 2, // its number
	WRAPPER_NAME = PROTO_TAG(3, PROTO_BYTES),
	WRAPPER_RESOURCE = PROTO_TAG(WRAPPED_RESOURCE, PROTO_BYTES),
	WRAPPER_RESOURCE_NAME = PROTO_TAG(8, PROTO_BYTES),
};
enum { NAME_NAME = PROTO_TAG(1, PROTO_BYTES), ERROR_NAME = PROTO_TAG(1, PROTO_BYTES) };

// The head

enum { VERSION, TYPE_URL, NONCE };

void xds_response_init(
	struct xds_response *r, const struct xds_response_layout *layout, struct str bytes)
{
	*r = (struct xds_response){.layout = layout, .bytes = bytes, .rest = proto_scan_of(bytes)};
}

void xds_response_fini(struct xds_response *r)
{
	lb_arena_fini(&r->arena);
}

static bool is_part(const struct xds_response_layout *l, uint32_t number)
{
	return number == l->resources || number == l->wrapped || number == l->removed ||
	       number == l->removed_names || number == l->errors;
}

static void note_field(struct xds_response *r, const struct proto_item *f)
{
	const struct xds_response_layout *l = r->layout;
	uint32_t number = f->tag >> 3;
	if ((f->tag & 7) != PROTO_BYTES)
		return;
	if (number == l->version)
		r->head[VERSION] = f->bytes;
	else if (number == l->type_url)
		r->head[TYPE_URL] = f->bytes;
	else if (number == l->nonce)
		r->head[NONCE] = f->bytes;
	else
		r->n_parts += is_part(l, number);
}

static const char *keep(struct lb_arena *a, struct str s)
{
	struct str copy;
	return lb_arena_copy(a, s, &copy) ? copy.p : NULL;
}

int xds_response_read_head(struct xds_response *r, struct slice *slice, struct lb_err *err)
{
	struct proto_item f;
	for (unsigned n = 1; proto_scan_next(&r->rest, &f); n++) {
		note_field(r, &f);
		if (n % HEAD_STEP == 0 && slice_over(slice))
			return -EAGAIN;
	}
	if (r->rest.is_malformed)
		return lb_err_set(err, "%s: malformed protobuf", r->layout->message);
	for (int i = 0; i < 3; i++)
		if (!proto_is_text(r->head[i]))
			return lb_err_set(err, "%s: %s: not UTF-8 text", r->layout->message,
				i == VERSION    ? "version"
				: i == TYPE_URL ? "type_url"
						: "nonce");
	r->version = keep(&r->arena, r->head[VERSION]);
	r->type_url = keep(&r->arena, r->head[TYPE_URL]);
	r->nonce = keep(&r->arena, r->head[NONCE]);
	r->rest = proto_scan_of(r->bytes);
	return r->version && r->type_url && r->nonce ? 0 : -ENOMEM;
}

// Parts

bool xds_response_next(struct xds_response *r, struct xds_part *ret)
{
	const struct xds_response_layout *l = r->layout;
	struct proto_item f;
	while (proto_scan_next(&r->rest, &f)) {
		uint32_t number = f.tag >> 3;
		if ((f.tag & 7) != PROTO_BYTES || !is_part(l, number))
			continue;
		*ret = (struct xds_part){.field = number, .bytes = f.bytes};
		if (number == l->removed || number == l->removed_names)
			ret->kind = XDS_PART_REMOVAL;
		else if (number == l->errors)
			ret->kind = XDS_PART_ERROR;
		else
			ret->index = (uint32_t)r->n_resources++;
		return true;
	}
	return false;
}

// What lies in the wrappers of a resource; the last of a field counts, and messages merge.
struct wrapped {
	bool has_wrapper;
	struct str wrapper; // all of it
	struct str name, long_name; // of the wrapper
	bool has_resource;
	struct str type_url, value;
};

static bool read_any(struct str bytes, struct wrapped *w)
{
	struct proto_scan s = proto_scan_of(bytes);
	for (struct proto_item f; proto_scan_next(&s, &f);) {
		if (f.tag == ANY_TYPE_URL)
			w->type_url = f.bytes;
		else if (f.tag == ANY_VALUE)
			w->value = f.bytes;
	}
	w->has_resource = true;
	return !s.is_malformed && proto_is_text(w->type_url);
}

static bool read_name(struct str bytes, struct str *ret)
{
	struct proto_scan s = proto_scan_of(bytes);
	for (struct proto_item f; proto_scan_next(&s, &f);)
		if (f.tag == NAME_NAME)
			*ret = f.bytes;
	return !s.is_malformed;
}

static bool read_wrapper(struct str bytes, struct wrapped *w)
{
	struct proto_scan s = proto_scan_of(bytes);
	bool ok = true;
	*w = (struct wrapped){.has_wrapper = true, .wrapper = bytes};
	for (struct proto_item f; ok && proto_scan_next(&s, &f);) {
		if (f.tag == WRAPPER_NAME)
			w->name = f.bytes;
		else if (f.tag == WRAPPER_RESOURCE_NAME)
			ok = read_name(f.bytes, &w->long_name);
		else if (f.tag == WRAPPER_RESOURCE)
			ok = read_any(f.bytes, w);
	}
	return ok && !s.is_malformed;
}

static bool is_wrapper(struct str type_url)
{
	struct str end = str_from(WRAPPER_TYPE->name);
	size_t before = type_url.len - end.len;
	return type_url.len > end.len && str_ends(type_url, end) && type_url.p[before - 1] == '/';
}

// False = malformed.
static bool unwrap(const struct xds_response *r, const struct xds_part *p, struct wrapped *ret)
{
	*ret = (struct wrapped){.has_wrapper = false};
	if (p->field == r->layout->wrapped)
		return read_wrapper(p->bytes, ret);
	if (!read_any(p->bytes, ret))
		return false;
	return !is_wrapper(ret->type_url) || read_wrapper(ret->value, ret);
}

static bool look_at_resource(
	const struct xds_response *r, const struct xds_part *p, struct xds_part_view *ret)
{
	struct wrapped w;
	struct proto_field own = {.len = 0};
	if (!unwrap(r, p, &w))
		return false;
	ret->name = w.name.len ? w.name : w.long_name;
	ret->type_url = w.type_url;
	ret->is_heartbeat = !w.has_resource;
	if (ret->name.len || !w.has_resource)
		return true;
	bool found = xds_raw_name((const uint8_t *)w.value.p, w.value.len, &own);
	ret->name = (struct str){(const char *)own.bytes, own.len};
	return found;
}

static bool look_at_error(struct str bytes, struct str *ret_name)
{
	struct proto_scan s = proto_scan_of(bytes);
	bool ok = true;
	for (struct proto_item f; ok && proto_scan_next(&s, &f);)
		if (f.tag == ERROR_NAME)
			ok = read_name(f.bytes, ret_name);
	return ok && !s.is_malformed;
}

bool xds_part_look(
	const struct xds_response *r, const struct xds_part *p, struct xds_part_view *ret)
{
	bool found = true;
	*ret = (struct xds_part_view){.is_heartbeat = false};
	if (p->kind == XDS_PART_RESOURCE)
		found = look_at_resource(r, p, ret);
	else if (p->kind == XDS_PART_ERROR)
		found = look_at_error(p->bytes, &ret->name);
	else if (p->field == r->layout->removed)
		ret->name = p->bytes;
	else
		found = read_name(p->bytes, &ret->name);
	return found && ret->name.len && proto_is_text(ret->name);
}

// Open parts

// False = out of memory. "" is no name.
static bool keep_name(struct xds_open_part *p, const char *name)
{
	p->name = *name ? lb_arena_strdup(&p->arena, name) : NULL;
	return p->name || !*name;
}

static int read_ttl(struct xds_open_part *p, const Google__Protobuf__Duration *ttl)
{
	if (!ttl)
		return 0;
	if (ttl->seconds < 0 || ttl->seconds > DURATION_MAX_S || ttl->nanos < 0 ||
		ttl->nanos >= (int)NS_PER_SECOND)
		return lb_err_set(&p->err, "Resource: ttl is out of range"); // WF-02
	uint64_t s = (uint64_t)ttl->seconds < TTL_MAX_S ? (uint64_t)ttl->seconds : TTL_MAX_S;
	p->has_ttl = true;
	p->ttl_ns = s * NS_PER_SECOND + (uint64_t)ttl->nanos;
	return 0;
}

// RS-01 to RS-04, but for the resource itself.
static int read_rest_of_wrapper(struct xds_open_part *p, const Wrapper *w)
{
	p->version = lb_arena_strdup(&p->arena, w->version);
	if (!p->version || !keep_name(p, w->name))
		return -ENOMEM;
	if (w->resource_name && *w->name) {
		lb_err_set(&p->err, "Resource: both name and resource_name are set");
		return 0;
	}
	if (w->resource_name) {
		int rc = xds_constraints_read(
			w->resource_name->dynamic_parameter_constraints, &p->constraints, &p->err);
		if (rc == -ENOMEM || !keep_name(p, w->resource_name->name))
			return -ENOMEM;
		p->has_bad_constraints = rc;
		if (rc)
			return 0;
	}
	if (!read_ttl(p, w->ttl))
		p->do_not_cache = w->cache_control && w->cache_control->do_not_cache;
	return 0;
}

static int open_wrapper(struct xds_open_part *p, const struct wrapped *w)
{
	size_t left = WRAPPER_FIELDS_MAX;
	Wrapper *m = proto_unpack_but(WRAPPER_TYPE, (const uint8_t *)w->wrapper.p, w->wrapper.len,
		WRAPPED_RESOURCE, &left, &p->err);
	if (!m)
		return *p->err.text ? 0 : -ENOMEM;
	int rc = read_rest_of_wrapper(p, m);
	proto_free(m);
	return rc;
}

static int open_resource(
	const struct xds_response *r, const struct xds_part *part, struct xds_open_part *p)
{
	struct wrapped w;
	if (!unwrap(r, part, &w)) {
		lb_err_set(&p->err,
			w.has_wrapper ? "Resource: malformed protobuf" : "Any: malformed protobuf");
		return 0;
	}
	int rc = w.has_wrapper ? open_wrapper(p, &w) : 0;
	if (part->field == r->layout->resources) // else each has its own (DL-05)
		p->version = r->version;
	if (rc || *p->err.text)
		return rc;
	p->is_heartbeat = !w.has_resource;
	if (p->is_heartbeat)
		return 0;
	p->type_url = keep(&p->arena, w.type_url);
	p->bytes = w.value;
	return p->type_url ? 0 : -ENOMEM;
}

static int open_name(struct xds_open_part *p, const ResourceName *m)
{
	int rc = *m->name ? xds_constraints_read(
				    m->dynamic_parameter_constraints, &p->constraints, &p->err)
	                  : lb_err_set(&p->err, "ResourceName: has no name");
	if (rc == -ENOMEM || (!rc && !keep_name(p, m->name)))
		return -ENOMEM;
	return 0;
}

static int open_removal(
	const struct xds_response *r, const struct xds_part *part, struct xds_open_part *p)
{
	if (part->field == r->layout->removed) {
		if (part->bytes.len == 0 || !proto_is_text(part->bytes))
			return 0;
		p->name = keep(&p->arena, part->bytes);
		return p->name ? 0 : -ENOMEM;
	}
	ResourceName *m =
		proto_unpack(NAME_TYPE, (const uint8_t *)part->bytes.p, part->bytes.len, &p->err);
	if (!m)
		return *p->err.text ? 0 : -ENOMEM;
	int rc = open_name(p, m);
	proto_free(m);
	return rc;
}

static int open_error(const struct xds_part *part, struct xds_open_part *p)
{
	ResourceError *m =
		proto_unpack(ERROR_TYPE, (const uint8_t *)part->bytes.p, part->bytes.len, &p->err);
	if (!m)
		return *p->err.text ? 0 : -ENOMEM;
	int rc = 0;
	if (m->error_detail && m->error_detail->code != 0 && m->resource_name) {
		p->code = m->error_detail->code;
		p->text = lb_arena_strdup(&p->arena, m->error_detail->message);
		rc = p->text ? open_name(p, m->resource_name) : -ENOMEM;
	}
	proto_free(m);
	return rc;
}

int xds_part_open(
	const struct xds_response *r, const struct xds_part *part, struct xds_open_part *ret)
{
	*ret = (struct xds_open_part){.version = ""};
	switch (part->kind) {
	case XDS_PART_RESOURCE:
		return open_resource(r, part, ret);
	case XDS_PART_REMOVAL:
		return open_removal(r, part, ret);
	case XDS_PART_ERROR:
		break;
	}
	return open_error(part, ret);
}

void xds_part_close(struct xds_open_part *p)
{
	xds_constraints_put(p->constraints);
	lb_arena_fini(&p->arena);
}
