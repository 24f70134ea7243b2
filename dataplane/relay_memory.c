// SPDX-License-Identifier: Apache-2.0
#include "dataplane/relay_memory.h"

#include "lb/base/check.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC 0x59414c45524e5548u
#define FORMAT 1u
#define N_SLOTS 512u // frames on the way of one worker of one port
#define HEAD_SIZE 4096u
#define FRAME_MORE 64u // what a frame has beyond its packet, and the slot's own
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

struct head {
	uint64_t magic;
	uint32_t format;
	struct relay_shape shape;
	uint32_t n_ports, n_older, n_newer;
	struct relay_port ports[NET_MAX_PORTS];
};
_Static_assert(sizeof(struct head) <= HEAD_SIZE, "before the rings");

static uint32_t slot_size_of(const struct relay_port *ports, uint32_t n_ports)
{
	uint32_t size = 2048;
	for (uint32_t i = 0; i < n_ports; i++)
		if (ports[i].mtu + FRAME_MORE > size)
			size = (ports[i].mtu + FRAME_MORE + 63u) / 64u * 64u;
	return size;
}

// 0 = it cannot be.
static size_t size_of(const struct head *h)
{
	size_t ring = relay_ring_size(&h->shape);
	bool ok = h->magic == MAGIC && h->format == FORMAT && ring && h->n_ports >= 1 &&
	          h->n_ports <= NET_MAX_PORTS && h->n_older >= 1 && h->n_older <= LB_MAX_WORKERS &&
	          h->n_newer >= 1 && h->n_newer <= LB_MAX_WORKERS;
	return ok ? HEAD_SIZE + (size_t)h->n_ports * (h->n_older + h->n_newer) * ring : 0;
}

// Both ends look at their own copy from then on.
static int take(struct relay_memory *m, const struct head *h)
{
	m->shape = h->shape;
	m->n_ports = h->n_ports;
	m->n_older = h->n_older;
	m->n_newer = h->n_newer;
	memcpy(m->ports, h->ports, sizeof(m->ports));
	for (uint32_t i = 0; i < m->n_ports; i++)
		if (!memchr(m->ports[i].name, 0, RELAY_MAX_NAME))
			return -EINVAL;
	return 0;
}

static int map(struct relay_memory *m, int fd)
{
	m->map = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (m->map != MAP_FAILED)
		return 0;
	m->map = NULL;
	return -errno;
}

int relay_memory_make(struct relay_memory *m, const struct relay_port *ports, uint32_t n_ports,
	uint32_t n_older, uint32_t n_newer, struct lb_err *reterr)
{
	struct head h = {.magic = MAGIC,
		.format = FORMAT,
		.shape = {N_SLOTS, slot_size_of(ports, n_ports)},
		.n_ports = n_ports,
		.n_older = n_older,
		.n_newer = n_newer};
	DCHECK(n_ports <= NET_MAX_PORTS);
	memcpy(h.ports, ports, n_ports * sizeof(ports[0]));
	*m = (struct relay_memory){.size = size_of(&h), .fd = -1};
	if (!m->size || take(m, &h) != 0)
		return lb_err_set(
			reterr, "a relay for %u and %u workers cannot be", n_older, n_newer);
	m->fd = memfd_create("shunt-relay", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	// Without the seals the other process could take the memory away from under us.
	if (m->fd < 0 || ftruncate(m->fd, (off_t)m->size) != 0 ||
		fcntl(m->fd, F_ADD_SEALS, SEALS) != 0 || map(m, m->fd) != 0) {
		lb_err_set(reterr, "no memory for a relay: %s", strerror(errno));
		relay_memory_fini(m);
		return -EINVAL;
	}
	memcpy(m->map, &h, sizeof(h));
	return 0;
}

int relay_memory_map(struct relay_memory *m, int fd, struct lb_err *reterr)
{
	struct stat st;
	struct head h;
	*m = (struct relay_memory){.fd = -1};
	int seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st) != 0 ||
		pread(fd, &h, sizeof(h), 0) != (ssize_t)sizeof(h))
		return lb_err_set(reterr, "what the older process gave is no relay");
	m->size = size_of(&h);
	if (!m->size || (size_t)st.st_size < m->size || take(m, &h) != 0)
		return lb_err_set(reterr, "the older process's relay is of another format");
	int rc = map(m, fd);
	return rc ? lb_err_set(reterr, "the relay cannot be mapped: %s", strerror(-rc)) : 0;
}

void relay_memory_fini(struct relay_memory *m)
{
	if (m->map)
		munmap(m->map, m->size);
	if (m->fd >= 0)
		close(m->fd);
	*m = (struct relay_memory){.fd = -1};
}

uint8_t *relay_memory_ring(
	const struct relay_memory *m, bool to_newer, uint32_t port, uint32_t worker)
{
	uint32_t n = to_newer ? m->n_older : m->n_newer;
	DCHECK(port < m->n_ports && worker < n);
	size_t i = (size_t)port * n + worker;
	if (!to_newer)
		i += (size_t)m->n_ports * m->n_older;
	return m->map + HEAD_SIZE + i * relay_ring_size(&m->shape);
}
