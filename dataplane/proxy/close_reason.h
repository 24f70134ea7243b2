// SPDX-License-Identifier: Apache-2.0
// Why TCP ended a connection to a backend, for operators.
// Thread: any.
#pragma once

#include "dataplane/tcp/tcp.h"

const char *proxy_close_reason(enum tcp_close_reason);
