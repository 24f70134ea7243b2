// SPDX-License-Identifier: Apache-2.0
// Preloaded into a shuntd (LD_PRELOAD) it makes another program of it, by what that says and hears
// while it takes over or is followed. TAKEOVER_TALK says which:
//   "saying 7", "said 3", "heard 4": it crashes there, at a message of this kind
//   (ctrl/takeover/wire.h), or so many ms later as a third word says. When, it tells on stderr.
//   "later": it is of a later version, 9.9. It says more in each message, more messages where it
//   may, and leaves more to the newer one.
#include "ctrl/takeover/wire.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HEAD 8
#define SOME ((size_t)1 << 20)
#define NOT_KNOWN 0x7f, 0xff // a kind, and a field's id

static ssize_t (*real_sendmsg)(int, const struct msghdr *, int);
static ssize_t (*real_recvmsg)(int, struct msghdr *, int);
static bool is_later;
// Where it crashes; when[0] = 0: nowhere.
static struct {
	char when[8];
	unsigned kind, after_ms;
} place;

__attribute__((constructor)) static void learn(void)
{
	const char *talk = getenv("TAKEOVER_TALK");
	real_sendmsg = (ssize_t(*)(int, const struct msghdr *, int))dlsym(RTLD_NEXT, "sendmsg");
	real_recvmsg = (ssize_t(*)(int, struct msghdr *, int))dlsym(RTLD_NEXT, "recvmsg");
	is_later = talk && strcmp(talk, "later") == 0;
	if (talk && !is_later)
		sscanf(talk, "%7s %u %u", place.when, &place.kind, &place.after_ms);
}

// 0 = it is no message of a takeover.
static unsigned kind_of(const struct msghdr *msg, ssize_t len)
{
	const uint8_t *bytes = msg->msg_iovlen ? msg->msg_iov[0].iov_base : NULL;
	if (len < HEAD || !bytes || msg->msg_iov[0].iov_len < HEAD || memcmp(bytes, "SHTO", 4) != 0)
		return 0;
	return (unsigned)bytes[6] << 8 | bytes[7];
}

static _Noreturn void *crash(void *ctx)
{
	struct timespec now;
	usleep(place.after_ms * 1000);
	clock_gettime(CLOCK_REALTIME, &now);
	dprintf(STDERR_FILENO, "crashes at %lld.%09ld\n", (long long)now.tv_sec, now.tv_nsec);
	abort();
}

static void come_to(const char *when, unsigned kind)
{
	pthread_t thread;
	if (!kind || kind != place.kind || strcmp(when, place.when) != 0)
		return;
	if (!place.after_ms || pthread_create(&thread, NULL, crash, NULL) != 0)
		crash(NULL);
}

// A copy with a record more.
static int more_left(int fd)
{
	static const uint8_t record[] = {NOT_KNOWN, 0, 5, 'l', 'a', 't', 'e', 'r'};
	off_t at = 0;
	int copy = memfd_create("later", MFD_CLOEXEC);
	while (sendfile(copy, fd, &at, SOME) > 0)
		;
	(void)!write(copy, record, sizeof(record));
	return copy;
}

static ssize_t send_with_more_left(int fd, const struct msghdr *msg, int flags)
{
	int left, more;
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	memcpy(&left, CMSG_DATA(c), sizeof(left));
	more = more_left(left);
	memcpy(CMSG_DATA(c), &more, sizeof(more));
	ssize_t n = real_sendmsg(fd, msg, flags);
	memcpy(CMSG_DATA(c), &left, sizeof(left));
	close(more);
	return n;
}

// The newer one may say no messages that are not known, and the older one none before WELCOME.
static bool may_be_preceded(unsigned kind)
{
	return kind == TAKEOVER_GIVEN || kind == TAKEOVER_FREE || kind == TAKEOVER_LISTENER ||
	       kind == TAKEOVER_CHAIN;
}

static ssize_t say_more(int fd, const struct msghdr *msg, int flags, unsigned kind)
{
	static uint8_t field[] = {NOT_KNOWN, 0, 5, 'l', 'a', 't', 'e', 'r'},
		       version[] = {0, 3, 0, 3, '9', '.', '9'}; // the last one of a message counts
	static const uint8_t message[] = {'S', 'H', 'T', 'O', 0, 1, NOT_KNOWN};
	struct iovec parts[] = {
		msg->msg_iov[0], {field, sizeof(field)}, {version, sizeof(version)}};
	struct msghdr more = *msg;
	more.msg_iov = parts;
	more.msg_iovlen = kind == TAKEOVER_HELLO || kind == TAKEOVER_WELCOME ? 3 : 2;
	if (may_be_preceded(kind))
		(void)send(fd, message, sizeof(message), MSG_NOSIGNAL);
	ssize_t n = kind == TAKEOVER_GIVEN && msg->msg_controllen
	                    ? send_with_more_left(fd, &more, flags)
	                    : real_sendmsg(fd, &more, flags);
	return n < 0 ? n : (ssize_t)parts[0].iov_len; // as if it were whole
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	unsigned kind = kind_of(msg, HEAD);
	come_to("saying", kind);
	ssize_t n =
		kind && is_later ? say_more(fd, msg, flags, kind) : real_sendmsg(fd, msg, flags);
	come_to("said", kind);
	return n;
}

ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	ssize_t n = real_recvmsg(fd, msg, flags);
	if (!(flags & MSG_PEEK))
		come_to("heard", kind_of(msg, n));
	return n;
}
