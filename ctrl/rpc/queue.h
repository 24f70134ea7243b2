// SPDX-License-Identifier: Apache-2.0
// A completion queue of libgrpc. One thread blocks in it and hands what is complete to the owner's
// thread, through a list and an eventfd: operations are started and their results used on the
// owner's thread alone, so that calls need no lock.
// Thread: the owner's.
#pragma once

#include <grpc/grpc.h>

#include <pthread.h>
#include <stdbool.h>

// An operation under way; its address is libgrpc's tag. It is under way at most once at a time, so
// it is its own link in the list.
struct rpc_tag {
	struct rpc_tag *next; // the queue's
	bool success; // of the operation that is complete
};

struct rpc_queue {
	grpc_completion_queue *queue;
	int fd; // eventfd: readable when there is something to take
	pthread_t thread;
	pthread_mutex_t lock;
	struct rpc_tag *first; // w: queue thread, r: owner (lock)
	struct rpc_tag *last; // likewise
};

// Initializes libgrpc, too. 0 or -errno; then there is nothing to end.
[[nodiscard]] int rpc_queue_init(struct rpc_queue *);
// What is complete, the oldest first; each is the owner's again once its next is read. NULL = none.
struct rpc_tag *rpc_queue_take(struct rpc_queue *);
// Returns when every operation under way has ended; what is complete can still be taken.
void rpc_queue_stop(struct rpc_queue *);
void rpc_queue_fini(struct rpc_queue *); // it has stopped
