// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/state/state_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEMPORARY XDS_STATE_NAME ".new"
#define CORRUPT XDS_STATE_NAME ".corrupt"
#define MODE 0600

static int fail(struct lb_err *err, const char *directory, const char *what)
{
	int rc = -errno;
	lb_err_set(err, "%s/%s: %s: %s", directory, XDS_STATE_NAME, what, strerror(errno));
	return rc;
}

static int open_directory(const char *directory, struct lb_err *err)
{
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? fail(err, directory, "cannot open its directory") : fd;
}

int xds_state_claim(const char *directory, struct lb_err *err)
{
	int dir = open_directory(directory, err);
	if (dir < 0 || flock(dir, LOCK_EX | LOCK_NB) == 0)
		return dir;
	int rc = -errno;
	lb_err_set(err, "%s: %s", directory,
		rc == -EWOULDBLOCK ? "another process keeps its state there" : strerror(-rc));
	close(dir);
	return rc;
}

void xds_state_release(int claim)
{
	if (claim >= 0)
		close(claim);
}

// Reading

static int read_all(int fd, uint8_t *bytes, size_t len)
{
	for (size_t at = 0; at < len;) {
		ssize_t n = read(fd, bytes + at, len - at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			errno = EIO; // it has become shorter
		if (n <= 0)
			return -1;
		at += (size_t)n;
	}
	return 0;
}

static int load(int fd, const char *directory, struct xds_state *ret, struct lb_err *err)
{
	struct stat st;
	if (fstat(fd, &st))
		return fail(err, directory, "cannot look at it");
	if (!S_ISREG(st.st_mode) || st.st_size < 0 || (uint64_t)st.st_size > XDS_STATE_MAX_LEN) {
		lb_err_set(err, "%s/%s: is not a file of at most %zu MiB", directory,
			XDS_STATE_NAME, XDS_STATE_MAX_LEN >> 20);
		return -EINVAL;
	}
	size_t len = (size_t)st.st_size;
	uint8_t *bytes = malloc(len + 1);
	if (!bytes)
		return -ENOMEM;
	if (read_all(fd, bytes, len)) {
		int rc = fail(err, directory, "cannot read it");
		free(bytes);
		return rc;
	}
	int rc = xds_state_parse(bytes, len, ret, err);
	if (rc == -EINVAL)
		lb_err_within(err, "%s/%s", directory, XDS_STATE_NAME);
	return rc;
}

int xds_state_load(const char *directory, struct xds_state *ret, struct lb_err *err)
{
	*ret = (struct xds_state){.n_sections = 0};
	int dir = open_directory(directory, err);
	if (dir < 0)
		return dir == -ENOENT ? -ENOTDIR : dir;
	// What is no file must not make us wait.
	int fd = openat(dir, XDS_STATE_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int rc = fd < 0 ? fail(err, directory, "cannot open it") : load(fd, directory, ret, err);
	if (fd >= 0)
		close(fd);
	close(dir);
	return rc;
}

// Writing

static int write_all(int fd, const uint8_t *bytes, size_t len)
{
	for (size_t at = 0; at < len;) {
		ssize_t n = write(fd, bytes + at, len - at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		at += (size_t)n;
	}
	return 0;
}

static int write_new(int dir, const uint8_t *bytes, size_t len)
{
	(void)unlinkat(dir, TEMPORARY, 0); // of a process that died
	int fd = openat(dir, TEMPORARY, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, MODE);
	if (fd < 0)
		return -1;
	int rc = write_all(fd, bytes, len) || fsync(fd) ? -1 : 0;
	int why = errno;
	if (close(fd) && !rc) {
		rc = -1;
		why = errno;
	}
	if (!rc && renameat(dir, TEMPORARY, dir, XDS_STATE_NAME)) {
		rc = -1;
		why = errno;
	}
	if (rc)
		(void)unlinkat(dir, TEMPORARY, 0);
	errno = why;
	return rc;
}

int xds_state_save(const char *directory, const uint8_t *bytes, size_t len, struct lb_err *err)
{
	int dir = open_directory(directory, err);
	if (dir < 0)
		return dir;
	int rc = write_new(dir, bytes, len) ? fail(err, directory, "cannot write it") : 0;
	if (!rc && fsync(dir))
		rc = fail(err, directory, "cannot write its directory");
	close(dir);
	return rc;
}

int xds_state_set_aside(const char *directory)
{
	struct lb_err err;
	int dir = open_directory(directory, &err);
	if (dir < 0)
		return dir;
	int rc = renameat(dir, XDS_STATE_NAME, dir, CORRUPT) ? -errno : 0;
	close(dir);
	return rc;
}
