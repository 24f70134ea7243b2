// SPDX-License-Identifier: Apache-2.0
#include "ctrl/certs/watch.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_LINKS 40 // as Linux follows
#define EVENTS                                                                                     \
	(IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB |        \
		IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)
#define SELF_EVENTS (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED)

struct cert_watch_point {
	int wd;
	uint32_t source;
	char *name; // in that directory; NULL = any
};

int cert_watch_init(struct cert_watch *w)
{
	*w = (struct cert_watch){.fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC)};
	return w->fd < 0 ? -errno : 0;
}

void cert_watch_fini(struct cert_watch *w)
{
	for (uint32_t i = 0; i < w->n; i++)
		free(w->list[i].name);
	free(w->list);
	if (w->fd >= 0)
		close(w->fd);
}

static bool is_used(const struct cert_watch *w, int wd)
{
	for (uint32_t i = 0; i < w->n; i++)
		if (w->list[i].wd == wd)
			return true;
	return false;
}

void cert_watch_forget(struct cert_watch *w, uint32_t source)
{
	for (uint32_t i = w->n; i-- > 0;) {
		struct cert_watch_point gone = w->list[i];
		if (gone.source != source)
			continue;
		free(gone.name);
		w->list[i] = w->list[--w->n];
		if (!is_used(w, gone.wd))
			inotify_rm_watch(w->fd, gone.wd); // it may be gone already
	}
}

// False = no memory, or the system's limit.
static bool watch(struct cert_watch *w, uint32_t source, const char *dir, const char *name)
{
	struct cert_watch_point p = {inotify_add_watch(w->fd, dir, EVENTS), source, NULL};
	struct cert_watch_point *grown = reallocarray(w->list, w->n + 1, sizeof(*grown));
	if (grown)
		w->list = grown;
	if (name)
		p.name = strdup(name);
	if (p.wd < 0 || !grown || (name && !p.name)) {
		free(p.name);
		return false;
	}
	w->list[w->n++] = p;
	return true;
}

// A path that is being followed: `at` is a directory without links, `rest` what is left.
struct walk {
	char at[PATH_MAX], rest[PATH_MAX];
	unsigned n_links;
	bool unwatched; // some of it
};

// False = it is too long.
static bool set_rest(struct walk *k, const char *first, const char *then)
{
	char rest[PATH_MAX];
	int len = snprintf(rest, sizeof(rest), "%s/%s", first, then);
	if (len < 0 || (size_t)len >= sizeof(rest))
		return false;
	if (first[0] == '/')
		strcpy(k->at, "/");
	memcpy(k->rest, rest, (size_t)len + 1);
	return true;
}

// Goes into the link, of which full is the path. False = it leads nowhere.
static bool follow(struct walk *k, const char *full, const char *rest)
{
	char target[PATH_MAX];
	ssize_t len = readlink(full, target, sizeof(target) - 1);
	if (len <= 0 || ++k->n_links > MAX_LINKS)
		return false;
	target[len] = '\0';
	return set_rest(k, target, rest);
}

// Takes one name off the rest. False = there is no more to see.
static bool step(struct cert_watch *w, uint32_t source, struct walk *k)
{
	char name[NAME_MAX + 1], rest[PATH_MAX], full[PATH_MAX];
	const char *begin = k->rest + strspn(k->rest, "/");
	size_t len = strcspn(begin, "/");
	if (len == 0 || len >= sizeof(name))
		return false;
	memcpy(name, begin, len);
	name[len] = '\0';
	const char *then = begin + len + strspn(begin + len, "/");
	snprintf(rest, sizeof(rest), "%s", then);
	int n = snprintf(full, sizeof(full), "%s%s%s", k->at, strcmp(k->at, "/") ? "/" : "", name);
	if (n < 0 || (size_t)n >= sizeof(full))
		return false;

	struct stat st;
	bool there = lstat(full, &st) == 0;
	if (there && S_ISLNK(st.st_mode)) {
		k->unwatched |= !watch(w, source, k->at, name);
		return follow(k, full, rest);
	}
	if (there && S_ISDIR(st.st_mode)) {
		memcpy(k->at, full, (size_t)n + 1);
		memcpy(k->rest, rest, strlen(rest) + 1);
		if (!*rest)
			k->unwatched |= !watch(w, source, full, NULL);
		return *rest;
	}
	k->unwatched |= !watch(w, source, k->at, name);
	return false;
}

bool cert_watch_add(struct cert_watch *w, uint32_t source, const char *path)
{
	struct walk k = {.at = "."};
	if (!set_rest(&k, path, ""))
		return false;
	while (step(w, source, &k))
		;
	return !k.unwatched;
}

static bool concerns(const struct cert_watch_point *p, const struct inotify_event *e)
{
	if (e->mask & IN_Q_OVERFLOW)
		return true;
	if (e->wd != p->wd)
		return false;
	return !p->name || (e->mask & SELF_EVENTS) ||
	       (e->len && strncmp(p->name, e->name, e->len) == 0);
}

bool cert_watch_drain(struct cert_watch *w, bool *changed, uint32_t n_sources)
{
	_Alignas(struct inotify_event) char
		buffer[16 * (sizeof(struct inotify_event) + NAME_MAX + 1)];
	bool some = false;
	for (;;) {
		ssize_t n = read(w->fd, buffer, sizeof(buffer));
		if (n <= 0)
			return some;
		for (const char *at = buffer; at < buffer + n;) {
			const struct inotify_event *e = (const void *)at;
			for (uint32_t i = 0; i < w->n; i++)
				if (w->list[i].source < n_sources && concerns(&w->list[i], e))
					some = changed[w->list[i].source] = true;
			at += sizeof(*e) + e->len;
		}
	}
}
