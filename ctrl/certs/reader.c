// SPDX-License-Identifier: Apache-2.0
#include "ctrl/certs/reader.h"

#include "ctrl/certs/material.h"
#include "ctrl/certs/watch.h"
#include "ctrl/xds/bootstrap/cert_files.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define QUIET_MS 50 // of silence before a change is looked at: key and certificate come apart
#define MAX_QUIETS 10 // a burst that does not end is looked at after so many

struct cert_reader {
	const struct cert_source *sources;
	uint32_t n; // the thread's, after the start: those it knows of
	pthread_t thread;
	bool started;
	struct cert_watch watch; // the thread's, after the start
	bool *changed; // likewise
	bool *unwatched; // likewise: sources of which a change may be missed
	int wake_fd; // w: owner, r: thread
	int done_fd; // w: thread, r: owner
	pthread_mutex_t lock; // of what follows
	bool stop;
	uint32_t n_there;
	bool *asked;
	struct cert_reading *first, *last;
	atomic_bool blind; // w: thread, r: owner; a hint
};

static void signal_fd(int fd)
{
	uint64_t one = 1;
	(void)!write(fd, &one, sizeof(one)); // a full counter is readable anyway
}

static void clear_fd(int fd)
{
	uint64_t n;
	(void)!read(fd, &n, sizeof(n));
}

// What could not be watched may be so the next time: others have given up watches of theirs.
static void watch_source(struct cert_reader *r, uint32_t i)
{
	const struct cert_source *s = &r->sources[i];
	const struct xds_cert_files none = {NULL}, *f = s->files ? s->files : &none;
	const char *const paths[] = {
		s->crl_directory, s->ticket_secret, f->cert, f->key, f->ca, f->spiffe};
	cert_watch_forget(&r->watch, i);
	r->unwatched[i] = false;
	for (size_t k = 0; k < sizeof(paths) / sizeof(paths[0]); k++)
		if (paths[k] && !cert_watch_add(&r->watch, i, paths[k]))
			r->unwatched[i] = true;
	bool blind = false;
	for (uint32_t k = 0; k < r->n; k++)
		blind = blind || r->unwatched[k];
	atomic_store_explicit(&r->blind, blind, memory_order_relaxed);
}

static void read_source(struct cert_reader *r, uint32_t i)
{
	struct cert_reading *found = calloc(1, sizeof(*found));
	if (!found)
		return; // the next interval finds it
	watch_source(r, i);
	found->source = i;
	if (cert_material_load(&r->sources[i], &found->material, &found->err) == -ENOMEM)
		lb_err_set(&found->err, "out of memory");
	pthread_mutex_lock(&r->lock);
	*(r->first ? &r->last->next : &r->first) = found;
	r->last = found;
	pthread_mutex_unlock(&r->lock);
	signal_fd(r->done_fd);
}

// Moves what was asked for to `changed`. False = stop.
static bool take_orders(struct cert_reader *r, bool *some)
{
	clear_fd(r->wake_fd);
	pthread_mutex_lock(&r->lock);
	r->n = r->n_there;
	for (uint32_t i = 0; i < r->n; i++) {
		*some = *some || r->asked[i];
		r->changed[i] = r->changed[i] || r->asked[i];
		r->asked[i] = false;
	}
	bool go_on = !r->stop;
	pthread_mutex_unlock(&r->lock);
	return go_on;
}

static void read_changed(struct cert_reader *r)
{
	for (uint32_t i = 0; i < r->n; i++) {
		if (r->changed[i])
			read_source(r, i);
		r->changed[i] = false;
	}
}

static void *reader_main(void *arg)
{
	struct cert_reader *r = arg;
	struct pollfd fds[] = {
		{.fd = r->wake_fd, .events = POLLIN}, {.fd = r->watch.fd, .events = POLLIN}};
	unsigned n_quiets = 0; // 0 = no burst
	for (;;) {
		int n = poll(fds, 2, n_quiets ? QUIET_MS : -1);
		bool asked = false;
		if (n > 0 && fds[0].revents && !take_orders(r, &asked))
			return NULL;
		bool some =
			n > 0 && fds[1].revents && cert_watch_drain(&r->watch, r->changed, r->n);
		if (some || n_quiets) // others' files that change count, too
			n_quiets++;
		if (asked || (n_quiets && n == 0) || n_quiets > MAX_QUIETS) {
			n_quiets = 0;
			read_changed(r);
		}
	}
}

struct cert_reader *cert_reader_new(const struct cert_source *sources, uint32_t n, uint32_t max)
{
	struct cert_reader *r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->sources = sources;
	r->n = r->n_there = n;
	r->changed = calloc(max + 1, sizeof(bool));
	r->asked = calloc(max + 1, sizeof(bool));
	r->unwatched = calloc(max + 1, sizeof(bool));
	r->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	r->done_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	r->blind = cert_watch_init(&r->watch) != 0; // poll() passes over a negative fd
	pthread_mutex_init(&r->lock, NULL);
	for (uint32_t i = 0; i < n && r->unwatched; i++)
		watch_source(r, i);
	r->started = r->changed && r->asked && r->unwatched && r->wake_fd >= 0 && r->done_fd >= 0 &&
	             pthread_create(&r->thread, NULL, reader_main, r) == 0;
	if (r->started)
		return r;
	cert_reader_free(r);
	return NULL;
}

static void free_readings(struct cert_reading *f)
{
	for (struct cert_reading *next; f; f = next) {
		next = f->next;
		cert_material_put(f->material);
		free(f);
	}
}

void cert_reader_free(struct cert_reader *r)
{
	if (!r)
		return;
	if (r->started) {
		pthread_mutex_lock(&r->lock);
		r->stop = true;
		pthread_mutex_unlock(&r->lock);
		signal_fd(r->wake_fd);
		pthread_join(r->thread, NULL);
	}
	free_readings(r->first);
	cert_watch_fini(&r->watch);
	pthread_mutex_destroy(&r->lock);
	if (r->wake_fd >= 0)
		close(r->wake_fd);
	if (r->done_fd >= 0)
		close(r->done_fd);
	free(r->changed);
	free(r->asked);
	free(r->unwatched);
	free(r);
}

void cert_reader_ask(struct cert_reader *r, uint32_t source)
{
	pthread_mutex_lock(&r->lock);
	r->asked[source] = true;
	pthread_mutex_unlock(&r->lock);
	signal_fd(r->wake_fd);
}

void cert_reader_add(struct cert_reader *r)
{
	pthread_mutex_lock(&r->lock);
	r->asked[r->n_there++] = true;
	pthread_mutex_unlock(&r->lock);
	signal_fd(r->wake_fd);
}

int cert_reader_fd(const struct cert_reader *r)
{
	return r->done_fd;
}

struct cert_reading *cert_reader_take(struct cert_reader *r)
{
	clear_fd(r->done_fd);
	pthread_mutex_lock(&r->lock);
	struct cert_reading *all = r->first;
	r->first = r->last = NULL;
	pthread_mutex_unlock(&r->lock);
	return all;
}

bool cert_reader_watches(const struct cert_reader *r)
{
	return !atomic_load_explicit(&r->blind, memory_order_relaxed);
}
