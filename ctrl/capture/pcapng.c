// SPDX-License-Identifier: Apache-2.0
#include "ctrl/capture/pcapng.h"

#include <string.h>

#define SECTION 0x0a0d0d0a
#define INTERFACE 1
#define STATISTICS 5
#define PACKET 6
#define SECRETS 10
#define BYTE_ORDER_MAGIC 0x1a2b3c4d
#define LINKTYPE_ETHERNET 1
#define TLS_KEY_LOG 0x544c534b
#define NANOSECONDS 9 // times are in units of 10^-9 s
#define UNKNOWN_LENGTH UINT64_MAX

// Codes of options, by block.
#define OPT_END 0
#define OPT_COMMENT 1
#define SHB_USERAPPL 4
#define IF_NAME 2
#define IF_DESCRIPTION 3
#define IF_MACADDR 6
#define IF_TSRESOL 9
#define EPB_FLAGS 2
#define EPB_DROPCOUNT 4
#define EPB_QUEUE 6
#define ISB_STARTTIME 2
#define ISB_ENDTIME 3
#define ISB_IFRECV 4
#define ISB_IFDROP 5

struct block {
	uint8_t *from, *at;
};

static void put(struct block *b, const void *bytes, size_t n)
{
	memcpy(b->at, bytes, n);
	b->at += n;
}

static void put16(struct block *b, uint16_t x)
{
	put(b, &x, sizeof(x));
}

static void put32(struct block *b, uint32_t x)
{
	put(b, &x, sizeof(x));
}

static void put64(struct block *b, uint64_t x)
{
	put(b, &x, sizeof(x));
}

// Times are two words, the upper one first, whatever the order of bytes.
static void put_time(struct block *b, uint64_t ns)
{
	put32(b, (uint32_t)(ns >> 32));
	put32(b, (uint32_t)ns);
}

static void put_padded(struct block *b, const void *bytes, size_t n)
{
	if (n)
		put(b, bytes, n);
	while ((size_t)(b->at - b->from) % 4)
		*b->at++ = 0;
}

static void put_option(struct block *b, uint16_t code, const void *bytes, size_t n)
{
	put16(b, code);
	put16(b, (uint16_t)n);
	put_padded(b, bytes, n);
}

static void put_text(struct block *b, uint16_t code, const char *text)
{
	size_t n = strnlen(text, PCAPNG_TEXT_MAX);
	if (n)
		put_option(b, code, text, n);
}

static void put_time_option(struct block *b, uint16_t code, uint64_t ns)
{
	put16(b, code);
	put16(b, sizeof(ns));
	put_time(b, ns);
}

static struct block begin(uint8_t *to, uint32_t type)
{
	struct block b = {to, to};
	put32(&b, type);
	put32(&b, 0); // the length, once it is known
	return b;
}

static size_t end(struct block *b)
{
	put_option(b, OPT_END, NULL, 0);
	uint32_t len = (uint32_t)(b->at - b->from) + (uint32_t)sizeof(len);
	put32(b, len);
	memcpy(b->from + 4, &len, sizeof(len));
	return len;
}

size_t pcapng_section(uint8_t *to, const char *application, const char *comment)
{
	struct block b = begin(to, SECTION);
	put32(&b, BYTE_ORDER_MAGIC);
	put16(&b, 1); // version 1.0
	put16(&b, 0);
	put64(&b, UNKNOWN_LENGTH);
	put_text(&b, SHB_USERAPPL, application);
	put_text(&b, OPT_COMMENT, comment);
	return end(&b);
}

size_t pcapng_interface(uint8_t *to, const struct pcapng_interface *i)
{
	static const uint8_t resolution = NANOSECONDS;
	struct block b = begin(to, INTERFACE);
	put16(&b, LINKTYPE_ETHERNET);
	put16(&b, 0);
	put32(&b, i->snaplen);
	put_text(&b, IF_NAME, i->name);
	put_text(&b, IF_DESCRIPTION, i->description);
	put_option(&b, IF_MACADDR, i->mac, 6);
	put_option(&b, IF_TSRESOL, &resolution, sizeof(resolution));
	return end(&b);
}

size_t pcapng_packet(uint8_t *to, const struct pcapng_packet *p)
{
	uint32_t flags = p->direction;
	uint64_t n_lost = p->n_lost;
	struct block b = begin(to, PACKET);
	put32(&b, p->interface);
	put_time(&b, p->at_ns);
	put32(&b, p->kept);
	put32(&b, p->len);
	put_padded(&b, p->bytes, p->kept);
	put_option(&b, EPB_FLAGS, &flags, sizeof(flags));
	if (n_lost)
		put_option(&b, EPB_DROPCOUNT, &n_lost, sizeof(n_lost));
	put_option(&b, EPB_QUEUE, &p->queue, sizeof(p->queue));
	put_text(&b, OPT_COMMENT, p->comment);
	return end(&b);
}

size_t pcapng_secrets(uint8_t *to, const uint8_t *lines, size_t len)
{
	struct block b = begin(to, SECRETS);
	put32(&b, TLS_KEY_LOG);
	put32(&b, (uint32_t)len);
	put_padded(&b, lines, len);
	return end(&b);
}

bool pcapng_is_packet(const uint8_t *block)
{
	uint32_t type;
	memcpy(&type, block, sizeof(type));
	return type == PACKET;
}

size_t pcapng_statistics(uint8_t *to, const struct pcapng_statistics *s)
{
	struct block b = begin(to, STATISTICS);
	put32(&b, s->interface);
	put_time(&b, s->end_ns);
	put_time_option(&b, ISB_STARTTIME, s->start_ns);
	put_time_option(&b, ISB_ENDTIME, s->end_ns);
	put_option(&b, ISB_IFRECV, &s->n_received, sizeof(s->n_received));
	put_option(&b, ISB_IFDROP, &s->n_dropped, sizeof(s->n_dropped));
	return end(&b);
}
