// SPDX-License-Identifier: Apache-2.0
#include "tlshs/result.h"

#include "lb/base/counter.h"

#include <string.h>

const char *const tlshs_outcome_names[TLSHS_N_OUTCOMES] = {TLSHS_OUTCOMES(COUNTER_NAME)};
const char *const tlshs_result_names[TLSHS_N_RESULTS] = {TLSHS_RESULTS(COUNTER_NAME)};

const char *tlshs_outcome_name(enum tlshs_outcome o)
{
	return o < TLSHS_N_OUTCOMES ? tlshs_outcome_names[o] : "?";
}

bool tlshs_outcome_is_peers(enum tlshs_outcome o)
{
	return o >= TLSHS_peer_alert && o <= TLSHS_peer_closed;
}

// Where A118 says nothing, as C-core has it: a certificate for another use is malformed. What has
// no word there is an unknown failure, and 0 here.
static const uint8_t results[TLSHS_N_OUTCOMES] = {
	[TLSHS_unexpected_message] = TLSHS_RESULT_UNEXPECTED_MESSAGE,
	[TLSHS_decryption] = TLSHS_RESULT_DECRYPTION_FAILED,
	[TLSHS_signature] = TLSHS_RESULT_SIGNATURE_VERIFICATION_FAILED,
	[TLSHS_key_exchange] = TLSHS_RESULT_KEY_EXCHANGE_FAILURE,
	[TLSHS_version] = TLSHS_RESULT_PROTOCOL_VERSION_UNSUPPORTED,
	[TLSHS_fallback] = TLSHS_RESULT_INAPPROPRIATE_FALLBACK,
	[TLSHS_cipher] = TLSHS_RESULT_CIPHER_SUITE_MISMATCH,
	[TLSHS_no_application_protocol] = TLSHS_RESULT_NO_APPLICATION_PROTOCOL,
	[TLSHS_peer_alert_certificate] = TLSHS_RESULT_CERTIFICATE_VERIFICATION_FAILED,
	[TLSHS_peer_alert_protocol] = TLSHS_RESULT_NO_APPLICATION_PROTOCOL,
	[TLSHS_peer_alert_version] = TLSHS_RESULT_PROTOCOL_VERSION_UNSUPPORTED,
	[TLSHS_peer_closed] = TLSHS_RESULT_PEER_CONNECTION_CLOSED,
	[TLSHS_no_peer_certificate] = TLSHS_RESULT_CERTIFICATE_VERIFICATION_FAILED,
	[TLSHS_unknown_ca] = TLSHS_RESULT_CERTIFICATE_AUTHORITY_INVALID,
	[TLSHS_certificate_expired] = TLSHS_RESULT_CERTIFICATE_EXPIRED,
	[TLSHS_certificate_not_yet_valid] = TLSHS_RESULT_CERTIFICATE_NOT_YET_VALID,
	[TLSHS_certificate_revoked] = TLSHS_RESULT_CERTIFICATE_REVOKED,
	[TLSHS_certificate_usage] = TLSHS_RESULT_CERTIFICATE_MALFORMED,
	[TLSHS_certificate_name] = TLSHS_RESULT_CERTIFICATE_HOSTNAME_MISMATCH,
	[TLSHS_certificate_bad] = TLSHS_RESULT_CERTIFICATE_VERIFICATION_FAILED,
	[TLSHS_timeout] = TLSHS_RESULT_HANDSHAKE_TIMEOUT,
	[TLSHS_gave_way] = TLSHS_RESULT_HANDSHAKE_TIMEOUT,
	[TLSHS_lost] = TLSHS_RESULT_PEER_CONNECTION_CLOSED,
};

enum tlshs_result_word tlshs_outcome_result(enum tlshs_outcome o)
{
	if (o == TLSHS_ok || o == TLSHS_resumed)
		return TLSHS_RESULT_SUCCESS;
	return o < TLSHS_N_OUTCOMES && results[o] ? results[o] : TLSHS_RESULT_UNKNOWN_FAILURE;
}

// Of the alerts by which a peer refuses our certificate, those that workers name.
static bool is_of_certificate(struct str alert)
{
	static const char *const names[] = {"bad_certificate", "unsupported_certificate",
		"certificate_revoked", "certificate_expired", "certificate_unknown", "unknown_ca",
		"certificate_required"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (str_eq(alert, str_from(names[i])))
			return true;
	return false;
}

const char *tlshs_result_in(const char *text)
{
	static const char mark[] = "TLS: ", alert[] = "its alert ";
	const char *at = strstr(text, mark);
	if (!at)
		return NULL;
	struct str rest = str_from(at + sizeof(mark) - 1);
	if (str_starts(rest, STR("its alert "))) {
		rest = (struct str){rest.p + sizeof(alert) - 1, rest.len - (sizeof(alert) - 1)};
		return is_of_certificate(str_until(rest, ' '))
		               ? tlshs_result_names[TLSHS_RESULT_CERTIFICATE_VERIFICATION_FAILED]
		               : NULL;
	}
	struct str name = str_until(rest, ':');
	for (enum tlshs_outcome o = 0; o < TLSHS_N_OUTCOMES; o++)
		if (str_eq(name, str_from(tlshs_outcome_names[o])))
			return tlshs_result_names[tlshs_outcome_result(o)];
	return NULL;
}

void tlshs_result_wipe(struct tlshs_result *r)
{
	explicit_bzero(&r->secrets, sizeof(r->secrets));
}
