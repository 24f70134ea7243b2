// SPDX-License-Identifier: Apache-2.0
#include "ctrl/signals.h"

#include "ctrl/access_log/access_log.h"
#include "ctrl/base/log_file.h"
#include "ctrl/conf/reload.h"
#include "ctrl/loop.h"
#include "lb/base/log.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>

static void on_stop(void *arg)
{
	const struct signals *s = arg;
	s->on_stop(s->ctx);
}

static void on_reload(void *arg)
{
	const struct signals *s = arg;
	struct reload_report report; // which the log has
	reload(s->reloader, "by=SIGHUP", &report);
}

static void on_reopen(void *arg)
{
	const struct signals *s = arg;
	log_file_reopen();
	access_log_reopen(s->access_log);
}

static void on_follow(void *arg)
{
	const struct signals *s = arg;
	if (s->on_follow)
		s->on_follow(s->ctx_follow);
	else
		log_info("signal ignored", "name=SIGUSR2 reason=\"no takeover_socket\"");
}

static const struct {
	int number;
	void (*fn)(void *arg);
} handled[] = {
	{SIGTERM, on_stop},
	{SIGINT, on_stop},
	{SIGQUIT, on_stop},
	{SIGHUP, on_reload},
	{SIGUSR1, on_reopen},
	{SIGUSR2, on_follow},
};
#define N_HANDLED (sizeof(handled) / sizeof(handled[0]))

static void mask(int how, bool all)
{
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < N_HANDLED; i++)
		if (all || handled[i].fn != on_stop)
			sigaddset(&set, handled[i].number);
	pthread_sigmask(how, &set, NULL);
}

void signals_block_harmless(void)
{
	mask(SIG_BLOCK, false);
}

void signals_block(void)
{
	mask(SIG_BLOCK, true);
	signal(SIGPIPE, SIG_IGN);
}

void signals_unblock(void)
{
	mask(SIG_UNBLOCK, true);
}

int signals_watch(struct signals *s, struct loop *loop)
{
	for (size_t i = 0; i < N_HANDLED; i++)
		if (loop_watch_signal(loop, handled[i].number, handled[i].fn, s))
			return -ENOMEM;
	return 0;
}

void signals_look(struct signals *s, uint64_t now_ns)
{
	log_file_look();
	access_log_look(s->access_log, now_ns);
}
