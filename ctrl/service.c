// SPDX-License-Identifier: Apache-2.0
#include "ctrl/service.h"

#include "ctrl/base/show_port.h"
#include "ctrl/conf/config.h"
#include "ctrl/frontends.h"
#include "ctrl/shutdown.h"

#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>

static const char *const phase_lines[] = {
	[SERVICE_STARTING] = "",
	[SERVICE_READY] = "READY=1\n",
	[SERVICE_STOPPING] = "STOPPING=1\n",
};

void service_tell(struct service *s, enum service_phase phase, const char *status)
{
	if (s->is_silent)
		return;
	const char *line = phase > s->told ? phase_lines[phase] : "";
	char cut[SERVICE_MAX_STATUS];
	snprintf(cut, sizeof(cut), "%s", status);
	for (char *c = cut; (c = strchr(c, '\n'));)
		*c = ' ';
	if (!*line && !s->main_pid && strcmp(cut, s->status) == 0)
		return;
	if (phase > s->told)
		s->told = phase;
	memcpy(s->status, cut, sizeof(cut));
	// Nobody could be told of a failure; the manager's own timeouts act on silence.
	if (s->main_pid) {
		(void)sd_notifyf(0, "MAINPID=%d\n%sSTATUS=%s", s->main_pid, line, s->status);
		s->main_pid = 0;
		return;
	}
	(void)sd_notifyf(0, "%sSTATUS=%s", line, s->status);
}

static bool has_link(const struct service_view *v)
{
	for (uint32_t i = 0; i < v->config->n_ports; i++)
		if (v->ports[i].link == SHOW_LINK_UP)
			return true;
	return false;
}

static void tell_what_is_missing(struct service *s, const struct service_view *v)
{
	char status[SERVICE_MAX_STATUS] = "waiting for configuration";
	for (uint32_t i = 0; i < v->config->n_frontends; i++) {
		const char *waits = frontends_waiting(v->frontends, i);
		if (!config_serves(v->config, i) || !*waits)
			continue;
		snprintf(status, sizeof(status), "frontend %s: waiting for %s",
			v->config->frontends[i].name, waits);
		break;
	}
	service_tell(s, SERVICE_STARTING, status);
}

static void tell_that_we_serve(struct service *s, const struct service_view *v)
{
	char status[SERVICE_MAX_STATUS];
	snprintf(status, sizeof(status), "%s%s%s",
		v->drains ? "an operator drains frontends" : "serving",
		v->newer_lacks ? "; a newer process waits: " : "",
		v->newer_lacks ? v->newer_lacks : "");
	service_tell(s, SERVICE_READY, status);
}

void service_look(struct service *s, const struct service_view *v)
{
	s->must_end = v->shutdown->begun && !v->shutdown->left;
	if (v->shutdown->begun)
		service_tell(s, SERVICE_STOPPING,
			v->shutdown->draining ? "draining"
			: v->shutdown->says_farewell
				? "farewell: clients are sent away and still taken"
				: "lame duck: clients are still taken");
	else if (!has_link(v))
		service_tell(s, SERVICE_STARTING, "no port has a link");
	else if (v->ready)
		tell_that_we_serve(s, v);
	else
		tell_what_is_missing(s, v);
}

void service_beat(const struct service *s, bool all_run)
{
	if (all_run && !s->is_silent)
		(void)sd_notify(0, "WATCHDOG=1");
	if (service_is_ending(s))
		service_ask_time();
}

// A drain that is left behind is cut with the service's last process, unless it asks, too.
bool service_is_ending(const struct service *s)
{
	return s->is_silent ? s->must_end : s->told == SERVICE_STOPPING;
}

// systemd moves the watchdog with it, which our last beat has set.
void service_ask_time(void)
{
	(void)sd_notify(0, "EXTEND_TIMEOUT_USEC=30000000");
}
