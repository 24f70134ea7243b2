// SPDX-License-Identifier: Apache-2.0
// The first words with a process that serves, before anything of ours has begun.
#include "ctrl/takeover/peer.h"
#include "ctrl/takeover/takeover.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define JOIN_S 10 // to be heard, and again for an answer to HELLO
#define N_JOINS 3 // of one who hears nothing, as from a process that was followed just then

// The answer to HELLO, and what may come before it. *ret_given: what the answer brings; -1 =
// nothing.
static int hear_answer(int fd, struct takeover_message *m, int *ret_resources, int *ret_given)
{
	int rc = takeover_peer_hear_with(fd, JOIN_S, m, ret_given);
	if (rc || m->kind != TAKEOVER_RESOURCES)
		return rc;
	*ret_resources = *ret_given >= 0 ? *ret_given : 0;
	*ret_given = -1;
	return takeover_peer_hear_with(fd, JOIN_S, m, ret_given);
}

static void drop(int *fd)
{
	if (*fd > 0)
		close(*fd);
	*fd = 0;
}

static int take_seat(int fd, const char *version, uint32_t n_workers, struct takeover_seat *ret,
	struct lb_err *reterr)
{
	int given = -1;
	struct takeover_message m = {.kind = TAKEOVER_HELLO,
		.passes_listeners = 1,
		.n_workers = n_workers,
		.takes_resources = 1};
	snprintf(m.text, sizeof(m.text), "%s", version);
	(void)takeover_peer_say(fd, &m); // to one that has gone it may have said why
	int rc = hear_answer(fd, &m, &ret->resources_fd, &given);
	if (rc) {
		drop(&given);
		lb_err_set(reterr, "the process that serves does not answer");
		return rc;
	}
	ret->relay_fd = given >= 0 ? given : 0;
	if (m.kind == TAKEOVER_REFUSED)
		return lb_err_set(reterr, "the process that serves refuses: %s", m.text);
	if (m.kind != TAKEOVER_WELCOME || m.generation < 2 || m.n_behind < 1 ||
		m.n_behind > TAKEOVER_MAX_BEHIND)
		return lb_err_set(reterr, "the process that serves said what is not its turn");
	ret->fd = fd;
	ret->generation = m.generation;
	ret->n_behind = m.n_behind;
	ret->passes_listeners = m.passes_listeners;
	ret->cables = m.cables;
	ret->n_sources = m.n_sources;
	snprintf(ret->version, sizeof(ret->version), "%.*s", TAKEOVER_VERSION - 1, m.text);
	return 0;
}

int takeover_join(const char *path, const char *version, uint32_t n_workers,
	struct takeover_seat *ret, struct lb_err *reterr)
{
	int rc = -EPIPE;
	*ret = (struct takeover_seat){.fd = -1, .generation = 1};
	for (int i = 0; i < N_JOINS && rc == -EPIPE; i++) {
		int fd = takeover_peer_connect(path, JOIN_S, reterr);
		if (fd == -ENOENT)
			return 0;
		rc = fd < 0 ? fd : take_seat(fd, version, n_workers, ret, reterr);
		if (rc == 0)
			return 0;
		drop(&ret->resources_fd);
		if (fd >= 0)
			close(fd);
	}
	return lb_err_within(reterr, "takeover_socket");
}

enum lb_company takeover_first_company(const struct takeover_seat *seat)
{
	return seat->fd >= 0 ? LB_BEHIND : LB_ALONE;
}
