// SPDX-License-Identifier: Apache-2.0
#include "ctrl/conf/config_numbers.h"

#include "lb/base/err.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const struct config_number config_numbers[CONFIG_N_NUMBERS] = {
	[CONFIG_MTU] = {"ports[].mtu", "bytes", 1500, 576, CONFIG_MAX_MTU}, // RFC 791: 576 always
	[CONFIG_VLAN] = {"ports[].vlan", "", 0, 0, CONFIG_MAX_VLAN},
	[CONFIG_WATCH_INTERVAL] = {"ports[].gateway_watch.interval_ms", "ms", 500, 0, 60000},
	[CONFIG_WATCH_MISSED] = {"ports[].gateway_watch.missed", "", 3, 1, 100},
	[CONFIG_WATCH_ANSWERED] = {"ports[].gateway_watch.answered", "", 3, 1, 100},
	// Frames a second that each worker gives to the kernel.
	[CONFIG_KERNEL_RATE] = {"ports[].kernel.rate", "", 10000, 10, 1000000},
	[CONFIG_PORT] = {"frontends[].port", "", 0, 1, 65535},
	[CONFIG_TUNNEL_PORT] = {"tunnels[].port", "", 6080, 1, 65535}, // IANA's of GUE
	// Of each worker.
	[CONFIG_CONNECTIONS] = {"limits.connections", "", 16384, 16, 1000000},
	[CONFIG_REQUESTS] = {"limits.requests", "", 65536, 16, 1000000},
	[CONFIG_STREAMS] = {"limits.streams", "", 100, 1, 65536},
	[CONFIG_BUFFERS] = {"limits.buffers_mib", "MiB", 256, 16, 65536},
	[CONFIG_CLIENT_BUFFER] = {"limits.client_buffer_kib", "KiB", 1024, 512, 65536},
	[CONFIG_IDLE_TIMEOUT] = {"limits.idle_timeout_s", "seconds", 300, 0, UINT32_MAX},
	// gRPC's A9 has neither unless asked for.
	[CONFIG_CONNECTION_AGE] = {"limits.max_connection_age_s", "seconds", 0, 0, UINT32_MAX},
	[CONFIG_CONNECTION_AGE_GRACE] = {"limits.max_connection_age_grace_s", "seconds", 0, 0,
		UINT32_MAX},
	[CONFIG_STREAM_IDLE_TIMEOUT] = {"limits.stream_idle_timeout_s", "seconds", 300, 0,
		UINT32_MAX}, // Envoy's
	// Of a response of an xDS server.
	[CONFIG_XDS_RESOURCES] = {"limits.xds_resources", "", 1000000, 1000, 100000000},
	[CONFIG_XDS_RESPONSE] = {"limits.xds_response_mib", "MiB", 64, 1, 1024},
	[CONFIG_CLIENT_USER_TIMEOUT] = {"clients.tcp_user_timeout_s", "seconds", 30, 1, 3600},
	[CONFIG_CLIENT_TCP_KEEPALIVE] = {"clients.tcp_keepalive_time_s", "seconds", 60, 0, 86400},
	[CONFIG_CLIENT_KEEPALIVE_INTERVAL] = {"clients.keepalive_interval_s", "seconds", 0, 0,
		86400},
	[CONFIG_CLIENT_KEEPALIVE_TIMEOUT] = {"clients.keepalive_timeout_s", "seconds", 20, 1, 3600},
	[CONFIG_BACKEND_USER_TIMEOUT] = {"backends.tcp_user_timeout_s", "seconds", 30, 1, 3600},
	[CONFIG_BACKEND_TCP_KEEPALIVE] = {"backends.tcp_keepalive_time_s", "seconds", 3, 0, 86400},
	[CONFIG_BACKEND_KEEPALIVE_INTERVAL] = {"backends.keepalive_interval_s", "seconds", 0, 0,
		86400},
	[CONFIG_BACKEND_KEEPALIVE_TIMEOUT] = {"backends.keepalive_timeout_s", "seconds", 20, 1,
		3600},
	[CONFIG_ATTEMPTS] = {"retries.max_attempts", "", 8, 1, 100},
	[CONFIG_CRL_REFRESH] = {"tls.crl_refresh_s", "seconds", 600, 1, 86400},
	[CONFIG_TLS_THREADS] = {"tls.threads", "", 1, 1, 64},
	[CONFIG_ACCESS_SAMPLE] = {"access_log.filter.sample_per_million", "", 1000000, 0, 1000000},
	[CONFIG_ACCESS_STATUS] = {"access_log.filter.min_status", "", 500, 100, 600},
	[CONFIG_ACCESS_DURATION] = {"access_log.filter.min_duration_ms", "ms", 0, 0, UINT32_MAX},
	[CONFIG_TRACE_SAMPLE] = {"tracing.sample_per_million", "", 10000, 0, 1000000},
	[CONFIG_LAME_DUCK] = {"lame_duck_s", "seconds", 0, 0, 3600},
	[CONFIG_FAREWELL] = {"farewell_s", "seconds", 0, 0, 3600},
	[CONFIG_DRAIN] = {"drain_s", "seconds", 30, 0, UINT32_MAX},
	[CONFIG_LISTENER_DRAIN] = {"listener_drain_s", "seconds", 600, 0, UINT32_MAX}, // Envoy's
};

int config_number_check(
	enum config_number_id id, const uint32_t *given, uint32_t *ret, struct lb_err *reterr)
{
	const struct config_number *n = &config_numbers[id];
	const char *in_list = strstr(n->path, "[].");
	uint32_t value = given ? *given : n->fallback;
	if (value < n->least || value > n->most)
		return lb_err_set(reterr, "%s: %u is outside %u..%u",
			in_list ? in_list + strlen("[].") : n->path, value, n->least, n->most);
	*ret = value;
	return 0;
}

// "ports[1].mtu" is an option of the path "ports[].mtu".
static bool is_of_path(const char *field, const char *path)
{
	for (; *path && *field == *path; path++, field++)
		if (*path == '[')
			field += strspn(field + 1, "0123456789");
	return !*path && !*field;
}

void config_number_refuse(const char *field, const char *value, char *ret, size_t size)
{
	for (const struct config_number *n = config_numbers; n < config_numbers + CONFIG_N_NUMBERS;
		n++)
		if (is_of_path(field, n->path)) {
			snprintf(ret, size, "'%.64s' is not a whole number in %u..%u", value,
				n->least, n->most);
			return;
		}
	snprintf(ret, size, "'%.64s' is not a whole number of its range", value);
}
