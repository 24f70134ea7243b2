// SPDX-License-Identifier: Apache-2.0
// Metrics of virtual hosts, where they are counted apart (OPS-270). Between steps one may go and
// another have its number: each metric tells of those that are there then.
#include "ctrl/assemble/vhost_numbers.h"
#include "ctrl/metrics/scrape_inside.h"

static const struct vhost_numbers *numbers_of(const struct scrape *s)
{
	return assembler_vhost_numbers(s->conf.assembler);
}

static uint32_t over_vhosts(const struct scrape *s)
{
	return vhost_numbers_end(numbers_of(s));
}

// Its name, or NULL: the number is nobody's.
static const char *read_vhost(const struct scrape *s, uint32_t i, struct lb_vhost_counters *ret)
{
	const char *name = vhost_numbers_name(numbers_of(s), i);
	if (name)
		vhost_numbers_read(numbers_of(s), i, ret);
	return name;
}

static void tell_vhost(struct scrape *s, enum metric_id id, uint32_t i)
{
	struct lb_vhost_counters c;
	const char *name = read_vhost(s, i, &c);
	uint64_t ended = 0;
	if (!name)
		return;
	for (int cause = 0; cause < LB_N_CAUSES; cause++)
		ended += c.ended[cause];
	// One may have begun and ended between the two readings.
	uint64_t in_flight = c.started > ended ? c.started - ended : 0;
	scrape_tell(s, id, (double)(id == METRIC_ID_VHOST_REQUESTS ? c.started : in_flight),
		LABELS(name));
}

static void tell_vhost_ended(struct scrape *s, enum metric_id id, uint32_t i)
{
	struct lb_vhost_counters c;
	const char *name = read_vhost(s, i, &c);
	if (!name)
		return;
	for (int cause = 0; cause < LB_N_CAUSES; cause++)
		if (c.ended[cause] || cause == LB_CAUSE_OK)
			scrape_tell(s, id, (double)c.ended[cause],
				LABELS(name, lb_cause_info((enum lb_cause)cause)->name));
}

static void tell_vhost_answers(struct scrape *s, enum metric_id id, uint32_t i)
{
	struct lb_vhost_counters c;
	const char *name = read_vhost(s, i, &c);
	if (!name)
		return;
	scrape_tell_answers(s, id, c.answers, name, false);
}

static void tell_vhost_time(struct scrape *s, enum metric_id id, uint32_t i)
{
	struct lb_vhost_counters c;
	const char *name = read_vhost(s, i, &c);
	if (name && i <= SCRAPE_MAX_VHOST_TIMES)
		scrape_tell_histogram(s, id, &c.request, name);
}

const struct scrape_family scrape_vhosts[] = {
	{METRIC_ID_VHOST_REQUESTS, over_vhosts, tell_vhost},
	{METRIC_ID_VHOST_IN_FLIGHT, over_vhosts, tell_vhost},
	{METRIC_ID_VHOST_ENDED, over_vhosts, tell_vhost_ended},
	{METRIC_ID_VHOST_ANSWERS, over_vhosts, tell_vhost_answers},
	{METRIC_ID_VHOST_TIME, over_vhosts, tell_vhost_time},
};
const uint32_t scrape_n_vhosts = sizeof(scrape_vhosts) / sizeof(scrape_vhosts[0]);
