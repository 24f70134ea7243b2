// SPDX-License-Identifier: Apache-2.0
#include "dataplane/h2/hpack_mem.h"

#include "lb/base/cacheline.h"
#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/base/list.h"

#include <stdlib.h>
#include <string.h>

#define GRAIN 16
#define GONE 0xdd
#define N_GRAINS 512 // sizes above N_GRAINS * GRAIN take a page of their own

static const uint16_t class_size[] = {48, 64, 80, 96, 112, 128, 160, 192, 256, 320, 384, 512, 768,
	1024, 1280, 2048, 3072, 4096, 6512, 8144};
#define N_CLASSES (sizeof(class_size) / sizeof(class_size[0]))
#define WHOLE_PAGE N_CLASSES

struct page {
	struct list_link link; // on its class's list while it has room
	void *free; // put back blocks, singly linked through their first word
	uint32_t klass;
	uint32_t fresh; // offset of the first block never handed out
	uint32_t n_used;
	_Alignas(GRAIN) uint8_t data[];
};

struct hpack_mem {
	uint8_t *pages; // aligned to HPACK_PAGE, so that a block leads to its page
	uint32_t n_pages, n_fresh;
	void *free_pages;
	struct list_link rooms[N_CLASSES];
	uint8_t class_of[N_GRAINS + 1]; // by size in grains, rounded up
	uint32_t n_used;
	uint32_t n_pages_used, n_pages_peak; // as pool's; an empty page that stays doesn't count
};

struct hpack_mem *hpack_mem_new(uint32_t n_pages)
{
	struct hpack_mem *m = cacheline_alloc(1, sizeof(*m));
	if (!m)
		return NULL;
	m->n_pages = m->n_fresh = n_pages;
	m->pages = aligned_alloc(HPACK_PAGE, (size_t)n_pages * HPACK_PAGE);
	if (!m->pages) {
		cacheline_free(m);
		return NULL;
	}
	for (uint32_t grains = 0, k = 0; grains <= N_GRAINS; grains++) {
		while (k < N_CLASSES && class_size[k] < grains * GRAIN)
			k++;
		m->class_of[grains] = (uint8_t)k;
	}
	for (size_t k = 0; k < N_CLASSES; k++)
		list_init(&m->rooms[k]);
	return m;
}

void hpack_mem_free(struct hpack_mem *m)
{
	if (!m)
		return;
	free(m->pages);
	cacheline_free(m);
}

static uint32_t block_size(uint32_t klass)
{
	return klass == WHOLE_PAGE ? HPACK_PAGE - (uint32_t)sizeof(struct page) : class_size[klass];
}

static struct page *page_take(struct hpack_mem *m, uint32_t klass)
{
	struct page *p = m->free_pages;
	if (p) {
		memcpy(&m->free_pages, p, sizeof(void *));
	} else if (m->n_fresh) {
		p = (struct page *)(m->pages + (size_t)(m->n_pages - m->n_fresh) * HPACK_PAGE);
		m->n_fresh--;
	} else {
		return NULL;
	}
	*p = (struct page){.klass = klass, .fresh = sizeof(struct page)};
	return p;
}

static bool page_full(const struct page *p)
{
	return !p->free && p->fresh + block_size(p->klass) > HPACK_PAGE;
}

static void *page_block(struct page *p)
{
	void *block = p->free;
	if (block) {
		memcpy(&p->free, block, sizeof(void *));
	} else {
		block = (uint8_t *)p + p->fresh;
		p->fresh += block_size(p->klass);
	}
	p->n_used++;
	return block;
}

void *hpack_mem_take(struct hpack_mem *m, size_t size)
{
	uint32_t klass = WHOLE_PAGE;
	if (size > block_size(WHOLE_PAGE))
		return NULL;
	if (size <= N_GRAINS * GRAIN)
		klass = m->class_of[(size + GRAIN - 1) / GRAIN];
	struct page *p;
	if (klass == WHOLE_PAGE || list_empty(&m->rooms[klass])) {
		p = page_take(m, klass);
		if (!p)
			return NULL;
		if (klass != WHOLE_PAGE)
			list_append(&m->rooms[klass], &p->link);
	} else {
		p = CONTAINER_OF(m->rooms[klass].next, struct page, link);
	}
	if (p->n_used == 0)
		pool_count(&m->n_pages_used, &m->n_pages_peak, m->n_pages_used + 1);
	void *block = page_block(p);
	if (page_full(p))
		list_remove(&p->link);
	m->n_used++;
	return block;
}

static struct page *page_of(const struct hpack_mem *m, const void *block)
{
	size_t at = (size_t)((const uint8_t *)block - m->pages);
	return (struct page *)(m->pages + at / HPACK_PAGE * HPACK_PAGE);
}

static void page_put(struct hpack_mem *m, struct page *p)
{
	list_remove(&p->link);
	memcpy(p, &m->free_pages, sizeof(void *));
	m->free_pages = p;
}

void hpack_mem_put(struct hpack_mem *m, void *block)
{
	if (!block)
		return;
	m->n_used--;
	struct page *p = page_of(m, block);
#ifndef NDEBUG
	// The page stays readable: whoever kept a pointer into the block is to see that it is gone.
	memset(block, GONE, block_size(p->klass));
#endif
	memcpy(block, &p->free, sizeof(void *));
	p->free = block;
	if (--p->n_used == 0)
		gauge_set(&m->n_pages_used, m->n_pages_used - 1);
	if (p->klass != WHOLE_PAGE && !list_linked(&p->link))
		list_append(&m->rooms[p->klass], &p->link);
	// The only page of a class with room stays, or one block taken and put back would carve a
	// page each time.
	bool other = p->klass != WHOLE_PAGE &&
	             (m->rooms[p->klass].next != &p->link || m->rooms[p->klass].prev != &p->link);
	if (p->n_used == 0 && (p->klass == WHOLE_PAGE || other))
		page_put(m, p);
}

size_t hpack_mem_size(const struct hpack_mem *m, const void *block)
{
	return block_size(page_of(m, block)->klass);
}

uint32_t hpack_mem_used(const struct hpack_mem *m)
{
	return m->n_used;
}

struct pool_view hpack_mem_view(struct hpack_mem *m)
{
	return (struct pool_view){.name = "hpack_pages",
		.size = HPACK_PAGE,
		.n_total = m->n_pages,
		.n_used = &m->n_pages_used,
		.n_peak = &m->n_pages_peak};
}
