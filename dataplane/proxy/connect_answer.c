// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/connect_answer.h"

#include "dataplane/h1/text.h"

#include <stdbool.h>

enum part { // the first is that of all zero
	VERSION, // "HTTP/1.1 "
	STATUS, // three digits
	REASON, // a blank and a text, or nothing
	STATUS_LF,
	LINE, // a field's first byte, or CR of the end
	NAME,
	VALUE,
	VALUE_LF,
	END_LF,
};

#define VERSION_LEN 9
#define MINOR_AT 7 // in it

static bool is(uint8_t c, enum h1_text t)
{
	return h1_text_is((struct str){(const char *)&c, 1}, t);
}

// The byte belongs to the answer, and what follows it to this part.
static bool go_on(struct proxy_connect_answer *a, enum part part)
{
	a->part = (uint8_t)part;
	a->n_part = 0;
	return true;
}

static bool take_version(struct proxy_connect_answer *a, uint8_t c)
{
	bool fits = a->n_part == MINOR_AT ? c == '0' || c == '1'
	                                  : c == (uint8_t) "HTTP/1.1 "[a->n_part];
	if (++a->n_part == VERSION_LEN)
		go_on(a, STATUS);
	return fits;
}

static bool take_status(struct proxy_connect_answer *a, uint8_t c)
{
	bool is_first = a->n_part == 0;
	if (!is(c, H1_TEXT_DIGIT) || (is_first && c == '0'))
		return false;
	a->status = (uint16_t)(is_first ? c - '0' : a->status * 10 + c - '0');
	if (++a->n_part == 3)
		go_on(a, REASON);
	return true;
}

// Some leave out the blank before a text that is empty.
static bool take_reason(struct proxy_connect_answer *a, uint8_t c)
{
	if (c == '\r')
		return go_on(a, STATUS_LF);
	bool fits = a->n_part ? is(c, H1_TEXT_VALUE) : c == ' ';
	a->n_part = 1;
	return fits;
}

static bool is_informational(const struct proxy_connect_answer *a)
{
	return a->status / 100 == 1 && a->status != 101; // 101: it would speak something else
}

// Its status decides: the rest of a refusal is not waited for.
static bool end_status_line(struct proxy_connect_answer *a, uint8_t c)
{
	if (c != '\n')
		return false;
	if (a->status / 100 != 2 && !is_informational(a))
		a->state = PROXY_CONNECT_REFUSED;
	return go_on(a, LINE);
}

// RFC 9112 5.2: a line that begins with a blank is none.
static bool begin_line(struct proxy_connect_answer *a, uint8_t c)
{
	return go_on(a, c == '\r' ? END_LF : NAME) && (c == '\r' || is(c, H1_TEXT_TOKEN));
}

static bool end_head(struct proxy_connect_answer *a, uint8_t c)
{
	if (!is_informational(a))
		a->state = PROXY_CONNECT_OPEN;
	return go_on(a, VERSION) && c == '\n';
}

// False = no such byte may be there.
static bool take(struct proxy_connect_answer *a, uint8_t c)
{
	switch ((enum part)a->part) {
	case VERSION:
		return take_version(a, c);
	case STATUS:
		return take_status(a, c);
	case REASON:
		return take_reason(a, c);
	case STATUS_LF:
		return end_status_line(a, c);
	case LINE:
		return begin_line(a, c);
	case NAME:
		return c == ':' ? go_on(a, VALUE) : is(c, H1_TEXT_TOKEN);
	case VALUE:
		return c == '\r' ? go_on(a, VALUE_LF) : is(c, H1_TEXT_VALUE);
	case VALUE_LF:
		return go_on(a, LINE) && c == '\n';
	case END_LF:
		return end_head(a, c);
	}
	return false;
}

enum proxy_connect_state proxy_connect_answer_feed(
	struct proxy_connect_answer *a, const uint8_t *p, size_t len, size_t *ret_used)
{
	size_t i = 0;
	for (; i < len && a->state == PROXY_CONNECT_MORE; i++) {
		if (!take(a, p[i]))
			a->state = PROXY_CONNECT_MALFORMED;
		else if (++a->n == PROXY_CONNECT_ANSWER_MAX && a->state == PROXY_CONNECT_MORE)
			a->state = PROXY_CONNECT_TOO_LONG;
	}
	*ret_used = i;
	return (enum proxy_connect_state)a->state;
}
