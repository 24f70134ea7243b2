// SPDX-License-Identifier: Apache-2.0
// What an operator has named ends (OPS-190 to OPS-193): a request, or a connection with all the
// requests on it. Each of them ends with the cause `killed`, and is not sent again: it gets a local
// reply if its answer has not begun, gRPC's status behind whole messages, else RST_STREAM. Its
// backend gets RST_STREAM, and is not judged by it.
// Thread: the owning worker.
#pragma once

struct proxy_client;
struct proxy_request;
struct proxy_upstream;

void proxy_kill_request(struct proxy_request *); // that has not ended
// GOAWAY behind what its requests were answered with, then FIN; RST if HTTP has not begun, or is
// over already. It has a TCP connection.
void proxy_kill_client(struct proxy_client *);
// No new streams; GOAWAY and FIN once those that were reset are gone. Likewise.
void proxy_kill_upstream(struct proxy_upstream *);
