// SPDX-License-Identifier: Apache-2.0
// One table of the numbers of shunt.yaml that have a default or a range. The schema has the
// constraints of other options (words, lengths of texts and lists; ctrl/conf/config_schema.h).
// docs/config.md documents both, and tests/unit/ctrl/conf/test_config_docs.c compares them.
// Thread: any; constant.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct lb_err;

#define CONFIG_MAX_VLAN 4094 // IEEE 802.1Q: 4095 is reserved
#define CONFIG_MAX_MTU 9000 // a frame fits one packet buffer

enum config_number_id {
	CONFIG_MTU,
	CONFIG_VLAN,
	CONFIG_WATCH_INTERVAL,
	CONFIG_WATCH_MISSED,
	CONFIG_WATCH_ANSWERED,
	CONFIG_KERNEL_RATE,
	CONFIG_PORT,
	CONFIG_TUNNEL_PORT,
	CONFIG_CONNECTIONS,
	CONFIG_REQUESTS,
	CONFIG_STREAMS,
	CONFIG_BUFFERS,
	CONFIG_CLIENT_BUFFER,
	CONFIG_IDLE_TIMEOUT,
	CONFIG_CONNECTION_AGE,
	CONFIG_CONNECTION_AGE_GRACE,
	CONFIG_STREAM_IDLE_TIMEOUT,
	CONFIG_XDS_RESOURCES,
	CONFIG_XDS_RESPONSE,
	CONFIG_CLIENT_USER_TIMEOUT,
	CONFIG_CLIENT_TCP_KEEPALIVE,
	CONFIG_CLIENT_KEEPALIVE_INTERVAL,
	CONFIG_CLIENT_KEEPALIVE_TIMEOUT,
	CONFIG_BACKEND_USER_TIMEOUT,
	CONFIG_BACKEND_TCP_KEEPALIVE,
	CONFIG_BACKEND_KEEPALIVE_INTERVAL,
	CONFIG_BACKEND_KEEPALIVE_TIMEOUT,
	CONFIG_ATTEMPTS,
	CONFIG_CRL_REFRESH,
	CONFIG_TLS_THREADS,
	CONFIG_ACCESS_SAMPLE,
	CONFIG_ACCESS_STATUS,
	CONFIG_ACCESS_DURATION,
	CONFIG_TRACE_SAMPLE,
	CONFIG_LAME_DUCK,
	CONFIG_FAREWELL,
	CONFIG_DRAIN,
	CONFIG_LISTENER_DRAIN,
	CONFIG_N_NUMBERS,
};

struct config_number {
	const char *path; // "ports[].mtu"
	const char *unit; // "" = a count or a name
	uint32_t fallback; // value if the option is absent
	uint32_t least, most; // allowed range, inclusive
};

extern const struct config_number config_numbers[CONFIG_N_NUMBERS];

// given: NULL = absent. Returns 0 with *ret, or -EINVAL (reterr names the option, without the list
// that contains it).
[[nodiscard]] int config_number_check(
	enum config_number_id, const uint32_t *given, uint32_t *ret, struct lb_err *reterr);
// Writes why value, as written, is none of the numbers of a field like "ports[1].mtu" into ret.
void config_number_refuse(const char *field, const char *value, char *ret, size_t size);
