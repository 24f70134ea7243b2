// SPDX-License-Identifier: Apache-2.0
#include "tools/shunt-xds/options.h"

#include "lb/base/time.h"

#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define GRACE_DEFAULT_S 60
#define GRACE_MAX_S 86400
#define REQUEST_DEFAULT_MIB 4 // what gRPC's servers receive by default
#define REQUEST_MAX_MIB 256
#define MAX_WORDS 2

enum { GROUP_BOTH, GROUP_SERVE, GROUP_PROXY };
enum { OPTION_CERTIFICATE = 256, OPTION_KEY, OPTION_CLIENT_CA, OPTION_STATE_DIR };

static const struct argp_option options[] = {
	{"listen", 'l', "ADDRESS", 0, "Address to listen on, as 127.0.0.1:18000 or [::1]:18000",
		GROUP_BOTH},
	{"certificate", OPTION_CERTIFICATE, "FILE", 0,
		"TLS with this certificate chain (PEM), read again as it changes", GROUP_BOTH},
	{"key", OPTION_KEY, "FILE", 0, "Its private key (PEM)", GROUP_BOTH},
	{"client-ca", OPTION_CLIENT_CA, "FILE", 0,
		"Clients must have a certificate of one of these authorities (PEM)", GROUP_BOTH},
	{"verbose", 'v', NULL, 0, "Log every request", GROUP_BOTH},
	{NULL, 0, NULL, 0, "serve:", GROUP_SERVE},
	{"descriptors", 'd', "FILE", 0,
		"The types that files may use, a FileDescriptorSet (default: envoy-api.pb beside "
		"this program). A field that no descriptor knows is left out, with a warning",
		GROUP_SERVE},
	{NULL, 0, NULL, 0, "proxy:", GROUP_PROXY},
	{"upstream", 'u', "BOOTSTRAP", 0,
		"The server and our node, a file as gRPC's GRPC_XDS_BOOTSTRAP", GROUP_PROXY},
	{"protocol", 'p', "PROTOCOL", 0, "ADS towards the server: sotw (default) or delta",
		GROUP_PROXY},
	{"grace", 'g', "SECONDS", 0,
		"How long to keep a resource after its last client unsubscribed (default 60)",
		GROUP_PROXY},
	{"max-request", 'm', "MIB", 0,
		"Longest message that the server accepts (default 4). A client with more names "
		"than fit is disconnected",
		GROUP_PROXY},
	{"state-dir", OPTION_STATE_DIR, "DIR", 0,
		"Keep what the server sent here, for a start while it is unreachable", GROUP_PROXY},
	{0},
};

struct reading {
	struct app_options to;
	const char *words[MAX_WORDS]; // that belong to no option
	unsigned n_words;
	bool has_proxy_option;
};

static unsigned long read_number(struct argp_state *state, const char *option, const char *text,
	unsigned long min, unsigned long max)
{
	char *end;
	errno = 0;
	unsigned long n = strtoul(text, &end, 10);
	if (errno || text[0] < '0' || text[0] > '9' || *end || n < min || n > max)
		argp_error(
			state, "--%s: \"%s\" is not a number in %lu..%lu", option, text, min, max);
	return n;
}

static bool read_is_delta(struct argp_state *state, const char *text)
{
	bool is_delta = strcmp(text, "delta") == 0;
	if (!is_delta && strcmp(text, "sotw") != 0)
		argp_error(state, "--protocol: \"%s\" is neither sotw nor delta", text);
	return is_delta;
}

static void take_word(struct reading *r, struct argp_state *state, const char *word)
{
	if (r->n_words == MAX_WORDS)
		argp_error(state, "%s: unexpected argument", word);
	else
		r->words[r->n_words++] = word;
}

// An option that only one mode has needs that mode.
static void check(struct reading *r, struct argp_state *state)
{
	struct app_options *o = &r->to;
	const char *first = r->n_words ? r->words[0] : "";
	bool is_proxy = r->n_words == 1 && strcmp(first, "proxy") == 0;
	if (!is_proxy)
		o->folder = r->n_words == 1 ? first : r->words[1];
	if (!r->n_words || (r->n_words == 2 && strcmp(first, "serve") != 0))
		argp_error(state, "expected a folder, serve and a folder, or proxy");
	else if (!o->listen)
		argp_error(state, "--listen is missing");
	else if (!o->tls.cert != !o->tls.key || (o->tls.client_ca && !o->tls.cert))
		argp_error(
			state, "--certificate and --key belong together, and --client-ca to them");
	else if (is_proxy && !o->upstream)
		argp_error(state, "proxy: --upstream is missing");
	else if (is_proxy && o->descriptors)
		argp_error(state, "--descriptors is for serve");
	else if (!is_proxy && r->has_proxy_option)
		argp_error(state,
			"--upstream, --protocol, --grace, --max-request and --state-dir are "
			"for proxy");
}

static error_t take_arg(int key, char *arg, struct argp_state *state)
{
	struct reading *r = state->input;
	struct app_options *o = &r->to;
	r->has_proxy_option |=
		key == 'u' || key == 'p' || key == 'g' || key == 'm' || key == OPTION_STATE_DIR;
	switch (key) {
	case 'l':
		o->listen = arg;
		break;
	case OPTION_CERTIFICATE:
		o->tls.cert = arg;
		break;
	case OPTION_KEY:
		o->tls.key = arg;
		break;
	case OPTION_CLIENT_CA:
		o->tls.client_ca = arg;
		break;
	case 'd':
		o->descriptors = arg;
		break;
	case 'u':
		o->upstream = arg;
		break;
	case 'p':
		o->is_delta = read_is_delta(state, arg);
		break;
	case 'g':
		o->grace_ns = read_number(state, "grace", arg, 0, GRACE_MAX_S) * NS_PER_SECOND;
		break;
	case 'm':
		o->request_max = read_number(state, "max-request", arg, 1, REQUEST_MAX_MIB) << 20;
		break;
	case OPTION_STATE_DIR:
		o->state_dir = arg;
		break;
	case 'v':
		o->verbose = true;
		break;
	case ARGP_KEY_ARG:
		take_word(r, state, arg);
		break;
	case ARGP_KEY_END:
		check(r, state);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

const char *argp_program_version = "shunt-xds " SHUNT_VERSION;

void options_read(int argc, char **argv, struct app_options *ret)
{
	static const struct argp argp = {
		.options = options,
		.parser = take_arg,
		.args_doc =
			"[serve] DIR --listen ADDRESS\nproxy --upstream BOOTSTRAP --listen ADDRESS",
		.doc = "An xDS management server for files, or a caching proxy of another server.\v"
		       "serve: serves the resources in DIR/*.json to xDS clients (ADS, state of "
		       "the world and delta) and follows their changes. Each file is one resource "
		       "(listener, route configuration, cluster, cluster load assignment, secret, "
		       "...) in protobuf's JSON form, with \"@type\", or its bytes as {\"@type\": "
		       "..., \"@raw\": base64}. A resource may have variants with dynamic "
		       "parameter "
		       "constraints (xRFC TP2), each a file with the resource inside of "
		       "envoy.service.discovery.v3.Resource. An invalid file is reported, and its "
		       "last valid content stays in use.\n\n"
		       "proxy: asks another server, the first of the bootstrap, for what its "
		       "clients ask for, each name with the same dynamic parameters once, keeps "
		       "the answers, and serves them, of any type and unchanged, even while that "
		       "server is unreachable.",
	};
	struct reading r = {.to = {.grace_ns = GRACE_DEFAULT_S * NS_PER_SECOND,
				    .request_max = (size_t)REQUEST_DEFAULT_MIB << 20}};
	argp_parse(&argp, argc, argv, 0, NULL, &r);
	*ret = r.to;
}
