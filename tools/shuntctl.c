// SPDX-License-Identifier: Apache-2.0
// shuntctl: sends one command to shuntd's stats socket and prints the answer. It knows no command:
// what there is, the daemon says (`shuntctl help`).
#include "ctrl/base/stats_proto.h"
#include "lb/base/words.h"
#include "tools/shuntctl_doctor.h"

#include <argp.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define TIMEOUT_S 10

struct args {
	const char *socket;
	bool json;
	bool follows; // the answer goes on until one of us ends
	char command[STATS_MAX_COMMAND];
};

static const struct argp_option options[] = {
	{"socket", 's', "PATH", 0,
		"The stats socket (default: $SHUNT_SOCKET, else " STATS_DEFAULT_SOCKET ")", 0},
	{"json", 'j', NULL, 0, "Answer in JSON", 0},
	{0},
};

// Of any command; or the command that is answered when something is so.
static bool is_follow(const char *word, int i)
{
	return strcmp(word, "-w") == 0 || strcmp(word, "-f") == 0 ||
	       (i == 0 && strcmp(word, "wait") == 0);
}

// The first word ends our own options, since a command may have some, too.
static void take_words(struct args *a, char **words, int n, struct argp_state *state)
{
	for (int i = 0; i < n; i++) {
		if (strcmp(words[i], "--json") == 0 || strcmp(words[i], "-j") == 0)
			a->json = true;
		else if (is_follow(words[i], i) &&
			 words_append(a->command, sizeof(a->command) - sizeof(" json"), words[i]))
			a->follows = true;
		else if (!words_append(a->command, sizeof(a->command) - sizeof(" json"), words[i]))
			argp_error(state, "command longer than %d bytes", STATS_MAX_COMMAND);
	}
}

static error_t take_arg(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;
	switch (key) {
	case 's':
		a->socket = arg;
		return 0;
	case 'j':
		a->json = true;
		return 0;
	case ARGP_KEY_ARGS:
		take_words(a, state->argv + state->next, state->argc - state->next, state);
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_usage(state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = take_arg,
	.args_doc = "COMMAND...",
	.doc = "Ask a running shuntd. `shuntctl help` lists the commands.\v"
	       "Options stand before the command, but for --json. Words with blanks reach the "
	       "daemon as they are.\n\n"
	       "Exit status: 0 answered, 1 the daemon refused the command, 2 it could not be "
	       "asked. Of doctor: 0 all is well, 1 warnings, 2 errors.",
};

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
	struct timeval timeout = {.tv_sec = TIMEOUT_S};
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0)
		return fd;
	int err = errno;
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

// No line may come for long.
static void wait_for_ever(int fd)
{
	struct timeval never = {0};
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &never, sizeof(never));
	setlinebuf(stdout);
}

// Prints the answer but for the empty line that ends it. The exit status, or -1 with errno.
static int print_answer(int fd, bool by_doctor)
{
	FILE *in = fdopen(fd, "r");
	if (!in)
		return -1;
	char *line = NULL;
	size_t room = 0;
	bool first = true, refused = false, ended = false;
	int status = 0;
	errno = 0;
	while (!ended && getline(&line, &room, in) > 0) {
		ended = strcmp(line, "\n") == 0;
		refused |= first && strncmp(line, STATS_ERROR, strlen(STATS_ERROR)) == 0;
		first = false;
		if (!ended)
			fputs(line, refused ? stderr : stdout);
		if (by_doctor)
			status = doctor_status(line, status);
	}
	int err = errno;
	free(line);
	fclose(in);
	if (ended)
		return refused ? 1 : status;
	errno = err ? err : EPIPE;
	return -1;
}

int main(int argc, char **argv)
{
	struct args args = {.socket = getenv("SHUNT_SOCKET")};
	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &args);
	bool by_doctor = doctor_is_asked(args.command);
	if (!args.socket)
		args.socket = STATS_DEFAULT_SOCKET;
	if (args.json)
		strcat(args.command, " json"); // take_arg left room
	int fd = dial(args.socket);
	int status = fd < 0 ? -1 : 0;
	if (status == 0 && !send_command(fd, args.command)) {
		close(fd);
		status = -1;
	}
	if (status == 0 && args.follows)
		wait_for_ever(fd);
	if (status == 0)
		status = print_answer(fd, by_doctor);
	if (status < 0) {
		fprintf(stderr, "shuntctl: %s: %s\n", args.socket,
			errno == EAGAIN ? "no answer in time" : strerror(errno));
		if (by_doctor)
			doctor_hint();
		return 2;
	}
	return status;
}
