// SPDX-License-Identifier: Apache-2.0
#include "ctrl/args.h"

#include "ctrl/stats/show.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>

#define KEY_COMMANDS 1000 // has no letter

static const struct argp_option options[] = {
	{"config", 'c', "FILE", OPTION_NO_USAGE, "The configuration (shunt.yaml)", 0},
	{"check", 'k', NULL, 0,
		"Check the configuration and the bootstrap, touch no device, and exit", 0},
	{"device", 'd', NULL, 0,
		"With --check: examine this host, too: devices, cores, memory, servers, clocks. "
		"Exit status: 0 all is well, 1 warnings, 2 errors",
		0},
	{"json", 'j', NULL, 0, "With --check --device: in JSON", 0},
	{"resources", 'r', "PATH", 0,
		"With --check: validate the resources of this file or folder, too, as if they had "
		"come from the xDS server",
		0},
	{"takeover", 't', NULL, 0,
		"Follow the process that serves by this configuration, without losing a request; "
		"start as usual if there is none",
		0},
	{"commands", KEY_COMMANDS, NULL, 0,
		"Print what the stats socket answers, as a section of a manual page, and exit", 0},
	{0},
};

static error_t take_arg(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;
	switch (key) {
	case 'c':
		a->config = arg;
		return 0;
	case 'k':
		a->check = true;
		return 0;
	case 'd':
		a->device = true;
		return 0;
	case 'j':
		a->json = true;
		return 0;
	case 't':
		a->takeover = true;
		return 0;
	case 'r':
		a->resources = arg;
		return 0;
	case KEY_COMMANDS:
		show_print_manual(stdout);
		exit(0);
	case ARGP_KEY_END:
		if (!a->config)
			argp_error(state, "-c FILE is needed");
		if (a->device ? !a->check : a->json)
			argp_error(state, "--device needs --check, and --json both");
		if (a->resources && (!a->check || a->device))
			argp_error(state, "--resources needs --check, and goes without --device");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const char *argp_program_version = "shuntd " SHUNT_VERSION;

static const struct argp argp = {
	.options = options,
	.parser = take_arg,
	.args_doc = "-c FILE",
	.doc = "Shunt: a kernel-bypass load balancer for HTTP/2 and gRPC.\v"
	       "The xDS server is named by gRPC's bootstrap: the file in GRPC_XDS_BOOTSTRAP, "
	       "else the JSON in GRPC_XDS_BOOTSTRAP_CONFIG, else the file bootstrap.json beside "
	       "shunt.yaml.",
};

void args_parse(int argc, char **argv, struct args *ret)
{
	*ret = (struct args){0};
	argp_parse(&argp, argc, argv, 0, NULL, ret);
}
