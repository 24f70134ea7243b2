// SPDX-License-Identifier: Apache-2.0
// The exception path: frames of a port that are the kernel's (net/foreign.h) go to it through an
// interface, and what it sends goes out by the port. Workers touch rings alone; one thread moves
// frames between those and the interfaces. What a peer can send is bounded for each worker by a
// rate and by its ring, what the kernel can by a burst a turn.
// Thread: exception_* on ctrl; exception_end_* on the worker whose end it is.
#pragma once

#include "dataplane/net/foreign.h"
#include "lb/base/counter.h"
#include "lb/base/err.h"

struct exception;
struct exception_end;

struct exception_port {
	const char *interface; // its name; NULL = no kernel behind this port. Copied
	const uint8_t *mac; // of the port
	uint16_t mtu;
	uint32_t rate; // frames a second that each worker gives at most; from 4
};

// Makes the interfaces, ports[i] being that of shunt.yaml's ports. NULL with reterr, which begins
// with the field.
struct exception *exception_new(const struct exception_port *ports, uint32_t n_ports,
	uint32_t n_workers, struct lb_err *reterr);
// Before workers run. 0 or -errno.
[[nodiscard]] int exception_start(struct exception *);
// Behind the last worker; ends the thread, and the interfaces go. NULL is fine.
void exception_free(struct exception *);
// Call now and then: the interface has the link and the address that its port has.
void exception_follow(struct exception *, uint32_t port, const uint8_t mac[6], bool is_up);

struct exception_end *exception_end(struct exception *, uint32_t worker); // borrowed
bool exception_end_has(const struct exception_end *, uint32_t port);
// A copy of the frame goes to the kernel, if it may. is_unmade: its sender left out the checksum.
void exception_end_give(struct exception_end *, uint32_t port, enum net_foreign,
	const uint8_t *frame, size_t len, bool is_unmade, uint64_t now_ns);
// Sends what came from the kernel. True = there was something.
bool exception_end_send(struct exception_end *, uint32_t port, struct net *);
// Call at the end of a turn: what was given may be taken.
void exception_end_flush(struct exception_end *);
// Readable in poll(2) when frames of the kernel wait for this worker; -1 = they never do.
int exception_end_wait_fd(const struct exception_end *);
struct counter_set exception_end_counters(const struct exception_end *, uint32_t port);
