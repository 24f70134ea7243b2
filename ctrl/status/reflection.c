// SPDX-License-Identifier: Apache-2.0
#include "ctrl/status/reflection.h"

#include "ctrl/status/descriptors.h"
#include "ctrl/status/service.h"
#include "grpc/reflection/v1/reflection.pb-c.h"
#include "lb/base/container_of.h"
#include "lb/base/err.h"
#include "proto/wire.h"

#include <stdlib.h>

typedef Grpc__Reflection__V1__ServerReflectionRequest Request;
typedef Grpc__Reflection__V1__ServerReflectionResponse Response;
typedef Grpc__Reflection__V1__ServiceResponse Service;

// Members of the oneofs in question and answer.
#define ASKS(member) GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_##member
#define ANSWERS(member) GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_##member

struct reflection {
	const struct descriptors *types;
	Service *services;
	Service **service_list; // to `services`
	size_t n_services;
};

struct call {
	struct status_call base; // first member
	const struct reflection *reflection;
	bool *sent; // files that the client has
	ProtobufCBinaryData *files; // of one response
	size_t n_files;
};

static void reply(struct call *c, Request *request, Response *m)
{
	m->valid_host = request->host;
	m->original_request = request;
	size_t len;
	uint8_t *bytes;
	if (proto_pack(&m->base, &bytes, &len)) {
		rpc_call_end(c->base.rpc, RPC_RESOURCE_EXHAUSTED, "out of memory");
		return;
	}
	rpc_call_pause(c->base.rpc); // until this one has left
	rpc_call_send_parts(c->base.rpc, &(struct rpc_part){bytes, len}, 1);
}

static void reply_error(struct call *c, Request *request, enum rpc_status code, const char *text)
{
	Grpc__Reflection__V1__ErrorResponse error;
	Response m;
	grpc__reflection__v1__error_response__init(&error);
	grpc__reflection__v1__server_reflection_response__init(&m);
	error.error_code = (int32_t)code;
	error.error_message = (char *)(uintptr_t)text;
	m.message_response_case = ANSWERS(ERROR_RESPONSE);
	m.error_response = &error;
	reply(c, request, &m);
}

static void add_file(struct call *c, uint32_t file)
{
	struct str bytes = descriptors_file(c->reflection->types, file);
	c->sent[file] = true;
	c->files[c->n_files++] = (ProtobufCBinaryData){bytes.len, (uint8_t *)(uintptr_t)bytes.p};
}

// What the file needs and the client has not got. The depth is that of our own imports.
static void add_imports(struct call *c, uint32_t file)
{
	uint32_t n;
	const uint32_t *imports = descriptors_imports(c->reflection->types, file, &n);
	for (uint32_t i = 0; i < n; i++) {
		if (c->sent[imports[i]])
			continue;
		add_file(c, imports[i]);
		add_imports(c, imports[i]);
	}
}

// The file itself is sent however often it is asked for.
static void reply_file(struct call *c, Request *request, uint32_t file)
{
	Grpc__Reflection__V1__FileDescriptorResponse list;
	Response m;
	grpc__reflection__v1__file_descriptor_response__init(&list);
	grpc__reflection__v1__server_reflection_response__init(&m);
	if (file == DESCRIPTORS_NONE) {
		reply_error(c, request, RPC_NOT_FOUND, "not known here");
		return;
	}
	c->n_files = 0;
	add_file(c, file);
	add_imports(c, file);
	list.file_descriptor_proto = c->files;
	list.n_file_descriptor_proto = c->n_files;
	m.message_response_case = ANSWERS(FILE_DESCRIPTOR_RESPONSE);
	m.file_descriptor_response = &list;
	reply(c, request, &m);
}

static void reply_services(struct call *c, Request *request)
{
	Grpc__Reflection__V1__ListServiceResponse list;
	Response m;
	grpc__reflection__v1__list_service_response__init(&list);
	grpc__reflection__v1__server_reflection_response__init(&m);
	list.service = c->reflection->service_list;
	list.n_service = c->reflection->n_services;
	m.message_response_case = ANSWERS(LIST_SERVICES_RESPONSE);
	m.list_services_response = &list;
	reply(c, request, &m);
}

// Our files are proto3: there are no extensions.
static void reply_extension_numbers(struct call *c, Request *request)
{
	Grpc__Reflection__V1__ExtensionNumberResponse none;
	Response m;
	char *type = request->all_extension_numbers_of_type;
	grpc__reflection__v1__extension_number_response__init(&none);
	grpc__reflection__v1__server_reflection_response__init(&m);
	if (!descriptors_has_message(c->reflection->types, str_from(type))) {
		reply_error(c, request, RPC_NOT_FOUND, "not known here");
		return;
	}
	none.base_type_name = type;
	m.message_response_case = ANSWERS(ALL_EXTENSION_NUMBERS_RESPONSE);
	m.all_extension_numbers_response = &none;
	reply(c, request, &m);
}

static void answer(struct call *c, Request *m)
{
	const struct descriptors *types = c->reflection->types;
	switch (m->message_request_case) {
	case ASKS(FILE_BY_FILENAME):
		reply_file(c, m, descriptors_find_file(types, str_from(m->file_by_filename)));
		break;
	case ASKS(FILE_CONTAINING_SYMBOL):
		reply_file(
			c, m, descriptors_find_symbol(types, str_from(m->file_containing_symbol)));
		break;
	case ASKS(FILE_CONTAINING_EXTENSION):
		reply_file(c, m, DESCRIPTORS_NONE);
		break;
	case ASKS(ALL_EXTENSION_NUMBERS_OF_TYPE):
		reply_extension_numbers(c, m);
		break;
	case ASKS(LIST_SERVICES):
		reply_services(c, m);
		break;
	default:
		reply_error(c, m, RPC_INVALID_ARGUMENT, "the request asks nothing");
	}
}

static void on_message(struct status_call *base, const uint8_t *bytes, size_t len)
{
	struct call *c = CONTAINER_OF(base, struct call, base);
	struct lb_err err = {0};
	Request *m = proto_unpack(
		&grpc__reflection__v1__server_reflection_request__descriptor, bytes, len, &err);
	if (m)
		answer(c, m);
	else
		rpc_call_end(base->rpc, RPC_INVALID_ARGUMENT, err.text);
	proto_free(m);
}

static void on_half_close(struct status_call *base)
{
	rpc_call_finish(base->rpc);
}

static void on_sent(struct status_call *base)
{
	rpc_call_resume(base->rpc);
}

static void on_closed(struct status_call *base)
{
	struct call *c = CONTAINER_OF(base, struct call, base);
	free(c->sent);
	free(c->files);
	free(c);
}

struct status_call *reflection_open(struct reflection *r, struct rpc_call *rpc)
{
	static const struct status_call_ops ops = {on_message, on_half_close, on_sent, on_closed};
	uint32_t n = descriptors_n_files(r->types);
	struct call *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	*c = (struct call){.base = {&ops, rpc},
		.reflection = r,
		.sent = calloc(n, sizeof(*c->sent)),
		.files = calloc(n, sizeof(*c->files))};
	if (c->sent && c->files)
		return &c->base;
	on_closed(&c->base);
	return NULL;
}

struct reflection *reflection_new(
	const struct descriptors *types, const char *const *services, size_t n_services)
{
	struct reflection *r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	*r = (struct reflection){.types = types,
		.services = calloc(n_services, sizeof(*r->services)),
		.service_list = calloc(n_services, sizeof(*r->service_list)),
		.n_services = n_services};
	if (!r->services || !r->service_list) {
		reflection_free(r);
		return NULL;
	}
	for (size_t i = 0; i < n_services; i++) {
		grpc__reflection__v1__service_response__init(&r->services[i]);
		r->services[i].name = (char *)(uintptr_t)services[i];
		r->service_list[i] = &r->services[i];
	}
	return r;
}

void reflection_free(struct reflection *r)
{
	if (!r)
		return;
	free(r->services);
	free(r->service_list);
	free(r);
}
