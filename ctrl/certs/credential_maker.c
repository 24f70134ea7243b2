// SPDX-License-Identifier: Apache-2.0
#include "ctrl/certs/credential_maker.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct queue {
	struct credential_job *first, *last;
};

struct credential_maker {
	pthread_t thread;
	bool runs;
	int done_fd; // w: thread, r: owner
	pthread_mutex_t lock; // of what follows
	pthread_cond_t news;
	bool stop;
	struct queue to_do[2], done; // to_do: of servers, of clients
};

static void put(struct queue *q, struct credential_job *j)
{
	j->next = NULL;
	*(q->first ? &q->last->next : &q->first) = j;
	q->last = j;
}

static struct credential_job *take(struct queue *q)
{
	struct credential_job *j = q->first;
	if (j)
		q->first = j->next;
	return j;
}

// Servers' first: a frontend's clients are there, a cluster's endpoints wait for its requests.
static struct credential_job *next_job(struct credential_maker *m)
{
	struct credential_job *j = take(&m->to_do[0]);
	return j ? j : take(&m->to_do[1]);
}

static void *maker_main(void *arg)
{
	struct credential_maker *m = arg;
	pthread_mutex_lock(&m->lock);
	while (!m->stop) {
		struct credential_job *j = next_job(m);
		if (!j) {
			pthread_cond_wait(&m->news, &m->lock);
			continue;
		}
		pthread_mutex_unlock(&m->lock);
		j->rc = credential_make(j->want, &j->parts, &j->context, &j->err);
		pthread_mutex_lock(&m->lock);
		put(&m->done, j);
		uint64_t one = 1;
		(void)!write(m->done_fd, &one, sizeof(one)); // a full counter is readable anyway
	}
	pthread_mutex_unlock(&m->lock);
	return NULL;
}

struct credential_maker *credential_maker_new(void)
{
	struct credential_maker *m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	pthread_mutex_init(&m->lock, NULL);
	pthread_cond_init(&m->news, NULL);
	m->done_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	m->runs = m->done_fd >= 0 && pthread_create(&m->thread, NULL, maker_main, m) == 0;
	if (m->runs)
		return m;
	credential_maker_free(m);
	return NULL;
}

void credential_maker_stop(struct credential_maker *m)
{
	if (!m->runs)
		return;
	pthread_mutex_lock(&m->lock);
	m->stop = true;
	pthread_cond_signal(&m->news);
	pthread_mutex_unlock(&m->lock);
	pthread_join(m->thread, NULL);
	m->runs = false;
	for (struct credential_job *j; (j = next_job(m));) {
		j->rc = -ECANCELED;
		put(&m->done, j);
	}
}

void credential_maker_free(struct credential_maker *m)
{
	if (!m)
		return;
	credential_maker_stop(m);
	if (m->done_fd >= 0)
		close(m->done_fd);
	pthread_cond_destroy(&m->news);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

int credential_maker_fd(const struct credential_maker *m)
{
	return m->done_fd;
}

void credential_maker_give(struct credential_maker *m, struct credential_job *j)
{
	j->rc = 0;
	j->context = NULL;
	j->err.text[0] = '\0';
	pthread_mutex_lock(&m->lock);
	put(&m->to_do[j->want->role == TLSHS_CLIENT], j);
	pthread_cond_signal(&m->news);
	pthread_mutex_unlock(&m->lock);
}

struct credential_job *credential_maker_take(struct credential_maker *m)
{
	uint64_t n;
	(void)!read(m->done_fd, &n, sizeof(n));
	pthread_mutex_lock(&m->lock);
	struct credential_job *j = take(&m->done);
	pthread_mutex_unlock(&m->lock);
	return j;
}
