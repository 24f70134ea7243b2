// SPDX-License-Identifier: Apache-2.0
#include "ctrl/base/sealed_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static int write_all(int fd, const uint8_t *bytes, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, bytes, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		bytes += n;
		len -= (size_t)n;
	}
	return 0;
}

int sealed_file_make(const char *name, const uint8_t *bytes, size_t len)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	int rc = write_all(fd, bytes, len);
	if (rc == 0 && fcntl(fd, F_ADD_SEALS, SEALS) != 0)
		rc = -errno;
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

int sealed_file_read(int fd, size_t max_len, uint8_t **ret, size_t *ret_len)
{
	struct stat st;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_size < 0 || (uintmax_t)st.st_size > max_len)
		return -EFBIG;
	size_t len = (size_t)st.st_size;
	uint8_t *bytes = malloc(len + 1);
	if (!bytes)
		return -ENOMEM;
	for (size_t at = 0; at < len;) {
		ssize_t n = pread(fd, bytes + at, len - at, (off_t)at);
		if (n <= 0) {
			int rc = n < 0 ? -errno : -EIO;
			explicit_bzero(bytes, at);
			free(bytes);
			return rc;
		}
		at += (size_t)n;
	}
	*ret = bytes;
	*ret_len = len;
	return 0;
}
