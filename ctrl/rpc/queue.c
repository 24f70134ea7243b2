// SPDX-License-Identifier: Apache-2.0
#include "ctrl/rpc/queue.h"

#include <grpc/support/time.h>

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define END_S 2 // for operations that were cancelled

static void *queue_main(void *arg)
{
	struct rpc_queue *q = arg;
	for (;;) {
		grpc_event e = grpc_completion_queue_next(
			q->queue, gpr_inf_future(GPR_CLOCK_REALTIME), NULL);
		if (e.type == GRPC_QUEUE_SHUTDOWN)
			return NULL;
		struct rpc_tag *t = e.tag;
		t->success = e.success;
		t->next = NULL;
		pthread_mutex_lock(&q->lock);
		*(q->first ? &q->last->next : &q->first) = t;
		q->last = t;
		pthread_mutex_unlock(&q->lock);
		uint64_t one = 1;
		// Fails only when the counter is full, and then the fd is readable anyway.
		(void)!write(q->fd, &one, sizeof(one));
	}
}

int rpc_queue_init(struct rpc_queue *q)
{
	*q = (struct rpc_queue){.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
	if (q->fd < 0)
		return -errno;
	grpc_init();
	q->queue = grpc_completion_queue_create_for_next(NULL);
	pthread_mutex_init(&q->lock, NULL);
	int r = pthread_create(&q->thread, NULL, queue_main, q);
	if (r == 0)
		return 0;
	grpc_completion_queue_shutdown(q->queue);
	while (grpc_completion_queue_next(q->queue, gpr_inf_future(GPR_CLOCK_REALTIME), NULL)
			.type != GRPC_QUEUE_SHUTDOWN)
		;
	rpc_queue_fini(q);
	return -r;
}

struct rpc_tag *rpc_queue_take(struct rpc_queue *q)
{
	uint64_t n;
	(void)!read(q->fd, &n, sizeof(n)); // nothing there is fine: the list tells
	pthread_mutex_lock(&q->lock);
	struct rpc_tag *t = q->first;
	q->first = q->last = NULL;
	pthread_mutex_unlock(&q->lock);
	return t;
}

bool rpc_queue_stop(struct rpc_queue *q)
{
	struct timespec until;
	grpc_completion_queue_shutdown(q->queue);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += END_S;
	bool is_over = pthread_timedjoin_np(q->thread, NULL, &until) == 0;
	if (!is_over)
		pthread_detach(q->thread);
	return is_over;
}

void rpc_queue_fini(struct rpc_queue *q)
{
	grpc_completion_queue_destroy(q->queue);
	grpc_shutdown_blocking();
	pthread_mutex_destroy(&q->lock);
	close(q->fd);
}
