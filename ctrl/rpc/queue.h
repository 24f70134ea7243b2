// SPDX-License-Identifier: Apache-2.0
// A completion queue of libgrpc. A thread blocks in it and passes completed operations to the
// owner's thread, through a list and an eventfd: only the owner's thread starts operations and uses
// their results, so calls need no lock.
// Thread: the owner's.
#pragma once

#include <grpc/grpc.h>

#include <pthread.h>
#include <stdbool.h>

// An operation under way; libgrpc's tag is its address. It is under way at most once at a time, so
// it contains its own list link.
struct rpc_tag {
	struct rpc_tag *next; // private to the queue
	bool success; // result of the completed operation
};

struct rpc_queue {
	grpc_completion_queue *queue;
	int fd; // eventfd: readable if an operation has completed
	pthread_t thread;
	pthread_mutex_t lock;
	struct rpc_tag *first; // w: queue thread, r: owner (lock)
	struct rpc_tag *last; // likewise
};

// Also initializes libgrpc. Returns 0 or -errno with nothing to undo.
[[nodiscard]] int rpc_queue_init(struct rpc_queue *);
// Takes the completed operations, oldest first; each may be reused once its next pointer is read.
// NULL = none.
struct rpc_tag *rpc_queue_take(struct rpc_queue *);
// True: all operations under way have ended; completed ones can still be taken. False: one has not
// within two seconds, since libgrpc ends none whose message it is writing, and a peer that does not
// read has that last until TCP gives up. Then all that has to do with the queue is to be left as it
// is, and nothing called: it goes with the process.
[[nodiscard]] bool rpc_queue_stop(struct rpc_queue *);
void rpc_queue_fini(struct rpc_queue *); // call after a stop that was true
