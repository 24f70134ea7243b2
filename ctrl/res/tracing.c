// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/tracing.h"

#include "ctrl/res/common.h"
#include "envoy/config/trace/v3/opentelemetry.pb-c.h"
#include "lb/base/min.h"
#include "proto/wire.h"

#include <errno.h>
#include <stdlib.h>

typedef res_tracing_message Tracing;
typedef Envoy__Type__V3__Percent Percent;
typedef Envoy__Type__Tracing__V3__CustomTag Tag;
#define IS(x) ENVOY__TYPE__TRACING__V3__CUSTOM_TAG__TYPE_##x
#define TYPED_CONFIG ENVOY__CONFIG__TRACE__V3__TRACING__HTTP__CONFIG_TYPE_TYPED_CONFIG
#define PROVIDER (&envoy__config__trace__v3__open_telemetry_config__descriptor)

// Without one all, as Envoy has it; what is no number is 0.
static uint64_t chance_of(const Percent *p)
{
	if (!p || p->value >= 100)
		return LB_TRACE_ALL;
	return p->value > 0 ? (uint64_t)(p->value / 100 * (double)LB_TRACE_ALL) : 0;
}

// None: it is whoever the process has, which is shunt.yaml's collector.
static bool is_known(const Tracing *m)
{
	if (!m->provider)
		return true;
	return m->provider->config_type_case == TYPED_CONFIG &&
	       res_any_stands_for(m->provider->typed_config, PROVIDER);
}

// Of the process; it goes nowhere but to shunt.yaml's collector. The resource stays as it is read.
static const char *environment(const Envoy__Type__Tracing__V3__CustomTag__Environment *m)
{
	const char *value = getenv(m->name);
	return value ? value : m->default_value;
}

// What it is made of, borrowed from the message. 0, -ENOMEM, or -EINVAL after a warning.
static int read_tag(struct res_reader *rd, const Tag *m, struct lb_trace_tag *ret)
{
	*ret = (struct lb_trace_tag){.key = str_from(m->tag)};
	if (!ret->key.len || ret->key.len > LB_TRACE_TAG_KEY) {
		res_warn(rd, "tracing: custom_tags: tag \"%.64s\" has not between 1 and %d bytes",
			m->tag, LB_TRACE_TAG_KEY);
		return -EINVAL;
	}
	switch (m->type_case) {
	case IS(LITERAL):
		ret->value = str_from(m->literal->value);
		return 0;
	case IS(ENVIRONMENT):
		ret->value = str_from(environment(m->environment));
		return 0;
	case IS(REQUEST_HEADER):
		ret->value = str_from(m->request_header->default_value);
		return res_copy_folded(rd, m->request_header->name, &ret->header);
	case IS(METADATA):
		res_warn(rd,
			"tracing: custom_tags: %s: metadata is not kept: it has its default_value",
			m->tag);
		ret->value = str_from(m->metadata->default_value);
		return 0;
	default:
		res_warn(rd, "tracing: custom_tags: %s: is of no kind that is supported", m->tag);
		return -EINVAL;
	}
}

// Those that can be; none if there is no memory, which the reader knows.
static void read_tags(struct res_reader *rd, const Tracing *m, struct lb_tracing *ret)
{
	struct lb_trace_tag list[LB_TRACE_TAGS];
	struct lb_tracing borrowed = {.tags = list};
	for (size_t i = 0; i < m->n_custom_tags; i++) {
		if (borrowed.n_tags == LB_TRACE_TAGS) {
			res_warn(rd, "tracing: custom_tags: those behind the first %d are ignored",
				LB_TRACE_TAGS);
			break;
		}
		int rc = read_tag(rd, m->custom_tags[i], &list[borrowed.n_tags]);
		rd->no_memory |= rc == -ENOMEM;
		borrowed.n_tags += !rc;
	}
	struct lb_tracing copied;
	if (lb_tracing_copy(rd->arena, &borrowed, &copied)) {
		rd->no_memory = true;
		return;
	}
	ret->tags = copied.tags;
	ret->n_tags = copied.n_tags;
}

void res_tracing_read(struct res_reader *rd, const Tracing *m, struct lb_tracing *ret)
{
	*ret = (struct lb_tracing){.on = false};
	if (!m)
		return;
	if (!is_known(m)) {
		res_warn(rd, "tracing is ignored: provider: is not OpenTelemetryConfig");
		return;
	}
	uint32_t path_max =
		m->max_path_tag_length ? m->max_path_tag_length->value : LB_TRACE_PATH_MAX;
	*ret = (struct lb_tracing){
		.on = true,
		.upstream_spans = m->spawn_upstream_span && m->spawn_upstream_span->value,
		.path_max = (uint16_t)min_u64(path_max, UINT16_MAX),
		.client = chance_of(m->client_sampling),
		.random = chance_of(m->random_sampling),
		.overall = chance_of(m->overall_sampling),
	};
	read_tags(rd, m, ret);
}
