// SPDX-License-Identifier: Apache-2.0
#include "tlshs/records.h"

#include "tlshs/impl.h"

#include <openssl/err.h>

#include <errno.h>

// Records without text cost more than those with it, and the library answers some of them: a
// KeyUpdate, which derives keys, and a ClientHello under 1.2. So many, and one more for so much
// text.
#define MAX_IDLE 32
#define TEXT_PER_IDLE 65536

// The library takes all of them that there are at once: without the rest it stops at this one.
void tlshs_records_count(struct tlshs_handshake *h)
{
	if (h->n_idle++ < MAX_IDLE + h->n_text / TEXT_PER_IDLE)
		return;
	h->outcome = TLSHS_unexpected_message;
	(void)BIO_reset(h->in);
}

ssize_t tlshs_records_read(struct tlshs_handshake *h, uint8_t *to, size_t room)
{
	size_t n = 0;
	ERR_clear_error();
	int is = SSL_read_ex(h->ssl, to, room, &n);
	int error = is == 1 ? SSL_ERROR_NONE : SSL_get_error(h->ssl, is);
	ERR_clear_error();
	if (h->outcome != TLSHS_ok) // bytes are missing
		return -EBADMSG;
	h->n_text += n;
	return is == 1                          ? (ssize_t)n
	       : error == SSL_ERROR_WANT_READ   ? 0
	       : error == SSL_ERROR_ZERO_RETURN ? -EPIPE
	                                        : -EBADMSG;
}

bool tlshs_records_write(struct tlshs_handshake *h, const uint8_t *p, size_t len)
{
	size_t n;
	ERR_clear_error();
	bool ok = SSL_write_ex(h->ssl, p, len, &n) == 1;
	ERR_clear_error();
	return ok;
}

void tlshs_records_end(struct tlshs_handshake *h)
{
	SSL_set_quiet_shutdown(h->ssl, 0);
	SSL_shutdown(h->ssl);
	ERR_clear_error();
}
