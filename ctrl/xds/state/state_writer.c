// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/state/state_writer.h"

#include "ctrl/xds/state/state_dir.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct xds_state_writer {
	char *directory;
	pthread_t thread;
	bool runs;
	bool has_job; // the owner's: given, and not taken back
	int done_fd; // w: thread, r: owner
	pthread_mutex_t lock; // of what follows
	pthread_cond_t news;
	bool stop;
	struct xds_state_job *to_do, *done;
};

static bool needs_before(const struct xds_state_image *image)
{
	for (size_t i = 0; i < image->n_parts; i++)
		if (!image->parts[i].type_url)
			return true;
	return false;
}

// Of another node nothing is taken over, nor of a file that cannot be read: who started without it
// has said so.
static void load_before(
	const char *directory, const struct xds_state_image *image, struct xds_state *ret)
{
	struct lb_err err;
	*ret = (struct xds_state){.n_sections = 0};
	if (!needs_before(image) || xds_state_load(directory, ret, &err))
		return;
	if (!str_eq(ret->node_id, str_from(image->node_id)))
		xds_state_fini(ret);
}

static void run(const char *directory, struct xds_state_job *j)
{
	struct xds_state before;
	uint8_t *bytes = NULL;
	j->err.text[0] = '\0';
	load_before(directory, &j->image, &before);
	j->rc = xds_state_encode(&j->image, &before, &bytes, &j->len);
	xds_state_fini(&before);
	if (j->rc == -EFBIG)
		lb_err_set(&j->err, "%s/%s: would have %zu bytes, and %zu MiB are the limit",
			directory, XDS_STATE_NAME, j->len, XDS_STATE_MAX_LEN >> 20);
	else if (j->rc)
		lb_err_set(&j->err, "%s/%s: out of memory", directory, XDS_STATE_NAME);
	else
		j->rc = xds_state_save(directory, bytes, j->len, &j->err);
	free(bytes);
}

static void *writer_main(void *arg)
{
	struct xds_state_writer *w = arg;
	pthread_mutex_lock(&w->lock);
	while (!w->stop) {
		struct xds_state_job *j = w->to_do;
		if (!j) {
			pthread_cond_wait(&w->news, &w->lock);
			continue;
		}
		w->to_do = NULL;
		pthread_mutex_unlock(&w->lock);
		run(w->directory, j);
		pthread_mutex_lock(&w->lock);
		w->done = j;
		uint64_t one = 1;
		(void)!write(w->done_fd, &one, sizeof(one)); // a full counter is readable anyway
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

// Signals are the owner's.
static bool start_thread(struct xds_state_writer *w)
{
	sigset_t all;
	pthread_attr_t attr;
	sigfillset(&all);
	if (pthread_attr_init(&attr) != 0)
		return false;
	bool ok = pthread_attr_setsigmask_np(&attr, &all) == 0 &&
	          pthread_create(&w->thread, &attr, writer_main, w) == 0;
	pthread_attr_destroy(&attr);
	return ok;
}

struct xds_state_writer *xds_state_writer_new(const char *directory)
{
	struct xds_state_writer *w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->news, NULL);
	w->done_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	w->directory = strdup(directory);
	w->runs = w->directory && w->done_fd >= 0 && start_thread(w);
	if (w->runs)
		return w;
	(void)xds_state_writer_free(w);
	return NULL;
}

void xds_state_writer_give(struct xds_state_writer *w, struct xds_state_job *j)
{
	w->has_job = true;
	pthread_mutex_lock(&w->lock);
	w->to_do = j;
	pthread_cond_signal(&w->news);
	pthread_mutex_unlock(&w->lock);
}

struct xds_state_job *xds_state_writer_take(struct xds_state_writer *w)
{
	uint64_t n;
	(void)!read(w->done_fd, &n, sizeof(n));
	pthread_mutex_lock(&w->lock);
	struct xds_state_job *j = w->done;
	w->done = NULL;
	pthread_mutex_unlock(&w->lock);
	w->has_job = w->has_job && !j;
	return j;
}

struct xds_state_job *xds_state_writer_wait(struct xds_state_writer *w, int max_ms)
{
	struct pollfd done = {.fd = w->done_fd, .events = POLLIN};
	if (!w->has_job)
		return NULL;
	(void)poll(&done, 1, max_ms);
	return xds_state_writer_take(w);
}

bool xds_state_writer_free(struct xds_state_writer *w)
{
	if (!w)
		return true;
	if (w->runs && w->has_job && !xds_state_writer_take(w)) {
		pthread_detach(w->thread);
		return false;
	}
	if (w->runs) {
		pthread_mutex_lock(&w->lock);
		w->stop = true;
		pthread_cond_signal(&w->news);
		pthread_mutex_unlock(&w->lock);
		pthread_join(w->thread, NULL);
	}
	if (w->done_fd >= 0)
		close(w->done_fd);
	pthread_cond_destroy(&w->news);
	pthread_mutex_destroy(&w->lock);
	free(w->directory);
	free(w);
	return true;
}
