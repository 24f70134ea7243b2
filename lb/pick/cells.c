// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/cells.h"

#include "lb/base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct lb_text *lb_text_new(const char *text)
{
	size_t size = strlen(text) + 1;
	struct lb_text *t = malloc(sizeof(*t) + size);
	if (!t)
		return NULL;
	t->n_refs = 1;
	memcpy(t->text, text, size);
	return t;
}

struct lb_text *lb_text_get(struct lb_text *t)
{
	t->n_refs++;
	return t;
}

void lb_text_put(struct lb_text *t)
{
	if (!t)
		return;
	CHECK(t->n_refs > 0);
	if (--t->n_refs == 0)
		free(t);
}

static struct lb_cell filled(struct lb_cell c)
{
	c.endpoint_id = c.state == LB_READY ? c.endpoint->id : 0;
	return c;
}

static void count_cell(const struct lb_cell *c)
{
	if (c->state == LB_READY)
		lb_endpoint_get_again(c->endpoint);
	else if (c->error)
		c->error->n_refs++;
}

static void uncount_cell(const struct lb_cell *c)
{
	if (c->state == LB_READY)
		lb_endpoint_put(lb_endpoint_table_of(c->endpoint), c->endpoint);
	else
		lb_text_put(c->error);
}

static size_t size_for(uint32_t room)
{
	return sizeof(struct lb_page) + room * sizeof(((struct lb_page *)NULL)->entries[0]);
}

static struct lb_page *page_new(uint32_t room)
{
	struct lb_page *p = malloc(size_for(room));
	if (p)
		*p = (struct lb_page){.n_refs = 1, .room = (uint16_t)room};
	return p;
}

// In a page that grows: few stay few, many double.
static uint32_t room_for(uint32_t n)
{
	uint32_t room = 4;
	while (room < n)
		room *= 2;
	return n < 4 ? n : room;
}

static void page_put(struct lb_page *p, uint32_t height)
{
	if (--p->n_refs)
		return;
	for (uint32_t i = 0; i < p->n; i++) {
		if (height)
			page_put(p->entries[i].below, height - 1);
		else
			uncount_cell(&p->entries[i].cell);
	}
	free(p);
}

// A page for this version alone, with what the other one has.
static struct lb_page *page_copy(const struct lb_page *from, uint32_t height, uint32_t room)
{
	struct lb_page *p = page_new(room);
	if (!p)
		return NULL;
	p->n = from->n;
	memcpy(p->entries, from->entries, from->n * sizeof(p->entries[0]));
	for (uint32_t i = 0; i < p->n; i++) {
		if (height)
			p->entries[i].below->n_refs++;
		else
			count_cell(&p->entries[i].cell);
	}
	return p;
}

// Makes *link's page this version's own, with room for so many entries. NULL = out of memory,
// nothing changed.
static struct lb_page *own(struct lb_page **link, uint32_t height, uint32_t room)
{
	struct lb_page *p = *link;
	if (room < p->n)
		room = p->n;
	if (p->n_refs > 1) {
		struct lb_page *copy = page_copy(p, height, room);
		if (!copy)
			return NULL;
		p->n_refs--;
		return *link = copy;
	}
	if (room <= p->room)
		return p;
	room = room_for(room);
	p = realloc(p, size_for(room));
	if (!p)
		return NULL;
	p->room = (uint16_t)room;
	return *link = p;
}

struct lb_cells lb_cells_share(const struct lb_cells *c)
{
	if (c->root)
		c->root->n_refs++;
	return *c;
}

void lb_cells_fini(struct lb_cells *c)
{
	if (c->root)
		page_put(c->root, c->height);
	*c = (struct lb_cells){0};
}

// One cell at the end of `height` pages above it.
static struct lb_page *stem_new(const struct lb_cell *cell, uint32_t height)
{
	struct lb_page *p = page_new(1);
	if (!p)
		return NULL;
	p->entries[p->n++].cell = *cell;
	count_cell(cell);
	for (uint32_t h = 1; h <= height; h++) {
		struct lb_page *above = page_new(1);
		if (!above) {
			page_put(p, h - 1);
			return NULL;
		}
		above->entries[above->n++].below = p;
		p = above;
	}
	return p;
}

static int push_first(struct lb_cells *c, const struct lb_cell *cell)
{
	c->root = stem_new(cell, 0);
	c->height = 0;
	c->n = c->root ? 1 : 0;
	return c->root ? 0 : -ENOMEM;
}

static int raise(struct lb_cells *c)
{
	struct lb_page *above = page_new(2);
	if (!above)
		return -ENOMEM;
	above->entries[above->n++].below = c->root;
	c->root = above;
	c->height++;
	return 0;
}

// The page that the next cell belongs to, if it is there, this version's own and has room: as it is
// nearly always while a list is being built. NULL = it is not.
static struct lb_page *open_page(const struct lb_cells *c)
{
	struct lb_page *p = c->root;
	for (uint32_t shift = c->height * LB_CELLS_BITS; shift; shift -= LB_CELLS_BITS) {
		uint32_t at = c->n >> shift & (LB_CELLS_FAN - 1);
		if (p->n_refs > 1 || at >= p->n)
			return NULL;
		p = p->entries[at].below;
	}
	return p->n_refs == 1 && p->n < p->room ? p : NULL;
}

// What a list is made of.
struct source {
	struct lb_cell (*cell)(const void *ctx, uint32_t at);
	const void *ctx;
};

// Of n cells from this one on.
static struct lb_page *page_make(const struct source *s, uint32_t height, uint32_t from, uint32_t n)
{
	uint32_t each = 1u << (height * LB_CELLS_BITS), n_entries = (n + each - 1) / each;
	struct lb_page *p = page_new(n_entries);
	for (; p && p->n < n_entries; p->n++) {
		uint32_t at = p->n * each;
		if (height == 0) {
			struct lb_cell cell = filled(s->cell(s->ctx, from + at));
			p->entries[at].cell = cell;
			count_cell(&cell);
			continue;
		}
		struct lb_page *below =
			page_make(s, height - 1, from + at, n - at < each ? n - at : each);
		if (!below) {
			page_put(p, height);
			return NULL;
		}
		p->entries[p->n].below = below;
	}
	return p;
}

int lb_cells_init(struct lb_cells *c, uint32_t n,
	struct lb_cell (*cell)(const void *ctx, uint32_t at), const void *ctx)
{
	CHECK(n <= LB_CELLS_MAX);
	*c = (struct lb_cells){.n = n};
	while (n > 1u << ((c->height + 1) * LB_CELLS_BITS))
		c->height++;
	if (n)
		c->root = page_make(&(struct source){cell, ctx}, c->height, 0, n);
	if (!n || c->root)
		return 0;
	*c = (struct lb_cells){0};
	return -ENOMEM;
}

int lb_cells_push(struct lb_cells *c, struct lb_cell cell)
{
	CHECK(c->n < LB_CELLS_MAX);
	cell = filled(cell);
	struct lb_page *open = c->n & (LB_CELLS_FAN - 1) ? open_page(c) : NULL;
	if (open) {
		open->entries[open->n++].cell = cell;
		count_cell(&cell);
		c->n++;
		return 0;
	}
	if (c->n == 0)
		return push_first(c, &cell);
	if (c->n >> ((c->height + 1) * LB_CELLS_BITS) && raise(c))
		return -ENOMEM;
	struct lb_page **link = &c->root;
	for (uint32_t h = c->height;; h--) {
		uint32_t at = c->n >> (h * LB_CELLS_BITS) & (LB_CELLS_FAN - 1);
		struct lb_page *p = own(link, h, at + 1);
		if (!p)
			return -ENOMEM;
		if (at < p->n) {
			link = &p->entries[at].below;
			continue;
		}
		if (h) {
			struct lb_page *stem = stem_new(&cell, h - 1);
			if (!stem)
				return -ENOMEM;
			p->entries[at].below = stem;
		} else {
			p->entries[at].cell = cell;
			count_cell(&cell);
		}
		p->n++;
		c->n++;
		return 0;
	}
}

void lb_cells_seal(struct lb_cells *c)
{
	struct lb_page **link = &c->root;
	if (!c->root || c->root->n_refs > 1)
		return;
	for (uint32_t h = c->height; h; h--) {
		link = &(*link)->entries[(*link)->n - 1].below;
		if ((*link)->n_refs > 1)
			return;
	}
	struct lb_page *p = realloc(*link, size_for((*link)->n));
	if (!p)
		return;
	p->room = p->n;
	*link = p;
}

// The pages from the root to a cell, all this version's own.
static int own_path(struct lb_cells *c, uint32_t at, struct lb_page **path)
{
	struct lb_page **link = &c->root;
	for (uint32_t h = c->height;; h--) {
		path[h] = own(link, h, 0);
		if (!path[h])
			return -ENOMEM;
		if (h == 0)
			return 0;
		link = &path[h]->entries[at >> (h * LB_CELLS_BITS) & (LB_CELLS_FAN - 1)].below;
	}
}

int lb_cells_set(struct lb_cells *c, uint32_t at, struct lb_cell cell)
{
	DCHECK(at < c->n);
	struct lb_page *path[4];
	if (own_path(c, at, path))
		return -ENOMEM;
	struct lb_cell *place = &path[0]->entries[at & (LB_CELLS_FAN - 1)].cell;
	struct lb_cell old = *place;
	count_cell(&cell); // may be the same endpoint
	*place = filled(cell);
	uncount_cell(&old);
	return 0;
}

int lb_cells_pop(struct lb_cells *c)
{
	DCHECK(c->n > 0);
	struct lb_page *path[4];
	if (own_path(c, c->n - 1, path))
		return -ENOMEM;
	uncount_cell(&path[0]->entries[path[0]->n - 1].cell);
	path[0]->n--;
	c->n--;
	for (uint32_t h = 0; path[h]->n == 0; h++) {
		free(path[h]);
		if (h == c->height) {
			*c = (struct lb_cells){0};
			break;
		}
		path[h + 1]->n--;
	}
	return 0;
}
