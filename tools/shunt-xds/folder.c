// SPDX-License-Identifier: Apache-2.0
// Loads the folder: all files are looked at each time, and those that changed are read.
#include "tools/shunt-xds/folder.h"

#include "ctrl/xds/variants/constraints.h"
#include "lb/base/check.h"
#include "lb/base/time.h"
#include "proto/json.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FILE_SIZE_MAX (64u << 20)
#define DOUBT_NS NS_PER_SECOND // no file system here counts time in coarser steps

struct load {
	struct folder *folder;
	struct catalog *catalog;
	folder_complaint complain;
	void *ctx;
	const char *file; // that is being read
	bool failed;
};

void folder_init(struct folder *f, const char *path)
{
	*f = (struct folder){.path = path, .doubt_ns = DOUBT_NS};
	TAILQ_INIT(&f->files);
}

static void file_free(struct folder *f, struct folder_file *file)
{
	TAILQ_REMOVE(&f->files, file, link);
	resource_put(file->good);
	resource_put(file->fresh);
	free(file);
}

void folder_fini(struct folder *f)
{
	for (struct folder_file *file; (file = TAILQ_FIRST(&f->files));)
		file_free(f, file);
}

static void complain(struct load *l, const char *file, const char *text)
{
	l->failed = true;
	l->complain(l->ctx, FOLDER_WRONG, file, text);
}

static void left_out(void *ctx, const char *text)
{
	const struct load *l = ctx;
	l->complain(l->ctx, FOLDER_LEFT_OUT, l->file, text);
}

static uint64_t ns_of(struct timespec t)
{
	return (uint64_t)t.tv_sec * NS_PER_SECOND + (uint64_t)t.tv_nsec;
}

static struct folder_stamp stamp_of(const struct folder *f, const struct stat *st)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	uint64_t ctime_ns = ns_of(st->st_ctim);
	return (struct folder_stamp){.is_valid = ctime_ns + f->doubt_ns <= ns_of(now),
		.dev = st->st_dev,
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		.mtime_ns = ns_of(st->st_mtim),
		.ctime_ns = ctime_ns};
}

static bool is_known(const struct folder *f, int folder, const struct folder_file *file)
{
	struct stat st;
	const struct folder_stamp *good = &file->good_stamp;
	if (!good->is_valid || fstatat(folder, file->name, &st, 0) < 0)
		return false;
	struct folder_stamp now = stamp_of(f, &st);
	return now.dev == good->dev && now.ino == good->ino && now.size == good->size &&
	       now.mtime_ns == good->mtime_ns && now.ctime_ns == good->ctime_ns;
}

// Whole file into *ret (freed by the caller). 0 or -errno.
static int read_file(const struct folder *f, int folder, const char *name, char **ret,
	size_t *ret_len, struct folder_stamp *ret_stamp)
{
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	struct stat st;
	char *text = NULL;
	size_t len = 0;
	int r = fstat(fd, &st) < 0 ? -errno : 0;
	if (r == 0 && !S_ISREG(st.st_mode))
		r = -EINVAL;
	if (r == 0 && (uint64_t)st.st_size > FILE_SIZE_MAX)
		r = -EFBIG;
	if (r == 0 && !(text = malloc((size_t)st.st_size + 1)))
		r = -ENOMEM;
	while (r == 0 && len < (size_t)st.st_size) {
		ssize_t n = read(fd, text + len, (size_t)st.st_size - len);
		if (n == 0)
			break; // cut meanwhile: the change will be reported
		if (n < 0 && errno != EINTR)
			r = -errno;
		else if (n > 0)
			len += (size_t)n;
	}
	close(fd);
	if (r < 0) {
		free(text);
		return r;
	}
	*ret = text;
	*ret_len = len;
	*ret_stamp = stamp_of(f, &st);
	return 0;
}

static bool is_as_it_was(const struct resource *good, const struct resource *fresh)
{
	return good && good->type == fresh->type && strcmp(good->name, fresh->name) == 0 &&
	       xds_constraints_eq(good->constraints, fresh->constraints) &&
	       resource_eq(good, fresh);
}

// What this load makes of the file; what is wrong leaves it as it was.
static int load_file(struct load *l, int folder, struct folder_file *file)
{
	char *text = NULL;
	size_t len = 0;
	struct lb_err err = {""};
	struct folder_stamp stamp;
	file->fresh = resource_get(file->good);
	file->fresh_stamp = file->good_stamp;
	if (is_known(l->folder, folder, file))
		return 0;
	file->fresh_stamp.is_valid = false;
	int r = read_file(l->folder, folder, file->name, &text, &len, &stamp);
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		complain(l, file->name, r == -EINVAL ? "not a file" : strerror(-r));
		return 0;
	}
	struct resource *fresh;
	const struct proto_json_scope scope = {
		.pool = l->folder->pool, .left_out = left_out, .ctx = l};
	l->file = file->name;
	r = folder_parse(&scope, l->catalog, text, len, &fresh, &err);
	free(text);
	if (r == -EINVAL)
		complain(l, file->name, err.text);
	if (r < 0)
		return r == -EINVAL ? 0 : r;
	file->fresh_stamp = stamp;
	if (!fresh)
		return 0;
	if (is_as_it_was(file->good, fresh)) {
		resource_put(fresh);
		return 0;
	}
	resource_put(file->fresh);
	file->fresh = fresh;
	return 0;
}

static int is_resource_file(const struct dirent *entry)
{
	static const char ending[] = ".json";
	size_t len = strlen(entry->d_name), n = sizeof(ending) - 1;
	return entry->d_name[0] != '.' && len > n && strcmp(entry->d_name + len - n, ending) == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

// Finds the file from *at on, or makes it there; names come in order. NULL = out of memory.
static struct folder_file *file_at(struct folder *f, struct folder_file **at, const char *name)
{
	int order = -1;
	while (*at && (order = strcmp((*at)->name, name)) < 0)
		*at = TAILQ_NEXT(*at, link);
	if (*at && order == 0)
		return *at;
	size_t len = strlen(name) + 1;
	struct folder_file *file = calloc(1, sizeof(*file) + len);
	if (!file)
		return NULL;
	memcpy(file->name, name, len);
	if (*at)
		TAILQ_INSERT_BEFORE(*at, file, link);
	else
		TAILQ_INSERT_TAIL(&f->files, file, link);
	return file;
}

static int load_entries(struct load *l, int folder, struct dirent **entries, int n)
{
	struct folder_file *at = TAILQ_FIRST(&l->folder->files);
	for (int i = 0; i < n; i++) {
		struct folder_file *file = file_at(l->folder, &at, entries[i]->d_name);
		int r = file ? load_file(l, folder, file) : -ENOMEM;
		if (r < 0)
			return r;
		file->is_there = true;
	}
	return 0;
}

static int load_files(struct load *l)
{
	struct dirent **entries;
	int folder = open(l->folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return -errno;
	int n = scandirat(folder, ".", &entries, is_resource_file, by_name);
	int r = n < 0 ? -errno : load_entries(l, folder, entries, n);
	for (int i = 0; i < n; i++)
		free(entries[i]);
	if (n >= 0)
		free(entries);
	close(folder);
	return r;
}

static bool is_changed(const struct folder_file *file)
{
	return file->fresh != file->good;
}

// The file goes back to what it was.
static void give_up(struct load *l, struct folder_file *file, const char *text)
{
	complain(l, file->name, text);
	resource_put(file->fresh);
	file->fresh = resource_get(file->good);
	file->fresh_stamp.is_valid = false;
}

// Another file that is to give this variant. NULL = there is none.
static struct folder_file *find_giver(const struct folder *f, const struct folder_file *but,
	uint32_t type, const char *name, const struct xds_constraints *constraints)
{
	struct folder_file *file;
	TAILQ_FOREACH(file, &f->files, link)
	if (file != but && file->fresh && file->fresh->type == type &&
		strcmp(file->fresh->name, name) == 0 &&
		xds_constraints_eq(file->fresh->constraints, constraints))
		return file;
	return NULL;
}

// Two files are wrong together. What is served is right, so one of them has changed.
static void settle_clash(
	struct load *l, struct folder_file *a, struct folder_file *b, const struct lb_err *why)
{
	struct lb_err err;
	struct folder_file *both[] = {a, b};
	bool changed[] = {is_changed(a), is_changed(b)};
	CHECK(changed[0] || changed[1]);
	for (int i = 0; i < 2; i++) {
		if (!changed[i])
			continue;
		lb_err_set(&err, "clashes with %.100s: %s", both[!i]->name, why->text);
		give_up(l, both[i], err.text);
	}
}

// Lists one file in the catalog's change. 1 = it was given up, and the change must be listed anew.
static int list_file(struct load *l, struct folder_file *file)
{
	struct lb_err err = {""};
	const struct resource *r = file->fresh;
	int rc = catalog_set(l->catalog, file->fresh, &err);
	if (rc == -EEXIST) {
		struct folder_file *other =
			find_giver(l->folder, file, r->type, r->name, r->constraints);
		CHECK(other);
		settle_clash(l, file, other, &err);
		return 1;
	}
	if (rc == -E2BIG) {
		CHECK(is_changed(file)); // those that are served come first
		give_up(l, file, err.text);
		return 1;
	}
	return rc;
}

static int list_files(struct load *l)
{
	struct folder_file *file;
	for (int changed = 0; changed < 2; changed++) {
		TAILQ_FOREACH(file, &l->folder->files, link)
		{
			bool is_due = file->fresh && is_changed(file) == (changed == 1);
			int rc = is_due ? list_file(l, file) : 0;
			if (rc)
				return rc;
		}
	}
	return 0;
}

// 1 = something was given up, and the change must be listed anew.
static int check(struct load *l)
{
	struct lb_err err = {""};
	enum resource_type type;
	struct xds_variants_clash clash = {0};
	int rc = catalog_check(l->catalog, &type, &clash, &err);
	if (rc != -EINVAL)
		return rc;
	struct folder_file *a = find_giver(l->folder, NULL, type, clash.name, clash.a);
	struct folder_file *b = find_giver(l->folder, a, type, clash.name, clash.b);
	CHECK(a && b);
	settle_clash(l, a, b, &err);
	return 1;
}

// Lists all files in the catalog's change, without those that cannot be served together: it gives
// up some that changed until the rest is right, in the end what is served now.
static int settle(struct load *l)
{
	for (;;) {
		catalog_begin(l->catalog, XDS_CHANGE_FULL);
		int rc = list_files(l);
		if (!rc)
			rc = check(l);
		if (!rc)
			return 0;
		catalog_abort(l->catalog);
		if (rc < 0)
			return rc;
	}
}

// What was made of the files is what is served of them; or it is forgotten.
static void finish(struct folder *f, bool is_taken)
{
	struct folder_file *file, *next;
	for (file = TAILQ_FIRST(&f->files); file; file = next) {
		next = TAILQ_NEXT(file, link);
		if (is_taken) {
			resource_put(file->good);
			file->good = file->fresh;
			file->good_stamp = file->fresh_stamp;
		} else {
			resource_put(file->fresh);
		}
		file->fresh = NULL;
		bool is_gone = is_taken ? !file->is_there : !file->good;
		file->is_there = false;
		if (is_gone)
			file_free(f, file);
	}
}

int folder_load(struct folder *f, struct catalog *catalog, folder_complaint complaint, void *ctx)
{
	struct load l = {.folder = f, .catalog = catalog, .complain = complaint, .ctx = ctx};
	int r = load_files(&l);
	if (r < 0 && r != -ENOMEM)
		complain(&l, f->path, strerror(-r));
	if (r == 0)
		r = settle(&l);
	bool is_taken = r == 0 && (f->is_loaded || !l.failed);
	if (is_taken)
		catalog_commit(catalog);
	else if (r == 0)
		catalog_abort(catalog);
	finish(f, is_taken);
	f->is_loaded |= is_taken;
	return r < 0 ? r : l.failed ? -EINVAL : 0;
}
