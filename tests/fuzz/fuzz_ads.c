// SPDX-License-Identifier: Apache-2.0
// Any bytes as messages of an xDS server, state of the world and incremental, with lost streams and
// time in between: the client answers each response once and never breaks the transport's contract
// (fake_ads.c CHECKs it). Input: records of an operation byte, two length bytes and that many
// bytes.
#include "ctrl/deps/config.h"
#include "ctrl/deps/depmgr.h"
#include "ctrl/res/types.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/federation.h"
#include "lb/base/check.h"
#include "lb/base/rand.h"
#include "lb/base/twheel.h"
#include "tests/support/fake_ads.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_update(void *ctx, struct xds_config *config)
{
	CHECK(config->listener && config->routes);
}

static void on_error(void *ctx, const char *text)
{
	CHECK(*text);
}

static void play(struct fake_ads *server, struct twheel *wheel, const uint8_t *data, size_t size)
{
	uint64_t now_ns = twheel_now(wheel);
	while (size >= 3) {
		size_t len = (size_t)(data[1] | data[2] << 8);
		uint8_t op = data[0];
		data += 3;
		size -= 3;
		if (len > size)
			len = size;
		fake_ads_settle(server);
		server->n_read = server->n_sent;
		fake_ads_forget(server);
		if (op < 8)
			now_ns += (uint64_t)(op + 1) * 700000000u;
		else if (op < 16 && server->stream)
			fake_ads_close(server, "bye");
		else if (server->stream && server->reading)
			fake_ads_say(server, data, len);
		twheel_advance(wheel, now_ns);
		data += len;
		size -= len;
	}
}

static void play_with(const struct xds_protocol *protocol, const uint8_t *data, size_t size)
{
	static const char JSON[] = "{\"xds_servers\":[{\"server_uri\":\"s\",\"channel_creds\":"
				   "[{\"type\":\"insecure\"}]}],\"node\":{\"id\":\"fuzz\"}}";
	struct fake_ads server = {0};
	struct xds_bootstrap *bootstrap;
	struct lb_err err;
	struct rand rand;
	rand_init(&rand, 1);
	CHECK(xds_bootstrap_parse(JSON, sizeof(JSON) - 1, "fuzz", &bootstrap, &err) == 0);
	struct twheel *wheel = twheel_new(1000000000);
	struct xds_federation *client = xds_federation_new(&(struct xds_client_conf){
		.bootstrap = bootstrap,
		.protocol = protocol,
		.types = res_types,
		.n_types = RES_N_TYPES,
		.transport = fake_ads_factory(&server),
		.wheel = wheel,
		.rand = &rand,
		.user_agent_version = "0",
	});
	struct depmgr *dm = depmgr_new(&(struct depmgr_conf){
		.client = client,
		.wheel = wheel,
		.listener_name = "web",
		.node_id = "fuzz",
		.on_update = on_update,
		.on_error = on_error,
	});
	play(&server, wheel, data, size);
	depmgr_free(dm);
	xds_federation_free(client);
	fake_ads_fini(&server);
	twheel_free(wheel);
	xds_bootstrap_free(bootstrap);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	play_with(&xds_protocol_sotw, data, size);
	play_with(&xds_protocol_delta, data, size);
	return 0;
}
