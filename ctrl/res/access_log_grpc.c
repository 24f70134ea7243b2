// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/access_log_grpc.h"

#include "ctrl/access_log/headers.h"
#include "ctrl/access_log/output.h"
#include "ctrl/res/common.h"
#include "envoy/extensions/access_loggers/grpc/v3/als.pb-c.h"
#include "lb/base/min.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

// Short names; protobuf-c's own are typedefs.
typedef Envoy__Extensions__AccessLoggers__Grpc__V3__HttpGrpcAccessLogConfig Config;
typedef Envoy__Extensions__AccessLoggers__Grpc__V3__CommonGrpcAccessLogConfig Common;
typedef Envoy__Config__Core__V3__GrpcService Service;
#define IS_ENVOY ENVOY__CONFIG__CORE__V3__GRPC_SERVICE__TARGET_SPECIFIER_ENVOY_GRPC
#define IS_V3 ENVOY__CONFIG__CORE__V3__API_VERSION__V3
#define LOG_NAME_MAX 255 // bytes
// More than that would find no room beside what a message of so many bytes leaves.
#define BATCH_MAX (ACCESS_BUFFER / 2)

// The name of the cluster, for shunt.yaml to say where it is.
static int read_service(struct res_reader *rd, const Service *m, struct access_want *w)
{
	if (!m || m->target_specifier_case != IS_ENVOY || !*m->envoy_grpc->cluster_name)
		return lb_err_set(
			rd->err, "grpc_service: it is not envoy_grpc with a cluster_name");
	const struct {
		bool is_there;
		const char *name;
	} others[] = {
		{m->timeout, "timeout"},
		{m->n_initial_metadata, "initial_metadata"},
		{m->retry_policy || m->envoy_grpc->retry_policy, "retry_policy"},
		{*m->envoy_grpc->authority, "authority"},
	};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (others[i].is_there)
			res_warn(rd, "access_log: grpc_service: %s is ignored", others[i].name);
	w->place.path = lb_arena_strdup(rd->arena, m->envoy_grpc->cluster_name);
	return w->place.path ? 0 : -ENOMEM;
}

static int read_batches(struct res_reader *rd, const Common *m, struct access_want *w)
{
	const Google__Protobuf__Duration *interval = m->buffer_flush_interval;
	w->place.batch_bytes = m->buffer_size_bytes
	                               ? min_u32(m->buffer_size_bytes->value, BATCH_MAX)
	                               : ACCESS_BATCH_BYTES;
	w->place.batch_ns = ACCESS_BATCH_NS;
	if (!interval)
		return 0;
	if (res_check_duration(interval, "buffer_flush_interval", rd->err))
		return -EINVAL;
	w->place.batch_ns = res_duration_ns(interval);
	return w->place.batch_ns ? 0 : lb_err_set(rd->err, "buffer_flush_interval: is 0");
}

static int read_common(struct res_reader *rd, const Common *m, struct access_want *w)
{
	if (!m)
		return lb_err_set(rd->err, "is missing");
	if (!*m->log_name || strlen(m->log_name) > LOG_NAME_MAX)
		return lb_err_set(
			rd->err, "log_name: it has not between 1 and %d bytes", LOG_NAME_MAX);
	if (m->transport_api_version != IS_V3)
		return lb_err_set(rd->err, "transport_api_version: is not V3");
	if (m->n_filter_state_objects_to_log)
		res_warn(rd, "access_log: filter_state_objects_to_log is ignored");
	if (m->n_custom_tags)
		res_warn(rd, "access_log: custom_tags are ignored");
	if (m->grpc_stream_retry_policy)
		res_warn(rd, "access_log: grpc_stream_retry_policy is ignored");
	w->place.log_name = lb_arena_strdup(rd->arena, m->log_name);
	if (!w->place.log_name)
		return -ENOMEM;
	int rc = read_batches(rd, m, w);
	return rc ? rc : read_service(rd, m->grpc_service, w);
}

// Lines of a form (ctrl/access_log/entry.h), without those that are there already.
struct form {
	char text[1024];
	size_t len;
};

static int add_header(
	struct res_reader *rd, struct form *f, enum access_headers of, const char *name)
{
	static const char *const fields[] = {[ACCESS_REQUEST] = "additional_request_headers_to_log",
		[ACCESS_RESPONSE] = "additional_response_headers_to_log",
		[ACCESS_TRAILERS] = "additional_response_trailers_to_log"};
	unsigned char what;
	struct lb_err err;
	struct str folded;
	char line[64];
	if (access_header_find(of, str_from(name), &what, &err)) {
		res_warn(rd, "access_log: %s: %s", fields[of], err.text);
		return 0;
	}
	if (res_copy_folded(rd, name, &folded))
		return -ENOMEM;
	snprintf(line, sizeof(line), "%s %s\n", access_header_word(of), folded.p);
	if (!strstr(f->text, line)) // there are few names
		f->len += (size_t)snprintf(f->text + f->len, sizeof(f->text) - f->len, "%s", line);
	return 0;
}

static int read_headers(struct res_reader *rd, const Config *m, struct access_want *w)
{
	struct form f = {.text = ""};
	int rc = 0;
	for (size_t i = 0; !rc && i < m->n_additional_request_headers_to_log; i++)
		rc = add_header(rd, &f, ACCESS_REQUEST, m->additional_request_headers_to_log[i]);
	for (size_t i = 0; !rc && i < m->n_additional_response_headers_to_log; i++)
		rc = add_header(rd, &f, ACCESS_RESPONSE, m->additional_response_headers_to_log[i]);
	for (size_t i = 0; !rc && i < m->n_additional_response_trailers_to_log; i++)
		rc = add_header(rd, &f, ACCESS_TRAILERS, m->additional_response_trailers_to_log[i]);
	if (rc)
		return rc;
	w->form = ACCESS_ENTRY;
	w->format = lb_arena_strdup(rd->arena, f.text);
	return w->format ? 0 : -ENOMEM;
}

int res_access_grpc_read(struct res_reader *rd, const void *message, struct access_want *w)
{
	const Config *m = message;
	w->place.kind = ACCESS_COLLECTOR;
	int rc = read_common(rd, m->common_config, w);
	if (rc == -EINVAL)
		return lb_err_within(rd->err, "common_config");
	return rc ? rc : read_headers(rd, m, w);
}
