// SPDX-License-Identifier: Apache-2.0
#include "dataplane/ring_marks.h"

#include "lb/base/check.h"

#include <errno.h>
#include <linux/if_packet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t option(const char *devargs, const char *name, size_t without)
{
	const char *at = strstr(devargs, name);
	return at ? strtoul(at + strlen(name), NULL, 10) : without;
}

int ring_marks_open(struct ring_marks *r, int fd, const char *devargs)
{
	// As the driver fills in what is not said.
	size_t frame = option(devargs, "framesz=", 2048), n = option(devargs, "framecnt=", 512);
	size_t block = option(devargs, "blocksz=", (size_t)getpagesize());
	if (frame < sizeof(struct tpacket2_hdr) || n == 0 || block % frame != 0 ||
		n > UINT32_MAX / frame || n % (block / frame) != 0)
		return -EINVAL;
	size_t len = 2 * n * frame; // received ones, then those to send; nothing less is mapped
	void *map = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	*r = (struct ring_marks){
		.map = map, .len = len, .frame_size = (uint32_t)frame, .n_frames = (uint32_t)n};
	return 0;
}

void ring_marks_close(struct ring_marks *r)
{
	if (r->map)
		munmap((void *)(uintptr_t)r->map, r->len);
	*r = (struct ring_marks){0};
}

struct ring_look ring_marks_look(const struct ring_marks *r, uint32_t max)
{
	struct ring_look ret = {0};
	DCHECK(max <= RING_MARKS_MAX);
	for (uint32_t at = r->at; ret.n < max && ret.n < r->n_frames; ret.n++) {
		const struct tpacket2_hdr *h = (const void *)(r->map + (size_t)at * r->frame_size);
		uint32_t status = __atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE); // the kernel's
		if (!(status & TP_STATUS_USER))
			break;
		ret.unmade |= (uint32_t) !!(status & TP_STATUS_CSUMNOTREADY) << ret.n;
		ret.cut |= (uint32_t)(h->tp_snaplen < h->tp_len) << ret.n;
		at = at + 1 == r->n_frames ? 0 : at + 1;
	}
	return ret;
}

void ring_marks_pass(struct ring_marks *r, uint32_t n)
{
	r->at = (r->at + n) % r->n_frames;
}
