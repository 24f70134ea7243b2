// SPDX-License-Identifier: Apache-2.0
#include "dataplane/telemetry_socket.h"

#include "lb/base/time.h"

#include <rte_eal.h>

#include <dirent.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

// DPDK's, of which a second process has ":1" behind it.
#define SOCKET_NAME "/dpdk_telemetry.v2"
#define HIDDEN ".hidden"
#define NAME_MAX_LEN sizeof(((struct sockaddr_un *)NULL)->sun_path)
// Who had connected already when the name went is accepted within a moment.
#define LOOK_NS NS_PER_MS
#define MIN_SILENT_LOOKS 3
#define MAX_LOOKS 1000

static struct {
	pthread_mutex_t lock;
	unsigned n_hides;
	char name[NAME_MAX_LEN]; // "" = there is none
	char hidden[NAME_MAX_LEN + sizeof(HIDDEN)]; // what it is called while it is hidden
} telemetry_socket = {.lock = PTHREAD_MUTEX_INITIALIZER};

// A socket that DPDK listens at, or has accepted there: both have its name. Clients have none.
static bool is_own(int fd, struct sockaddr_un *ret_name, bool *ret_listens)
{
	char start[sizeof(ret_name->sun_path)];
	socklen_t len = sizeof(*ret_name);
	int listens = 0;
	snprintf(start, sizeof(start), "%s" SOCKET_NAME, rte_eal_get_runtime_dir());
	memset(ret_name, 0, sizeof(*ret_name));
	if (getsockname(fd, (struct sockaddr *)ret_name, &len) != 0 ||
		ret_name->sun_family != AF_UNIX ||
		strncmp(ret_name->sun_path, start, strlen(start)) != 0)
		return false;
	len = sizeof(listens);
	*ret_listens = getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) == 0 && listens;
	return true;
}

// Returns how many are connected; their threads close what we shut down. ret_name: where it
// listens; it stays as it is if it does not.
static unsigned hang_up(char *ret_name)
{
	struct sockaddr_un name;
	bool listens;
	unsigned n = 0;
	DIR *d = opendir("/proc/self/fd");
	for (struct dirent *e; d && (e = readdir(d));) {
		int fd = (int)strtol(e->d_name, NULL, 10);
		if (e->d_name[0] == '.' || !is_own(fd, &name, &listens))
			continue;
		if (listens) {
			memcpy(ret_name, name.sun_path, sizeof(name.sun_path));
			continue;
		}
		shutdown(fd, SHUT_RDWR);
		n++;
	}
	if (d)
		closedir(d);
	return n;
}

static void hide(void)
{
	char *name = telemetry_socket.name;
	name[0] = '\0';
	(void)hang_up(name);
	if (!name[0])
		return;
	snprintf(telemetry_socket.hidden, sizeof(telemetry_socket.hidden), "%s" HIDDEN, name);
	(void)rename(name, telemetry_socket.hidden);
	for (unsigned looks = 0, silent = 0; looks < MAX_LOOKS && silent < MIN_SILENT_LOOKS;
		looks++) {
		silent = hang_up(name) ? 0 : silent + 1;
		nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
	}
}

void telemetry_socket_hide(void)
{
	pthread_mutex_lock(&telemetry_socket.lock);
	if (telemetry_socket.n_hides++ == 0)
		hide();
	pthread_mutex_unlock(&telemetry_socket.lock);
}

void telemetry_socket_show(void)
{
	pthread_mutex_lock(&telemetry_socket.lock);
	if (--telemetry_socket.n_hides == 0 && telemetry_socket.name[0])
		(void)rename(telemetry_socket.hidden, telemetry_socket.name);
	pthread_mutex_unlock(&telemetry_socket.lock);
}

void telemetry_socket_end(void)
{
	telemetry_socket_hide();
	if (telemetry_socket.name[0])
		(void)unlink(telemetry_socket.hidden);
}
