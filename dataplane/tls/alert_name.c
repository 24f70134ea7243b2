// SPDX-License-Identifier: Apache-2.0
#include "dataplane/tls/tls.h"

// RFC 8446 6, RFC 5246 7.2
static const char *const names[] = {
	[0] = "close_notify",
	[10] = "unexpected_message",
	[20] = "bad_record_mac",
	[22] = "record_overflow",
	[40] = "handshake_failure",
	[42] = "bad_certificate",
	[43] = "unsupported_certificate",
	[44] = "certificate_revoked",
	[45] = "certificate_expired",
	[46] = "certificate_unknown",
	[47] = "illegal_parameter",
	[48] = "unknown_ca",
	[49] = "access_denied",
	[50] = "decode_error",
	[51] = "decrypt_error",
	[70] = "protocol_version",
	[71] = "insufficient_security",
	[80] = "internal_error",
	[90] = "user_canceled",
	[100] = "no_renegotiation",
	[112] = "unrecognized_name",
	[116] = "certificate_required",
	[120] = "no_application_protocol",
};

const char *tls_alert_name(uint8_t alert)
{
	bool is_known = alert < sizeof(names) / sizeof(names[0]) && names[alert];
	return is_known ? names[alert] : "unknown";
}
