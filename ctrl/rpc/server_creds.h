// SPDX-License-Identifier: Apache-2.0
// TLS credentials of a server whose certificates are files. They are looked at before each
// handshake, and read again where one has changed; what libgrpc cannot use leaves what was good,
// which its own watcher of files does not do.
// Thread: new() and free() the owner's; libgrpc's threads otherwise.
#pragma once

struct grpc_server_credentials;
struct rpc_server_creds;
struct rpc_server_tls;

// Copies the paths. NULL = out of memory.
struct rpc_server_creds *rpc_server_creds_new(const struct rpc_server_tls *);
// What libgrpc wants; the caller releases it. Without good files no port takes it.
struct grpc_server_credentials *rpc_server_creds_get(struct rpc_server_creds *);
// Once the server is destroyed. NULL is fine.
void rpc_server_creds_free(struct rpc_server_creds *);
