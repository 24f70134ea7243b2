// SPDX-License-Identifier: Apache-2.0
// inotify. What counts is that names or contents changed, not which: any event starts the wait.
#include "lb/base/time.h"
#include "tools/shunt-xds/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#define QUIET_NS (50 * NS_PER_MS) // of silence before a load
#define PATIENCE_NS (250 * NS_PER_MS) // no change waits longer, however busy the folder is
#define RETRY_NS (500 * NS_PER_MS) // between looks for a folder that is gone

static int watch(struct folder_watch *w)
{
	w->wd = inotify_add_watch(w->fd, w->path,
		IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB |
			IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR);
	return w->wd < 0 ? -errno : 0;
}

int folder_watch_init(struct folder_watch *w, const char *path)
{
	*w = (struct folder_watch){.path = path, .wd = -1};
	w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (w->fd < 0)
		return -errno;
	int r = watch(w);
	if (r < 0)
		folder_watch_fini(w);
	return r;
}

void folder_watch_fini(struct folder_watch *w)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
}

// A new file is empty until its writer closes it, which is an event of its own; links are whole at
// once.
static bool is_being_written(const struct folder_watch *w, const struct inotify_event *e)
{
	char path[PATH_MAX];
	struct stat st;
	if (!(e->mask & IN_CREATE) || e->len == 0)
		return false;
	int n = snprintf(path, sizeof(path), "%s/%s", w->path, e->name);
	return n > 0 && (size_t)n < sizeof(path) && lstat(path, &st) == 0 && S_ISREG(st.st_mode) &&
	       st.st_nlink == 1;
}

static void take(struct folder_watch *w, const struct inotify_event *e, uint64_t now_ns)
{
	if (e->wd != w->wd && !(e->mask & IN_Q_OVERFLOW))
		return; // of a folder that was given up
	if (is_being_written(w, e))
		return;
	if (e->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED)) {
		inotify_rm_watch(w->fd, w->wd);
		w->wd = -1;
		w->retry_ns = now_ns + QUIET_NS;
	}
	if (w->last_ns == 0)
		w->first_ns = now_ns;
	w->last_ns = now_ns;
}

void folder_watch_feed(struct folder_watch *w, uint64_t now_ns)
{
	_Alignas(struct inotify_event) char
		buffer[16 * (sizeof(struct inotify_event) + NAME_MAX + 1)];
	for (;;) {
		ssize_t n = read(w->fd, buffer, sizeof(buffer));
		if (n <= 0)
			return;
		for (const char *at = buffer; at < buffer + n;) {
			const struct inotify_event *e = (const void *)at;
			take(w, e, now_ns);
			at += sizeof(*e) + e->len;
		}
	}
}

uint64_t folder_watch_due_ns(const struct folder_watch *w)
{
	if (w->wd < 0)
		return w->retry_ns;
	if (w->last_ns == 0)
		return UINT64_MAX;
	uint64_t quiet = w->last_ns + QUIET_NS, patience = w->first_ns + PATIENCE_NS;
	return quiet < patience ? quiet : patience;
}

bool folder_watch_drain(struct folder_watch *w, uint64_t now_ns)
{
	if (now_ns < folder_watch_due_ns(w))
		return false;
	bool was_told = w->last_ns == 0;
	w->first_ns = w->last_ns = 0;
	if (w->wd >= 0 || watch(w) == 0)
		return true;
	w->retry_ns = now_ns + RETRY_NS;
	return !was_told; // the first load of a folder that is gone says so
}
