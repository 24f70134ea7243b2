// SPDX-License-Identifier: Apache-2.0
#include "ctrl/conf/config_frontend.h"

#include "ctrl/conf/config.h"

#include <stdlib.h>

static void free_list(char **list, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

void config_frontend_fini(struct config_frontend *f)
{
	free(f->name);
	free(f->address);
	free(f->target);
	free(f->listener);
	free(f->authority);
	if (f->tls) {
		free(f->tls->certificate);
		free(f->tls->ca);
		free_list(f->tls->sni, f->tls->n_sni);
		free(f->tls);
	}
	if (f->proxy_protocol) {
		free_list(f->proxy_protocol->allow, f->proxy_protocol->n_allow);
		free(f->proxy_protocol->v1);
		free(f->proxy_protocol->v2);
		free(f->proxy_protocol->prefixes);
		free(f->proxy_protocol);
	}
}

void config_frontend_free(struct config_frontend *f)
{
	if (f)
		config_frontend_fini(f);
	free(f);
}
