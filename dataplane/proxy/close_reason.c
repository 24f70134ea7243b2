// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/close_reason.h"

const char *proxy_close_reason(enum tcp_close_reason reason)
{
	switch (reason) {
	case TCP_CLOSE_DONE:
		return "closed by peer";
	case TCP_CLOSE_RESET:
		return "reset by peer";
	case TCP_CLOSE_REFUSED:
		return "connection refused";
	case TCP_CLOSE_TIMEOUT:
		return "connection timed out";
	case TCP_CLOSE_CONNECT_TIMEOUT:
		return "connect timeout";
	case TCP_CLOSE_UNREACHABLE:
		return "no route to host";
	case TCP_N_CLOSE_REASONS:
		break;
	}
	return "closed";
}
