// SPDX-License-Identifier: Apache-2.0
#include "ctrl/ready_file.h"

#include "lb/base/log.h"
#include "lb/base/time.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK_NS NS_PER_SECOND
#define MODE 0644 // whoever asks is often another user

// One that is left over from a process that died is as good as a new one; what has something in it
// is a file of somebody else's, whose path was given by mistake.
static bool is_ours(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_size == 0;
}

// An empty file is whole as soon as it has its name.
static int make(const char *path)
{
	struct stat st;
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, MODE);
	if (fd >= 0) {
		close(fd);
		return 0;
	}
	if (errno != EEXIST)
		return -errno;
	return lstat(path, &st) == 0 && is_ours(&st) ? 0 : -EEXIST;
}

static int drop(const char *path)
{
	struct stat st;
	if (lstat(path, &st) != 0)
		return errno == ENOENT ? 0 : -errno;
	if (!is_ours(&st))
		return -EEXIST;
	return unlink(path) == 0 || errno == ENOENT ? 0 : -errno;
}

static void tell(struct ready_file *r, int rc)
{
	const char *error = !rc ? NULL : rc == -EEXIST ? "it is no empty file" : strerror(-rc);
	if (error && !r->is_told)
		log_warn("ready file", "path=%s wanted=%s error=%s", log_quote(r->path),
			r->is_wanted ? "yes" : "no", log_quote(error));
	if (!error && r->is_told)
		log_info("ready file", "path=%s wanted=%s is=written", log_quote(r->path),
			r->is_wanted ? "yes" : "no");
	r->is_told = error;
	r->error = error;
}

void ready_file_set(struct ready_file *r, bool wanted, uint64_t now_ns)
{
	if (!r->path || (r->is_known && wanted == r->is_wanted && now_ns < r->look_ns))
		return;
	r->is_wanted = wanted;
	tell(r, wanted ? make(r->path) : drop(r->path));
	r->is_known = true;
	r->look_ns = now_ns + LOOK_NS;
}

void ready_file_end(struct ready_file *r)
{
	if (r->path && r->is_known && r->is_wanted)
		(void)drop(r->path);
	*r = (struct ready_file){.path = NULL};
}
