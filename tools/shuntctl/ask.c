// SPDX-License-Identifier: Apache-2.0
#include "tools/shuntctl/ask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

static void set_timeout(int fd, int which, int seconds)
{
	struct timeval timeout = {.tv_sec = seconds}; // 0 = for ever
	setsockopt(fd, SOL_SOCKET, which, &timeout, sizeof(timeout));
}

// Who connects to what is no socket is refused, too, as is the empty path.
static int why_refused(const char *path)
{
	struct stat s;
	if (stat(path, &s) != 0)
		return errno;
	return S_ISSOCK(s.st_mode) ? ECONNREFUSED : ENOTSOCK;
}

static int dial(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(addr.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(addr.sun_path, path, strlen(path) + 1);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	set_timeout(fd, SO_RCVTIMEO, ASK_TIMEOUT_S);
	set_timeout(fd, SO_SNDTIMEO, ASK_TIMEOUT_S);
	if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0)
		return fd;
	int err = errno == ECONNREFUSED ? why_refused(path) : errno;
	close(fd);
	errno = err;
	return -1;
}

static bool send_command(int fd, const char *command)
{
	char line[STATS_MAX_COMMAND + 2];
	int len = snprintf(line, sizeof(line), "%s\n", command);
	return send(fd, line, (size_t)len, MSG_NOSIGNAL) == len && shutdown(fd, SHUT_WR) == 0;
}

static pid_t pid_of(int fd)
{
	struct ucred cred = {0};
	socklen_t len = sizeof(cred);
	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 ? cred.pid : 0;
}

int ask_open(struct ask *a, const char *socket, const char *command, bool follows)
{
	*a = (struct ask){0};
	int fd = dial(socket);
	if (fd < 0)
		return -1;
	a->pid = pid_of(fd);
	a->in = fdopen(fd, "r");
	if (!a->in) {
		close(fd);
		return -1;
	}
	// Who closed before may have said why.
	if (!send_command(fd, command) && errno != EPIPE)
		return -1;
	if (follows)
		set_timeout(fd, SO_RCVTIMEO, 0);
	return 0;
}

const char *ask_line(struct ask *a)
{
	errno = 0;
	if (a->ended || getline(&a->line, &a->room, a->in) <= 0) {
		if (!a->ended && !errno)
			errno = EPIPE;
		return NULL;
	}
	a->ended = strcmp(a->line, "\n") == 0;
	if (strcmp(a->line, STATS_ERROR STATS_CUT "\n") == 0) {
		errno = EUSERS;
		return NULL;
	}
	a->refused |= !a->begun && strncmp(a->line, STATS_ERROR, strlen(STATS_ERROR)) == 0;
	a->begun = true;
	return a->ended ? NULL : a->line;
}

void ask_close(struct ask *a)
{
	int err = errno;
	if (a->in)
		fclose(a->in);
	free(a->line);
	*a = (struct ask){0};
	errno = err;
}

char *ask_all(const char *socket, const char *command)
{
	struct ask a;
	char *text = NULL;
	size_t len = 0;
	const char *line;
	FILE *out = open_memstream(&text, &len);
	if (!out)
		return NULL;
	bool is_open = ask_open(&a, socket, command, false) == 0;
	while (is_open && (line = ask_line(&a)))
		fputs(line, out);
	bool is_whole = is_open && a.ended && !a.refused;
	if (is_open && a.refused)
		errno = EINVAL;
	ask_close(&a);
	int err = errno;
	if (fclose(out) == 0 && is_whole)
		return text;
	free(text);
	errno = err;
	return NULL;
}

const char *ask_error(int error)
{
	switch (error) {
	case EAGAIN:
		return "no answer in time";
	case EUSERS:
		return STATS_CUT;
	case EPIPE:
	case ECONNRESET:
		return "closed before the answer was whole";
	case ENOENT:
		return "No such file or directory; does shuntd run? --socket names another one";
	case ECONNREFUSED:
		return "Connection refused; the shuntd that made it has ended";
	case ENOTSOCK:
		return "Not a socket; --socket names another one";
	case EACCES:
		return "Permission denied; it is for root, and for its group (stats.mode)";
	default:
		return strerror(error);
	}
}
