// SPDX-License-Identifier: Apache-2.0
#include "ctrl/stats/stats_server.h"

#include "ctrl/base/socket_counts.h"
#include "ctrl/base/socket_file.h"
#include "ctrl/base/stats_proto.h"
#include "ctrl/stats/places.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

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
	uint64_t since; // of the server's n_steps: when it came, or its last command did
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
	struct socket_counts *counts; // borrowed
	uint64_t n_steps; // clients that came, and commands
	uint32_t n_turns; // of clients that wait
};

static void client_free(struct client *c)
{
	struct client **at = &c->server->clients;
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	c->server->counts->n_open--;
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
	c->since = ++s->n_steps;
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

// An unfinished one may be the beginning of what would do something else.
static void refuse_line(struct client *c, size_t len)
{
	struct evbuffer *out = bufferevent_get_output(c->bev);
	if (len > STATS_MAX_COMMAND)
		evbuffer_add_printf(
			out, STATS_ERROR "command longer than %d bytes\n\n", STATS_MAX_COMMAND);
	else
		evbuffer_add_printf(out, STATS_ERROR "the command's line has no end\n\n");
	stop_reading(c);
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
		size_t len = line ? strlen(line) : evbuffer_get_length(in);
		bool is_whole = line && len <= STATS_MAX_COMMAND;
		bool may_be = !line && len <= STATS_MAX_COMMAND + 1 && !c->eof; // with its CR
		if (is_whole) {
			take_line(c, line);
			continue;
		}
		free(line);
		if (len && !may_be)
			refuse_line(c, len);
		break;
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

// Nothing that it asked for is cut short with it.
static bool waits(const struct client *c)
{
	return c->follow ? !c->follow->is_soon
	                 : !c->rest && evbuffer_get_length(bufferevent_get_output(c->bev)) == 0;
}

// Says why, if what it was told so far has left.
static void client_cut(struct client *c)
{
	static const char why[] = STATS_ERROR STATS_CUT "\n";
	if (evbuffer_get_length(bufferevent_get_output(c->bev)) == 0)
		send(bufferevent_getfd(c->bev), why, sizeof(why) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	c->server->counts->n_cut++;
	client_free(c);
}

static void make_room(struct stats_server *s, const struct stats_caller *newcomer)
{
	struct stats_place taken[STATS_PLACES];
	struct client *of[STATS_PLACES];
	unsigned n = 0;
	for (struct client *c = s->clients; c; c = c->next) {
		taken[n] = (struct stats_place){c->caller.level, c->caller.uid, waits(c), c->since};
		of[n++] = c;
	}
	int victim = stats_places_victim(taken, n, newcomer);
	if (victim >= 0)
		client_cut(of[victim]);
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
	struct client *c = calloc(1, sizeof(*c));
	if (c)
		c->bev = bufferevent_socket_new(s->base, client_fd, BEV_OPT_CLOSE_ON_FREE);
	if (!c || !c->bev) {
		close(client_fd);
		free(c);
		return;
	}
	c->server = s;
	c->caller = stats_caller_of(client_fd, &s->groups);
	make_room(s, &c->caller);
	c->since = ++s->n_steps;
	c->next = s->clients;
	s->clients = c;
	s->counts->n_open++;
	set_timeouts(c);
	bufferevent_setwatermark(c->bev, EV_READ, 0, (size_t)4 * STATS_MAX_COMMAND);
	bufferevent_setcb(c->bev, on_read, on_written, on_event, c);
	bufferevent_enable(c->bev, EV_READ | EV_WRITE);
}

struct stats_server *stats_server_new(const struct stats_server_conf *conf, struct lb_err *reterr)
{
	struct stats_server *s = calloc(1, sizeof(*s));
	if (!s) {
		lb_err_set(reterr, "out of memory");
		return NULL;
	}
	s->base = conf->base;
	s->framing = conf->framing;
	s->groups = conf->groups;
	s->answer = conf->answer;
	s->ctx = conf->ctx;
	s->counts = conf->counts;
	snprintf(s->path, sizeof(s->path), "%s", conf->path);
	s->fd = socket_file_listen(&s->file, conf->path, conf->mode, reterr);
	if (s->fd >= 0) {
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
