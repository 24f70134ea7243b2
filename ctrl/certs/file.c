// SPDX-License-Identifier: Apache-2.0
#include "ctrl/certs/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int check(int fd, bool is_secret, size_t *ret_len, struct lb_err *err)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return lb_err_set(err, "%s", strerror(errno));
	if (S_ISDIR(st.st_mode))
		return lb_err_set(err, "%s", strerror(EISDIR));
	if (!S_ISREG(st.st_mode))
		return lb_err_set(err, "is not a regular file");
	if (is_secret && (st.st_mode & S_IWOTH))
		return lb_err_set(err, "is writable by everybody (mode %04o)", st.st_mode & 07777);
	if (st.st_size < 0 || (uint64_t)st.st_size > CERT_FILE_MAX)
		return lb_err_set(err, "is larger than %zu MiB", CERT_FILE_MAX >> 20);
	*ret_len = (size_t)st.st_size;
	return 0;
}

// Reads what it has become meanwhile, too, but no more than was looked for and one byte.
static int read_all(int fd, struct cert_file *f, size_t len, struct lb_err *err)
{
	f->p = malloc(len + 1);
	if (!f->p)
		return -ENOMEM;
	while (f->len <= len) {
		ssize_t n = read(fd, f->p + f->len, len + 1 - f->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return lb_err_set(err, "%s", strerror(errno));
		if (n == 0)
			break;
		f->len += (size_t)n;
	}
	if (f->len > len)
		return lb_err_set(err, "is being written");
	f->p[f->len] = '\0';
	return 0;
}

int cert_file_read(const char *path, bool is_secret, struct cert_file *ret, struct lb_err *err)
{
	struct cert_file f = {NULL, 0};
	size_t len = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a FIFO has no writer
	if (fd < 0)
		return lb_err_set(err, "%s", strerror(errno));
	int rc = check(fd, is_secret, &len, err);
	if (!rc)
		rc = read_all(fd, &f, len, err);
	close(fd);
	if (rc)
		cert_file_fini(&f);
	else
		*ret = f;
	return rc;
}

void cert_file_fini(struct cert_file *f)
{
	if (f->p)
		explicit_bzero(f->p, f->len);
	free(f->p);
	*f = (struct cert_file){NULL, 0};
}
