// SPDX-License-Identifier: Apache-2.0
#include "ctrl/listen_port.h"

#include <event2/util.h>

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int listen_port_check(const char *address, struct lb_err *reterr)
{
	static const int yes = 1;
	struct sockaddr_storage at;
	int len = sizeof(at);
	if (evutil_parse_sockaddr_port(address, (struct sockaddr *)&at, &len) != 0)
		return 0;
	int fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return lb_err_set(reterr, "socket: %s", strerror(errno));
	bool is_free = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
	               bind(fd, (const struct sockaddr *)&at, (socklen_t)len) == 0 &&
	               listen(fd, 1) == 0;
	int err = errno;
	close(fd);
	return is_free ? 0 : lb_err_set(reterr, "%s: %s", address, strerror(err));
}
