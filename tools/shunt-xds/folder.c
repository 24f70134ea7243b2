// SPDX-License-Identifier: Apache-2.0
// Loading. A folder is small and changes seldom: it is read whole each time.
#include "tools/shunt-xds/folder.h"

#include "envoy/config/cluster/v3/cluster.pb-c.h"
#include "envoy/config/endpoint/v3/endpoint.pb-c.h"
#include "envoy/config/listener/v3/listener.pb-c.h"
#include "envoy/config/route/v3/route.pb-c.h"
#include "google/protobuf/any.pb-c.h"
#include "lb/base/err.h"
#include "proto/json.h"
#include "proto/wire.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_SIZE_MAX (64u << 20)

struct load {
	struct resource_set *set;
	folder_complaint complain;
	void *ctx;
	bool failed;
};

static void complain(struct load *l, const char *file, const char *text)
{
	l->failed = true;
	l->complain(l->ctx, file, text);
}

// Whole file into *ret (freed by the caller). 0 or -errno.
static int read_file(int folder, const char *name, char **ret, size_t *ret_len)
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
	return 0;
}

static const char *name_of(enum resource_type type, const ProtobufCMessage *m)
{
	switch (type) {
	case RESOURCE_CLUSTER:
		return ((const Envoy__Config__Cluster__V3__Cluster *)m)->name;
	case RESOURCE_ENDPOINTS:
		return ((const Envoy__Config__Endpoint__V3__ClusterLoadAssignment *)m)
		        ->cluster_name;
	case RESOURCE_LISTENER:
		return ((const Envoy__Config__Listener__V3__Listener *)m)->name;
	case RESOURCE_ROUTES:
		return ((const Envoy__Config__Route__V3__RouteConfiguration *)m)->name;
	case N_RESOURCE_TYPES:
		break;
	}
	return "";
}

static const ProtobufCMessageDescriptor *desc_of(enum resource_type type)
{
	static const ProtobufCMessageDescriptor *const descs[N_RESOURCE_TYPES] = {
		[RESOURCE_CLUSTER] = &envoy__config__cluster__v3__cluster__descriptor,
		[RESOURCE_ENDPOINTS] =
			&envoy__config__endpoint__v3__cluster_load_assignment__descriptor,
		[RESOURCE_LISTENER] = &envoy__config__listener__v3__listener__descriptor,
		[RESOURCE_ROUTES] = &envoy__config__route__v3__route_configuration__descriptor,
	};
	return descs[type];
}

static int add_any(struct load *l, const char *file, const Google__Protobuf__Any *any)
{
	enum resource_type type = resource_type_find(str_from(any->type_url));
	if (type == N_RESOURCE_TYPES) {
		complain(l, file,
			"@type: not a listener, a route configuration, a cluster or a cluster load "
			"assignment");
		return 0;
	}
	struct lb_err err = {""};
	ProtobufCMessage *m = proto_unpack(desc_of(type), any->value.data, any->value.len, &err);
	if (!m) { // what JSON allows and the wire does not, such as NUL in a name
		complain(l, file, err.text);
		return 0;
	}
	const char *name = name_of(type, m);
	int r = 0;
	if (name[0] == '\0') {
		complain(l, file, "the resource has no name");
	} else {
		struct resource *resource =
			resource_new(type, name, file, any->value.data, any->value.len);
		r = resource ? resource_set_add(l->set, resource) : -ENOMEM;
	}
	protobuf_c_message_free_unpacked(m, NULL);
	return r;
}

static int load_file(struct load *l, int folder, const char *file)
{
	char *text = NULL;
	size_t len = 0;
	int r = read_file(folder, file, &text, &len);
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		complain(l, file, r == -EINVAL ? "not a file" : strerror(-r));
		return 0;
	}
	ProtobufCMessage *any;
	struct lb_err err = {""};
	r = proto_json_parse(&google__protobuf__any__descriptor, text, len, &any, &err);
	free(text);
	if (r == -EINVAL) {
		complain(l, file, err.text);
		return 0;
	}
	if (r < 0)
		return r;
	r = add_any(l, file, (const Google__Protobuf__Any *)any);
	protobuf_c_message_free_unpacked(any, NULL);
	return r;
}

static int is_resource_file(const struct dirent *entry)
{
	static const char ending[] = ".json";
	size_t len = strlen(entry->d_name), n = sizeof(ending) - 1;
	return entry->d_name[0] != '.' && len > n && strcmp(entry->d_name + len - n, ending) == 0;
}

static int load_files(struct load *l, const char *path)
{
	struct dirent **entries;
	int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return -errno;
	int n = scandirat(folder, ".", &entries, is_resource_file, alphasort);
	int r = n < 0 ? -errno : 0;
	for (int i = 0; i < n; i++) {
		if (r == 0)
			r = load_file(l, folder, entries[i]->d_name);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	close(folder);
	return r;
}

int folder_load(const char *path, const struct resource_set *before, folder_complaint complaint,
	void *ctx, struct resource_set **ret)
{
	struct load l = {.set = resource_set_new(), .complain = complaint, .ctx = ctx};
	if (!l.set)
		return -ENOMEM;
	struct lb_err err;
	int r = load_files(&l, path);
	if (r < 0 && r != -ENOMEM)
		complain(&l, path, strerror(-r));
	if (r == 0 && l.failed)
		r = -EINVAL;
	if (r == 0) {
		r = resource_set_seal(l.set, before, &err);
		if (r < 0)
			complain(&l, path, err.text);
	}
	if (r < 0) {
		resource_set_free(l.set);
		return r;
	}
	*ret = l.set;
	return 0;
}
