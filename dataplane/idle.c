// SPDX-License-Identifier: Apache-2.0
#include "dataplane/idle.h"

#include "dataplane/handover.h"
#include "dataplane/port.h"
#include "lb/base/twheel.h"
#include "lb/slot.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SPIN_MIN_NS 2000
#define SPIN_MAX_NS 50000
#define WAKE_NS 4000000 // sleep with descriptors: commands and snapshots wait that long at most
#define SLEEP_MIN_NS 20000 // sleep without: a frame waits that long
#define SLEEP_MAX_NS 200000

void idle_init(struct idle *idle, struct port_queue *const *queues, uint32_t n_queues,
	struct handover_end *peers, int wake_fd)
{
	*idle = (struct idle){
		.queues = queues,
		.n_queues = n_queues,
		.peers = peers,
		.wake_fd = wake_fd,
		.spin_ns = SPIN_MAX_NS,
		.sleep_ns = SLEEP_MIN_NS,
	};
	prctl(PR_SET_TIMERSLACK, 1000ul);
}

// Descriptors change with the device behind a port.
static void gather(struct idle *idle)
{
	idle->n_fds = 0;
	idle->all_wake = true;
	for (uint32_t i = 0; i < idle->n_queues; i++) {
		int fd = port_queue_wait_fd(idle->queues[i]);
		if (fd >= 0)
			idle->fds[idle->n_fds++] = (struct pollfd){.fd = fd, .events = POLLIN};
		else
			idle->all_wake = false;
	}
	int fd = handover_wait_fd(idle->peers);
	if (fd >= 0)
		idle->fds[idle->n_fds++] = (struct pollfd){.fd = fd, .events = POLLIN};
	if (idle->wake_fd >= 0)
		idle->fds[idle->n_fds++] = (struct pollfd){.fd = idle->wake_fd, .events = POLLIN};
}

// A wake-up by traffic soon after falling asleep was not worth the sleep; one after a long time
// means that spinning is wasted.
static void adapt(struct idle *idle, uint64_t now_ns)
{
	if (idle->asleep_ns == 0)
		return;
	if (now_ns - idle->asleep_ns < SPIN_MAX_NS)
		idle->spin_ns = idle->spin_ns * 2 < SPIN_MAX_NS ? idle->spin_ns * 2 : SPIN_MAX_NS;
	else
		idle->spin_ns = idle->spin_ns / 2 > SPIN_MIN_NS ? idle->spin_ns / 2 : SPIN_MIN_NS;
	idle->asleep_ns = 0;
	idle->sleep_ns = SLEEP_MIN_NS;
}

// An interface that went down or away makes poll(2) return at once, for ever: take the error off
// the socket, and sleep all the same.
static void rest_from_errors(struct idle *idle)
{
	bool any = false;
	for (uint32_t i = 0; i < idle->n_fds; i++)
		if (idle->fds[i].revents & ~POLLIN) {
			int error;
			socklen_t len = sizeof(error);
			getsockopt(idle->fds[i].fd, SOL_SOCKET, SO_ERROR, &error, &len);
			any = true;
		}
	if (any)
		nanosleep(&(struct timespec){.tv_nsec = SLEEP_MAX_NS}, NULL);
}

static uint64_t longest_sleep(const struct idle *idle)
{
	if (!idle->all_wake)
		return idle->sleep_ns;
	// A device that takes nothing (link down) must not keep us awake, nor wait long.
	for (uint32_t i = 0; i < idle->n_queues; i++)
		if (port_queue_unsent(idle->queues[i]) > 0)
			return SLEEP_MAX_NS;
	return WAKE_NS;
}

void idle_step(
	struct idle *idle, bool busy, bool is_polling, uint64_t now_ns, const struct twheel *wheel)
{
	if (busy) {
		adapt(idle, now_ns);
		idle->since_ns = 0;
		return;
	}
	if (idle->since_ns == 0)
		idle->since_ns = now_ns;
	if (now_ns - idle->since_ns < idle->spin_ns)
		return;
	gather(idle);
	uint64_t ns = is_polling ? SLEEP_MIN_NS : longest_sleep(idle);
	uint64_t next_ns = twheel_next_ns(wheel);
	if (next_ns <= now_ns)
		return;
	if (ns > next_ns - now_ns)
		ns = next_ns - now_ns;
	if (!handover_sleep(idle->peers))
		return;
	lb_slot_offline();
	int n = ppoll(idle->fds, idle->n_fds, &(struct timespec){.tv_nsec = (long)ns}, NULL);
	if (n > 0)
		rest_from_errors(idle);
	uint64_t rung;
	if (n > 0 && idle->wake_fd >= 0)
		(void)!read(idle->wake_fd, &rung, sizeof(rung));
	lb_slot_online();
	handover_awake(idle->peers);
	if (idle->asleep_ns == 0)
		idle->asleep_ns = now_ns;
	idle->sleep_ns = idle->sleep_ns * 2 < SLEEP_MAX_NS ? idle->sleep_ns * 2 : SLEEP_MAX_NS;
}
