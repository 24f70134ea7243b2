// SPDX-License-Identifier: Apache-2.0
#include "ctrl/stats/places.h"

#define MOST_OF_A_KIND (STATS_PLACES - STATS_PLACES_KEPT)

struct look {
	const struct stats_place *taken;
	unsigned n;
	const struct stats_caller *newcomer;
	bool of_users; // whose places are given away
};

static bool is_user(enum stats_level level)
{
	return level == STATS_USER;
}

static unsigned count_kind(const struct look *l, bool users)
{
	unsigned n = 0;
	for (unsigned i = 0; i < l->n; i++)
		n += is_user(l->taken[i].level) == users;
	return n;
}

static unsigned count_uid(const struct look *l, uid_t uid)
{
	unsigned n = l->newcomer->uid == uid;
	for (unsigned i = 0; i < l->n; i++)
		n += is_user(l->taken[i].level) == l->of_users && l->taken[i].uid == uid;
	return n;
}

static bool goes_before(
	const struct look *l, const struct stats_place *a, const struct stats_place *b)
{
	if (a->level != b->level)
		return a->level < b->level;
	unsigned n_a = count_uid(l, a->uid), n_b = count_uid(l, b->uid);
	if (n_a != n_b)
		return n_a > n_b;
	return a->waits != b->waits ? a->waits : a->since < b->since;
}

int stats_places_victim(
	const struct stats_place *taken, unsigned n, const struct stats_caller *newcomer)
{
	bool comes_user = is_user(newcomer->level);
	struct look l = {taken, n, newcomer, .of_users = true};
	int victim = -1;
	if (count_kind(&l, comes_user) >= MOST_OF_A_KIND)
		l.of_users = comes_user;
	else if (n < STATS_PLACES)
		return -1;
	for (unsigned i = 0; i < n; i++)
		if (is_user(taken[i].level) == l.of_users &&
			(victim < 0 || goes_before(&l, &taken[i], &taken[victim])))
			victim = (int)i;
	return victim;
}
