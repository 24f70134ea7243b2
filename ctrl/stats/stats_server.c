// SPDX-License-Identifier: Apache-2.0
#include "ctrl/stats/stats_server.h"

#include "ctrl/base/socket_file.h"
#include "ctrl/base/stats_proto.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define MAX_CLIENTS 32
#define CLIENT_TIMEOUT_S 60
// Commands wait while this much of earlier answers is unread.
#define OUTPUT_HIGH_WATER ((size_t)1 << 20)
// How long nobody is accepted when the process has no descriptor left.
#define ACCEPT_PAUSE_MS 100
#define FOLLOW_MS 200
#define SOON_MS 4

struct client {
	struct client *next;
	struct stats_server *server;
	struct bufferevent *bev; // owned
	struct stats_caller caller;
	bool eof; // nothing more is read: the client said all it wants, or we close
	bool is_prompted; // STATS_HAPROXY: lines may follow
	char *line; // owned; STATS_HAPROXY: whose commands are answered; NULL = none
	char *rest; // of the line; NULL = all its commands are answered
	struct stats_follow *follow; // owned; NULL = commands are answered
};

struct stats_server {
	struct event_base *base;
	struct event *accept_event;
	struct event *accept_again; // timer
	struct event *follow_event; // timer, armed while somebody follows
	int fd;
	enum stats_framing framing;
	char path[108];
	struct socket_file file;
	struct stats_groups groups;
	stats_answer_fn answer;
	void *ctx;
	struct client *clients;
	unsigned n_clients;
	uint32_t n_turns; // of clients that wait
};

static void client_free(struct client *c)
{
	struct client **at = &c->server->clients;
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	c->server->n_clients--;
	if (c->follow)
		c->follow->free(c->follow);
	bufferevent_free(c->bev);
	free(c->line);
	free(c);
}

static void follow_in(struct stats_server *s, bool soon)
{
	struct timeval wait = {.tv_usec = (soon ? SOON_MS : FOLLOW_MS) * 1000};
	event_add(s->follow_event, &wait);
}

// It may say nothing for long.
static void begin_following(struct client *c)
{
	struct stats_server *s = c->server;
	struct timeval timeout = {.tv_sec = CLIENT_TIMEOUT_S};
	bufferevent_set_timeouts(c->bev, NULL, &timeout);
	if (c->follow->is_soon || !event_pending(s->follow_event, EV_TIMEOUT, NULL))
		follow_in(s, c->follow->is_soon);
}

static void client_run(struct client *);

static void set_timeouts(struct client *c)
{
	struct timeval timeout = {.tv_sec = CLIENT_TIMEOUT_S};
	bufferevent_set_timeouts(c->bev, &timeout, &timeout);
}

static void end_answer(struct client *c)
{
	evbuffer_add_printf(bufferevent_get_output(c->bev), c->is_prompted ? "\n> " : "\n");
}

// The answer is whole, and further commands are taken.
static void end_following(struct client *c)
{
	c->follow->free(c->follow);
	c->follow = NULL;
	end_answer(c);
	set_timeouts(c);
	client_run(c);
}

// Both directions are closed: who only said all it wants still reads.
static bool is_gone(const struct client *c)
{
	struct pollfd fd = {.fd = bufferevent_getfd(c->bev)};
	return poll(&fd, 1, 0) > 0 && fd.revents & (POLLHUP | POLLERR);
}

static void follow_again(struct stats_server *s)
{
	bool some = false, soon = false;
	for (const struct client *c = s->clients; c; c = c->next) {
		some |= c->follow != NULL;
		soon |= c->follow && c->follow->is_soon;
	}
	if (some)
		follow_in(s, soon);
}

static bool is_awaited(const struct client *c)
{
	return c->follow && c->follow->is_soon;
}

// Of those whom somebody waits for, one after the other: each may take all the time of a turn.
static const struct client *whose_turn(struct stats_server *s)
{
	uint32_t n = 0, at = 0;
	for (const struct client *c = s->clients; c; c = c->next)
		n += is_awaited(c);
	uint32_t turn = n ? s->n_turns++ % n : 0;
	for (const struct client *c = s->clients; c; c = c->next)
		if (is_awaited(c) && at++ == turn)
			return c;
	return NULL;
}

static void on_follow(evutil_socket_t fd, short what, void *arg)
{
	struct stats_server *s = arg;
	const struct client *awaited = whose_turn(s);
	for (struct client *c = s->clients, *next; c; c = next) {
		next = c->next;
		if (!c->follow || (is_awaited(c) && c != awaited))
			continue;
		if (is_gone(c)) {
			client_free(c);
			continue;
		}
		struct evbuffer *out = bufferevent_get_output(c->bev);
		if (evbuffer_get_length(out) < STATS_FOLLOW_UNREAD &&
			!c->follow->more(c->follow, out))
			end_following(c);
	}
	follow_again(s);
}

static void client_answer(struct client *c, const char *command)
{
	struct evbuffer *out = bufferevent_get_output(c->bev);
	struct stats_server *s = c->server;
	char *text = s->answer(s->ctx, &c->caller, command, &c->follow);
	evbuffer_add_printf(out, "%s", text ? text : STATS_ERROR "out of memory\n");
	free(text);
	if (c->follow)
		begin_following(c);
	else
		end_answer(c);
}

// What follows is no command.
static void stop_reading(struct client *c)
{
	struct evbuffer *in = bufferevent_get_input(c->bev);
	evbuffer_drain(in, evbuffer_get_length(in));
	bufferevent_disable(c->bev, EV_READ);
	c->eof = true;
}

// Ends the command at its `;`. Returns the command behind it; NULL = it is the line's last.
static char *cut_command(char *command)
{
	for (char *at = command; *at; at++) {
		if (*at == ';') {
			*at = 0;
			return at + 1;
		}
		if (*at == '\\' && at[1])
			at++;
	}
	return NULL;
}

static bool is_word(const char *command, const char *word)
{
	size_t blanks = strspn(command, " \t"), len = strlen(word);
	return strncmp(command + blanks, word, len) == 0 &&
	       command[blanks + len + strspn(command + blanks + len, " \t")] == 0;
}

// One of the line's commands.
static void run_chained(struct client *c)
{
	char *command = c->rest;
	c->rest = cut_command(command);
	bool quits = is_word(command, "quit");
	if (is_word(command, "prompt")) {
		c->is_prompted = !c->is_prompted;
		end_answer(c);
	} else if (!quits) {
		client_answer(c, command);
	}
	if (quits || (!c->rest && !c->is_prompted))
		stop_reading(c);
	if (quits || !c->rest) {
		free(c->line);
		c->line = c->rest = NULL;
	}
}

// A command, or the first of its line. Takes the line.
static void take_line(struct client *c, char *line)
{
	if (c->server->framing == STATS_HAPROXY) {
		c->line = c->rest = line;
		return;
	}
	if (line[0])
		client_answer(c, line);
	free(line);
}

// Runs the commands that are complete, as far as the client reads its answers.
static void client_run(struct client *c)
{
	struct evbuffer *in = bufferevent_get_input(c->bev);
	struct evbuffer *out = bufferevent_get_output(c->bev);
	while (!c->follow && evbuffer_get_length(out) < OUTPUT_HIGH_WATER) {
		if (c->rest) {
			run_chained(c);
			continue;
		}
		char *line = evbuffer_readln(in, NULL, EVBUFFER_EOL_CRLF);
		if (!line && evbuffer_get_length(in) < STATS_MAX_COMMAND)
			break;
		if (!line || strlen(line) > STATS_MAX_COMMAND) {
			free(line);
			evbuffer_add_printf(out, STATS_ERROR "command longer than %d bytes\n\n",
				STATS_MAX_COMMAND);
			stop_reading(c);
			break;
		}
		take_line(c, line);
	}
	if (c->eof && !c->follow && !c->rest && evbuffer_get_length(out) == 0)
		client_free(c);
}

static void on_read(struct bufferevent *bev, void *arg)
{
	client_run(arg);
}

static void on_written(struct bufferevent *bev, void *arg)
{
	client_run(arg);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	struct client *c = arg;
	if (what & BEV_EVENT_EOF) {
		c->eof = true;
		client_run(c);
	} else {
		client_free(c); // error or timeout
	}
}

static void pause_accepting(struct stats_server *s)
{
	struct timeval pause = {.tv_usec = ACCEPT_PAUSE_MS * 1000};
	if (event_add(s->accept_again, &pause) == 0)
		event_del(s->accept_event);
}

static void on_accept_again(evutil_socket_t fd, short what, void *arg)
{
	struct stats_server *s = arg;
	if (event_add(s->accept_event, NULL) != 0)
		pause_accepting(s);
}

static void on_accept(evutil_socket_t fd, short what, void *arg)
{
	struct stats_server *s = arg;
	int client_fd = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (client_fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
			pause_accepting(s); // the socket stays readable
		return;
	}
	struct client *c = s->n_clients < MAX_CLIENTS ? calloc(1, sizeof(*c)) : NULL;
	if (c)
		c->bev = bufferevent_socket_new(s->base, client_fd, BEV_OPT_CLOSE_ON_FREE);
	if (!c || !c->bev) {
		close(client_fd);
		free(c);
		return;
	}
	c->server = s;
	c->caller = stats_caller_of(client_fd, &s->groups);
	c->next = s->clients;
	s->clients = c;
	s->n_clients++;
	set_timeouts(c);
	bufferevent_setwatermark(c->bev, EV_READ, 0, (size_t)4 * STATS_MAX_COMMAND);
	bufferevent_setcb(c->bev, on_read, on_written, on_event, c);
	bufferevent_enable(c->bev, EV_READ | EV_WRITE);
}

// A socket file nobody listens on is left over from a process that died.
static int remove_stale(const struct sockaddr_un *addr, struct lb_err *reterr)
{
	struct stat st;
	if (lstat(addr->sun_path, &st) != 0)
		return 0; // nothing there; what else is wrong, bind says
	if (!S_ISSOCK(st.st_mode))
		return lb_err_set(reterr, "exists and is not a socket");
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return lb_err_set(reterr, "socket: %s", strerror(errno));
	int err = connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0 ? 0 : errno;
	close(fd);
	if (err == 0)
		return lb_err_set(reterr, "another process serves this socket");
	if (err == ECONNREFUSED && unlink(addr->sun_path) != 0)
		return lb_err_set(reterr, "removing the stale socket: %s", strerror(errno));
	return 0;
}

static void make_directory(const char *path)
{
	char dir[sizeof(((struct sockaddr_un *)0)->sun_path)];
	snprintf(dir, sizeof(dir), "%s", path);
	char *slash = strrchr(dir, '/');
	if (!slash || slash == dir)
		return;
	*slash = 0;
	mkdir(dir, 0755); // an error shows as bind's
}

static int listen_on(struct stats_server *s, unsigned mode, struct lb_err *reterr)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	if (strlen(s->path) >= sizeof(addr.sun_path))
		return lb_err_set(reterr, "path longer than %zu bytes", sizeof(addr.sun_path) - 1);
	memcpy(addr.sun_path, s->path, strlen(s->path) + 1);
	make_directory(s->path);
	if (remove_stale(&addr, reterr))
		return -EINVAL;
	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (s->fd < 0)
		return lb_err_set(reterr, "socket: %s", strerror(errno));
	// Bound closed, then opened: at no moment is it wider than asked for.
	mode_t old = umask(0777);
	int failed = bind(s->fd, (struct sockaddr *)&addr, sizeof(addr));
	int err = errno;
	umask(old);
	if (failed)
		return lb_err_set(reterr, "bind: %s", strerror(err));
	socket_file_note(&s->file, s->path);
	if (chmod(s->path, mode) != 0 || listen(s->fd, 16) != 0)
		return lb_err_set(reterr, "%s", strerror(errno));
	return 0;
}

struct stats_server *stats_server_new(const struct stats_server_conf *conf, struct lb_err *reterr)
{
	struct stats_server *s = calloc(1, sizeof(*s));
	if (!s) {
		lb_err_set(reterr, "out of memory");
		return NULL;
	}
	s->base = conf->base;
	s->fd = -1;
	s->framing = conf->framing;
	s->groups = conf->groups;
	s->answer = conf->answer;
	s->ctx = conf->ctx;
	snprintf(s->path, sizeof(s->path), "%s", conf->path);
	if (listen_on(s, conf->mode, reterr) == 0) {
		s->accept_event = event_new(s->base, s->fd, EV_READ | EV_PERSIST, on_accept, s);
		s->accept_again = event_new(s->base, -1, 0, on_accept_again, s);
		s->follow_event = event_new(s->base, -1, 0, on_follow, s);
		if (s->accept_event && s->accept_again && s->follow_event &&
			event_add(s->accept_event, NULL) == 0)
			return s;
		lb_err_set(reterr, "out of memory");
	}
	lb_err_within(reterr, "%s", conf->path);
	if (s->fd >= 0)
		close(s->fd);
	if (s->accept_event)
		event_free(s->accept_event);
	if (s->accept_again)
		event_free(s->accept_again);
	if (s->follow_event)
		event_free(s->follow_event);
	free(s);
	return NULL;
}

typedef int change_fn(const struct socket_file *, const char *path, const char *other);

static int change_path(
	struct stats_server *s, const char *path, change_fn *change, struct lb_err *reterr)
{
	if (strlen(path) >= sizeof(s->path))
		return lb_err_set(reterr, "%s: longer than %zu bytes", path, sizeof(s->path) - 1);
	int rc = change(&s->file, s->path, path);
	if (rc)
		return lb_err_set(reterr, "%s: %s", path, strerror(-rc));
	memcpy(s->path, path, strlen(path) + 1);
	return 0;
}

int stats_server_rename(struct stats_server *s, const char *path, struct lb_err *reterr)
{
	return change_path(s, path, socket_file_move, reterr);
}

int stats_server_share(struct stats_server *s, const char *path, struct lb_err *reterr)
{
	return change_path(s, path, socket_file_share, reterr);
}

void stats_server_leave(struct stats_server *s, const char *path)
{
	if (strcmp(path, s->path) != 0)
		socket_file_remove(&s->file, path);
}

void stats_server_free(struct stats_server *s)
{
	if (!s)
		return;
	while (s->clients)
		client_free(s->clients);
	event_free(s->accept_event);
	event_free(s->accept_again);
	event_free(s->follow_event);
	close(s->fd);
	socket_file_remove(&s->file, s->path);
	free(s);
}
