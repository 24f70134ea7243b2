// SPDX-License-Identifier: Apache-2.0
// There is no index: the descriptors are some tens of kilobytes, walked by name, and people ask
// seldom.
#include "ctrl/status/descriptors.h"

#include "lb/base/check.h"
#include "proto/wire.h"

#include <stdlib.h>

// What is declared, and the descriptor.proto message that says it.
enum kind { NOTHING, FILE_KIND, MESSAGE, ENUM, SERVICE, LEAF };

// FileDescriptorProto's fields, other than declarations.
enum { FILE_PACKAGE = 2, FILE_DEPENDENCY = 3 };
#define NAME 1 // in each of them
#define N_NUMBERS 9

// What a field of a descriptor declares.
static const enum kind declares[][N_NUMBERS] = {
	[FILE_KIND] = {[4] = MESSAGE, [5] = ENUM, [6] = SERVICE, [7] = LEAF},
	[MESSAGE] = {[2] = LEAF, [3] = MESSAGE, [4] = ENUM, [6] = LEAF, [8] = LEAF},
	[ENUM] = {[2] = LEAF},
	[SERVICE] = {[2] = LEAF},
	[LEAF] = {NOTHING},
};

struct file {
	struct str bytes, path, package;
	uint32_t *imports; // in the shared list
	uint32_t n_imports;
};

struct descriptors {
	struct file *files;
	uint32_t n_files;
	uint32_t *imports; // of all files
};

static struct str text_of(const struct proto_field *f)
{
	return (struct str){(const char *)f->bytes, f->len};
}

// The next field of a descriptor.
static bool next(struct str *rest, struct proto_field *f)
{
	const uint8_t *p = (const uint8_t *)rest->p, *end = p + rest->len;
	if (!proto_field_next(&p, end, f))
		return false;
	*rest = (struct str){(const char *)p, (size_t)(end - p)};
	return true;
}

static struct str string_field(struct str bytes, uint32_t number)
{
	struct proto_field f;
	while (next(&bytes, &f))
		if (f.number == number)
			return text_of(&f);
	return (struct str){0};
}

// Takes "scope." off the front of a name.
static bool take_scope(struct str *name, struct str scope)
{
	if (name->len <= scope.len || !str_starts(*name, scope) || name->p[scope.len] != '.')
		return false;
	*name = (struct str){name->p + scope.len + 1, name->len - scope.len - 1};
	return true;
}

// What `name` is inside the descriptor.
static enum kind find(enum kind kind, struct str bytes, struct str name)
{
	struct proto_field f;
	while (next(&bytes, &f)) {
		enum kind child = f.number < N_NUMBERS ? declares[kind][f.number] : NOTHING;
		if (child == NOTHING)
			continue;
		struct str declared = string_field(text_of(&f), NAME), inner = name;
		if (str_eq(declared, name))
			return child;
		// The values of an enum stand beside it.
		bool looks_inside = child == ENUM || take_scope(&inner, declared);
		enum kind found = looks_inside ? find(child, text_of(&f), inner) : NOTHING;
		if (found != NOTHING)
			return found;
	}
	return NOTHING;
}

static enum kind find_in_file(const struct file *f, struct str name)
{
	bool here = f->package.len == 0 || take_scope(&name, f->package);
	return here ? find(FILE_KIND, f->bytes, name) : NOTHING;
}

uint32_t descriptors_find_symbol(const struct descriptors *d, struct str name)
{
	for (uint32_t i = 0; i < d->n_files; i++)
		if (find_in_file(&d->files[i], name) != NOTHING)
			return i;
	return DESCRIPTORS_NONE;
}

bool descriptors_has_message(const struct descriptors *d, struct str name)
{
	for (uint32_t i = 0; i < d->n_files; i++)
		if (find_in_file(&d->files[i], name) == MESSAGE)
			return true;
	return false;
}

uint32_t descriptors_find_file(const struct descriptors *d, struct str path)
{
	for (uint32_t i = 0; i < d->n_files; i++)
		if (str_eq(d->files[i].path, path))
			return i;
	return DESCRIPTORS_NONE;
}

uint32_t descriptors_n_files(const struct descriptors *d)
{
	return d->n_files;
}

struct str descriptors_file(const struct descriptors *d, uint32_t file)
{
	return d->files[file].bytes;
}

const uint32_t *descriptors_imports(const struct descriptors *d, uint32_t file, uint32_t *ret_n)
{
	*ret_n = d->files[file].n_imports;
	return d->files[file].imports;
}

static uint32_t count(struct str bytes, uint32_t number)
{
	struct proto_field f;
	uint32_t n = 0;
	while (next(&bytes, &f))
		n += f.number == number;
	return n;
}

static void read_imports(struct descriptors *d, struct file *file)
{
	struct proto_field f;
	struct str rest = file->bytes;
	while (next(&rest, &f)) {
		if (f.number != FILE_DEPENDENCY)
			continue;
		uint32_t import = descriptors_find_file(d, text_of(&f));
		CHECK(import != DESCRIPTORS_NONE); // protoc --include_imports
		file->imports[file->n_imports++] = import;
	}
}

struct descriptors *descriptors_new(const uint8_t *set, size_t len)
{
	struct str all = {(const char *)set, len}, rest = all;
	struct proto_field f;
	uint32_t n_imports = 0;
	struct descriptors *d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	d->n_files = count(all, 1);
	d->files = calloc(d->n_files, sizeof(*d->files));
	if (!d->files) {
		descriptors_free(d);
		return NULL;
	}
	for (uint32_t i = 0; i < d->n_files && next(&rest, &f); i++) {
		struct str bytes = text_of(&f);
		d->files[i] = (struct file){.bytes = bytes,
			.path = string_field(bytes, NAME),
			.package = string_field(bytes, FILE_PACKAGE)};
		n_imports += count(bytes, FILE_DEPENDENCY);
	}
	d->imports = calloc(n_imports, sizeof(*d->imports));
	if (!d->imports) {
		descriptors_free(d);
		return NULL;
	}
	uint32_t *imports = d->imports;
	for (uint32_t i = 0; i < d->n_files; i++) {
		d->files[i].imports = imports;
		read_imports(d, &d->files[i]);
		imports += d->files[i].n_imports;
	}
	return d;
}

void descriptors_free(struct descriptors *d)
{
	if (!d)
		return;
	free(d->files);
	free(d->imports);
	free(d);
}
