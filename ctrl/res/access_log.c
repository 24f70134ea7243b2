// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/access_log.h"

#include "ctrl/access_log/format.h"
#include "ctrl/res/access_log_filter.h"
#include "ctrl/res/access_log_grpc.h"
#include "ctrl/res/common.h"
#include "envoy/extensions/access_loggers/file/v3/file.pb-c.h"
#include "envoy/extensions/access_loggers/grpc/v3/als.pb-c.h"
#include "envoy/extensions/access_loggers/stream/v3/stream.pb-c.h"
#include "proto/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// Short names; protobuf-c's own are typedefs.
typedef Envoy__Config__Accesslog__V3__AccessLog Log;
typedef Envoy__Config__Core__V3__SubstitutionFormatString Format;
typedef Envoy__Extensions__AccessLoggers__File__V3__FileAccessLog File;
typedef Envoy__Extensions__AccessLoggers__Stream__V3__StdoutAccessLog Stdout;
typedef Envoy__Extensions__AccessLoggers__Stream__V3__StderrAccessLog Stderr;
#define TYPED_CONFIG ENVOY__CONFIG__ACCESSLOG__V3__ACCESS_LOG__CONFIG_TYPE_TYPED_CONFIG
#define FORMAT(x) ENVOY__CONFIG__CORE__V3__SUBSTITUTION_FORMAT_STRING__FORMAT_##x
#define SOURCE(x) ENVOY__CONFIG__CORE__V3__DATA_SOURCE__SPECIFIER_##x
#define FILE_FORMAT(x)                                                                             \
	ENVOY__EXTENSIONS__ACCESS_LOGGERS__FILE__V3__FILE_ACCESS_LOG__ACCESS_LOG_FORMAT_##x
#define STDOUT_FORMAT                                                                              \
	ENVOY__EXTENSIONS__ACCESS_LOGGERS__STREAM__V3__STDOUT_ACCESS_LOG__ACCESS_LOG_FORMAT_LOG_FORMAT
#define STDERR_FORMAT                                                                              \
	ENVOY__EXTENSIONS__ACCESS_LOGGERS__STREAM__V3__STDERR_ACCESS_LOG__ACCESS_LOG_FORMAT_LOG_FORMAT

// Functions of this file return 0, -EINVAL with the reason in the reader's err, or -ENOMEM.

static int set_format(struct res_reader *rd, struct access_want *w, enum access_form form,
	const char *text, size_t len)
{
	struct str copy;
	if (len > ACCESS_FORMAT_MAX)
		return lb_err_set(rd->err, "the format has more than %d bytes", ACCESS_FORMAT_MAX);
	if (len && memchr(text, 0, len))
		return lb_err_set(rd->err, "the format has a NUL");
	if (!lb_arena_copy(rd->arena, (struct str){text, len}, &copy))
		return -ENOMEM;
	w->form = form;
	w->format = copy.p;
	return 0;
}

static int set_text(struct res_reader *rd, struct access_want *w, const char *text)
{
	return set_format(rd, w, ACCESS_TEXT, text, strlen(text));
}

static int set_json(struct res_reader *rd, struct access_want *w, enum access_form form,
	const Google__Protobuf__Struct *m)
{
	json_t *json = proto_json_encode(&m->base);
	char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
	int rc = text ? set_format(rd, w, form, text, strlen(text)) : -ENOMEM;
	free(text);
	json_decref(json);
	return rc;
}

// Files and the environment of this machine are not for who serves xDS to read.
static int read_source(
	struct res_reader *rd, const Envoy__Config__Core__V3__DataSource *m, struct access_want *w)
{
	if (m->specifier_case == SOURCE(INLINE_STRING))
		return set_text(rd, w, m->inline_string);
	if (m->specifier_case == SOURCE(INLINE_BYTES))
		return set_format(rd, w, ACCESS_TEXT, (const char *)m->inline_bytes.data,
			m->inline_bytes.len);
	return lb_err_set(rd->err, "text_format_source: neither inline_string nor inline_bytes");
}

static int read_format(struct res_reader *rd, const Format *m, struct access_want *w)
{
	if (m->n_formatters)
		return lb_err_set(rd->err, "formatters: are not supported");
	if (m->omit_empty_values)
		res_warn(rd, "access_log: omit_empty_values is ignored");
	switch (m->format_case) {
	case FORMAT(TEXT_FORMAT):
		return set_text(rd, w, m->text_format);
	case FORMAT(JSON_FORMAT):
		return set_json(rd, w, ACCESS_JSON_TYPED, m->json_format);
	case FORMAT(TEXT_FORMAT_SOURCE):
		return read_source(rd, m->text_format_source, w);
	default:
		return lb_err_set(rd->err, "log_format: there is none in it");
	}
}

// Where Envoy's configurations write when they mean the process's streams.
static bool is_stream(const char *path, enum access_place_kind *ret)
{
	if (strcmp(path, "/dev/stdout") == 0)
		*ret = ACCESS_STDOUT;
	else if (strcmp(path, "/dev/stderr") == 0)
		*ret = ACCESS_STDERR;
	else
		return false;
	return true;
}

static int read_file(struct res_reader *rd, const void *message, struct access_want *w)
{
	const File *m = message;
	if (!*m->path)
		return lb_err_set(rd->err, "no path");
	w->place.kind = ACCESS_FILE;
	if (!is_stream(m->path, &w->place.kind)) {
		w->place.path = lb_arena_strdup(rd->arena, m->path);
		if (!w->place.path)
			return -ENOMEM;
	}
	switch (m->access_log_format_case) {
	case FILE_FORMAT(FORMAT):
		return set_text(rd, w, *m->format ? m->format : ACCESS_ENVOYS_FORMAT);
	case FILE_FORMAT(JSON_FORMAT):
		return set_json(rd, w, ACCESS_JSON_STRINGS, m->json_format);
	case FILE_FORMAT(TYPED_JSON_FORMAT):
		return set_json(rd, w, ACCESS_JSON_TYPED, m->typed_json_format);
	case FILE_FORMAT(LOG_FORMAT):
		return read_format(rd, m->log_format, w);
	default:
		return set_text(rd, w, ACCESS_ENVOYS_FORMAT);
	}
}

static int read_stdout(struct res_reader *rd, const void *message, struct access_want *w)
{
	const Stdout *m = message;
	w->place.kind = ACCESS_STDOUT;
	return m->access_log_format_case == STDOUT_FORMAT ? read_format(rd, m->log_format, w)
	                                                  : set_text(rd, w, ACCESS_ENVOYS_FORMAT);
}

static int read_stderr(struct res_reader *rd, const void *message, struct access_want *w)
{
	const Stderr *m = message;
	w->place.kind = ACCESS_STDERR;
	return m->access_log_format_case == STDERR_FORMAT ? read_format(rd, m->log_format, w)
	                                                  : set_text(rd, w, ACCESS_ENVOYS_FORMAT);
}

static const struct kind {
	const ProtobufCMessageDescriptor *type;
	int (*read)(struct res_reader *, const void *message, struct access_want *);
} kinds[] = {
	{&envoy__extensions__access_loggers__file__v3__file_access_log__descriptor, read_file},
	{&envoy__extensions__access_loggers__stream__v3__stdout_access_log__descriptor,
		read_stdout},
	{&envoy__extensions__access_loggers__grpc__v3__http_grpc_access_log_config__descriptor,
		res_access_grpc_read},
	{&envoy__extensions__access_loggers__stream__v3__stderr_access_log__descriptor,
		read_stderr},
};

static int read_logger(struct res_reader *rd, const struct res_any *any, struct access_want *w)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!proto_any_is(any->type_url, kinds[i].type))
			continue;
		void *m = res_any_decode(any, kinds[i].type, rd->err);
		if (!m)
			return *rd->err->text ? -EINVAL : -ENOMEM;
		int rc = kinds[i].read(rd, m, w);
		proto_free(m);
		return rc;
	}
	return lb_err_set(rd->err, "\"%.128s\" is not supported", any->type_url);
}

static int read_one(struct res_reader *rd, const Log *m, struct access_want *w)
{
	struct res_any any;
	*w = (struct access_want){.name = lb_arena_strdup(rd->arena, m->name)};
	if (!w->name)
		return -ENOMEM;
	if (m->config_type_case != TYPED_CONFIG || !m->typed_config)
		return lb_err_set(rd->err, "no typed_config");
	int rc = res_any_open(m->typed_config, &any, rd->err);
	if (rc)
		return rc;
	rc = read_logger(rd, &any, w);
	res_any_close(&any);
	if (!rc && m->filter)
		rc = res_access_filter_read(rd, m->filter, &w->test);
	return rc;
}

int res_access_logs_read(
	struct res_reader *rd, Log *const *list, size_t n, struct res_access_logs *ret)
{
	struct lb_err *outer = rd->err, err;
	*ret = (struct res_access_logs){NULL, 0};
	if (n > ACCESS_WANTS_MAX) {
		res_warn(rd, "access_log: those behind the first %d are ignored", ACCESS_WANTS_MAX);
		n = ACCESS_WANTS_MAX;
	}
	struct access_want *wants = n ? lb_arena_alloc(rd->arena, n, sizeof(*wants)) : NULL;
	if (n && !wants)
		return -ENOMEM;
	int rc = 0;
	for (size_t i = 0; rc != -ENOMEM && i < n; i++) {
		err.text[0] = 0;
		rd->err = &err;
		rc = read_one(rd, list[i], &wants[ret->n]);
		rd->err = outer;
		if (rc == -EINVAL)
			res_warn(rd, "access_log \"%.128s\" is ignored: %s", list[i]->name,
				err.text);
		else if (!rc)
			ret->n++;
	}
	ret->list = wants;
	return rc == -ENOMEM ? rc : 0;
}
