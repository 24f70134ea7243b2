// SPDX-License-Identifier: Apache-2.0
#include "ctrl/base/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
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
	if (st.st_size < 0 || (uint64_t)st.st_size > WHOLE_FILE_MAX)
		return lb_err_set(err, "is larger than %zu MiB", WHOLE_FILE_MAX >> 20);
	*ret_len = (size_t)st.st_size;
	return 0;
}

// Reads what it has become meanwhile, too, but no more than was looked for and one byte.
static int read_all(int fd, struct whole_file *f, size_t len, struct lb_err *err)
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

int whole_file_read(const char *path, bool is_secret, struct whole_file *ret, struct lb_err *err)
{
	struct whole_file f = {NULL, 0};
	size_t len = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a FIFO has no writer
	if (fd < 0)
		return lb_err_set(err, "%s", strerror(errno));
	int rc = check(fd, is_secret, &len, err);
	if (!rc)
		rc = read_all(fd, &f, len, err);
	close(fd);
	if (rc)
		whole_file_fini(&f);
	else
		*ret = f;
	return rc;
}

int whole_file_read_stream(const char *path, struct whole_file *ret, struct lb_err *err)
{
	struct whole_file f = {NULL, 0};
	char chunk[4096];
	size_t n, len = 0;
	FILE *in = fopen(path, "re"), *memory = in ? open_memstream(&f.p, &f.len) : NULL;
	while (memory && len <= WHOLE_FILE_MAX && (n = fread(chunk, 1, sizeof(chunk), in)) > 0)
		len += fwrite(chunk, 1, n, memory);
	bool ok = memory && !ferror(in) && !ferror(memory) && len <= WHOLE_FILE_MAX;
	int reason = len > WHOLE_FILE_MAX ? EFBIG : errno;
	if (in)
		fclose(in);
	if (memory)
		ok = fclose(memory) == 0 && ok;
	if (!ok) {
		whole_file_fini(&f);
		return lb_err_set(err, "%s", strerror(reason));
	}
	*ret = f;
	return 0;
}

void whole_file_fini(struct whole_file *f)
{
	if (f->p)
		explicit_bzero(f->p, f->len);
	free(f->p);
	*f = (struct whole_file){NULL, 0};
}
