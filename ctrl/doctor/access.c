// SPDX-License-Identifier: Apache-2.0
// What operators reach the daemon by, and what it writes: files, sockets, logs.
#include "ctrl/conf/config.h"
#include "ctrl/doctor/look.h"
#include "ctrl/xds/state/state_dir.h"
#include "lb/base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

// Of libgrpc, DPDK, devices, the stats socket's and the metrics' clients, certificates and logs.
#define LEAST_FILES 1024

void check_files(const struct doctor_host *h)
{
	uint64_t limit = h->ops->limit(h->ctx, RLIMIT_NOFILE);
	if (limit >= LEAST_FILES)
		return;
	doctor_find(h->report, DOCTOR_WARNING,
		"%" PRIu64 " files may be open, and %d may be needed; operators, metrics or logs "
		"are refused then",
		limit, LEAST_FILES);
	doctor_fix(h->report, "ulimit -n 65536, LimitNOFILE=65536 of the unit");
}

// A folder in which something is to be made. parent_will_do: shuntd makes the last one itself.
static void look_at_folder(
	const struct doctor_host *h, const char *field, const char *folder, bool parent_will_do)
{
	char path[PATH_MAX], up[PATH_MAX];
	struct stat st;
	path_under(h->root, path, "%s%s", folder[0] == '/' ? "" : "/", folder);
	if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode)) {
		doctor_find(h->report, DOCTOR_ERROR, "%s: %s is not a directory; it stays shut",
			field, folder);
		doctor_fix(h->report, "%s: another path", field);
	} else if (faccessat(AT_FDCWD, path, F_OK, AT_EACCESS) != 0 && errno == EACCES) {
		doctor_find(h->report, DOCTOR_ERROR,
			"%s: this user may not search a directory above %s; nothing can be made "
			"there",
			field, folder);
		doctor_fix(
			h->report, "chmod a+x the directory that namei -m %s shows shut", folder);
	} else if (faccessat(AT_FDCWD, path, F_OK, AT_EACCESS) != 0) {
		look_folder(path, up);
		if (parent_will_do && faccessat(AT_FDCWD, up, W_OK, AT_EACCESS) == 0)
			return;
		doctor_find(h->report, DOCTOR_ERROR,
			"%s: there is no directory %s; nothing can be made there", field, folder);
		doctor_fix(h->report, "mkdir -p %s", folder);
	} else if (faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) != 0) {
		doctor_find(h->report, DOCTOR_ERROR,
			"%s: this user may not write to %s; nothing can be made there", field,
			folder);
		doctor_fix(h->report, "chown USER %s, where USER runs shuntd", folder);
	}
}

// A relative path is below the working directory, which no root stands in front of.
static const char *socket_path(const struct doctor_host *h, const char *socket, char path[PATH_MAX])
{
	if (socket[0] != '/')
		return strcpy(path, socket);
	return path_under(h->root, path, "%s", socket);
}

static void look_at_socket(const struct doctor_host *h, const char *field, const char *socket)
{
	char path[PATH_MAX], folder[PATH_MAX];
	struct stat st;
	if (lstat(socket_path(h, socket, path), &st) != 0) {
		if (socket[0] == '/')
			look_at_folder(h, field, look_folder(socket, folder), true);
		return;
	}
	if (!S_ISSOCK(st.st_mode)) {
		doctor_find(h->report, DOCTOR_ERROR,
			"%s: %s is there and no socket; the start fails", field, socket);
		doctor_fix(h->report, "rm %s, or another path", socket);
		return;
	}
	int rc = h->ops->dial(h->ctx, path);
	if (rc == -EPROTOTYPE) // who can be taken over answers, of another kind
		return;
	if (rc == -ECONNREFUSED) {
		doctor_find(h->report, DOCTOR_NOTE,
			"%s: nobody listens at %s; a process died and left it, and "
			"shuntd removes it when it starts",
			field, socket);
		doctor_fix(h->report, "start shuntd, or rm %s", socket);
	} else if (rc) {
		doctor_find(h->report, DOCTOR_WARNING, "%s: %s: %s; who asks there is refused",
			field, socket, strerror(-rc));
		doctor_fix(h->report, "become root, or a member of its group (ls -l %s)", socket);
	}
}

void check_socket(const struct doctor_host *h)
{
	const struct config_stats *s = h->config->stats;
	look_at_socket(h, "stats.socket", s->socket);
	if (s->haproxy_socket)
		look_at_socket(h, "stats.haproxy_socket", s->haproxy_socket);
	if (h->config->takeover_socket)
		look_at_socket(h, "takeover_socket", h->config->takeover_socket);
}

void check_socket_mode(const struct doctor_host *h)
{
	const struct config_stats *s = h->config->stats;
	if (!(s->mode_bits & 0006))
		return;
	doctor_find(h->report, DOCTOR_WARNING,
		"stats.mode: \"%s\": each user of this host may ask for requests and configuration",
		s->mode);
	doctor_fix(h->report, "stats: {mode: \"0660\"}");
}

static void look_at_listener(const struct doctor_host *h, const char *field, const char *text)
{
	struct ip_port place;
	if (!ip_port_parse(str_from(text), &place))
		return;
	int rc = h->ops->listen(h->ctx, &place);
	if (rc == 0)
		return;
	doctor_find(
		h->report, DOCTOR_ERROR, "%s: %s: %s; the start fails", field, text, strerror(-rc));
	if (rc == -EADDRINUSE)
		doctor_fix(h->report, "end who has it (ss -ltnp sport = %u), or another port",
			place.port);
	else if (rc == -EADDRNOTAVAIL)
		doctor_fix(h->report, "%s: an address of ip -br addr", field);
	else if (rc == -EACCES)
		doctor_fix(h->report, "%s: a port from 1024 on", field);
}

void check_listen(const struct doctor_host *h)
{
	if (h->config->csds)
		look_at_listener(h, "csds.listen", h->config->csds->listen);
	if (h->config->metrics)
		look_at_listener(h, "metrics.listen", h->config->metrics->listen);
}

// False = there is nothing, or no way to it, of which the check of its folder tells.
static bool has_log_file(const struct doctor_host *h, struct stat *ret)
{
	const struct config_access_log *a = h->config->access_log;
	char path[PATH_MAX];
	return a && a->path && a->path[0] == '/' &&
	       stat(path_under(h->root, path, "%s", a->path), ret) == 0;
}

void check_log_directory(const struct doctor_host *h)
{
	const struct config_access_log *a = h->config->access_log;
	char folder[PATH_MAX];
	struct stat st;
	if (a && a->path && a->path[0] == '/' && !has_log_file(h, &st))
		look_at_folder(h, "access_log.path", look_folder(a->path, folder), false);
	if (a && a->xds_directory)
		look_at_folder(h, "access_log.xds_directory", a->xds_directory, false);
}

void check_log_file(const struct doctor_host *h)
{
	char path[PATH_MAX];
	struct stat st;
	if (!has_log_file(h, &st))
		return;
	const char *name = h->config->access_log->path;
	path_under(h->root, path, "%s", name);
	if (S_ISDIR(st.st_mode) || S_ISSOCK(st.st_mode)) {
		doctor_find(h->report, DOCTOR_ERROR,
			"access_log.path: %s is a %s; the start fails, or nothing is written", name,
			S_ISDIR(st.st_mode) ? "directory" : "socket");
		doctor_fix(h->report, "access_log: {path: ...}, a file's");
	} else if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0) {
		doctor_find(h->report, DOCTOR_ERROR,
			"access_log.path: this user may not write to %s; the start fails", name);
		doctor_fix(h->report, "chown USER %s, where USER runs shuntd", name);
	}
}

// It is replaced by a new one, which needs no permission; to read it, does.
static void look_at_state(const struct doctor_host *h, const char *folder)
{
	char path[PATH_MAX];
	struct stat st;
	path_under(h->root, path, "%s/" XDS_STATE_NAME, folder);
	if (lstat(path, &st) != 0)
		return;
	if (!S_ISREG(st.st_mode)) {
		doctor_find(h->report, S_ISDIR(st.st_mode) ? DOCTOR_ERROR : DOCTOR_WARNING,
			"state_dir: %s/" XDS_STATE_NAME
			" is not a file; a start without the xDS server "
			"serves nothing",
			folder);
		doctor_fix(h->report, "mv %s/" XDS_STATE_NAME " elsewhere", folder);
	} else if (faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) != 0) {
		doctor_find(h->report, DOCTOR_WARNING,
			"state_dir: this user may not read %s/" XDS_STATE_NAME
			"; a start without the xDS server serves nothing",
			folder);
		doctor_fix(h->report, "chown USER %s/" XDS_STATE_NAME ", where USER runs shuntd",
			folder);
	}
}

// One with something in it stays, whoever serves, since it is somebody else's.
static void look_at_ready(const struct doctor_host *h, const char *file)
{
	char path[PATH_MAX], folder[PATH_MAX];
	struct stat st;
	look_at_folder(h, "ready_file", look_folder(file, folder), false);
	if (lstat(path_under(h->root, path, "%s", file), &st) != 0 ||
		(S_ISREG(st.st_mode) && st.st_size == 0))
		return;
	doctor_find(h->report, DOCTOR_ERROR,
		"ready_file: %s is there and no empty file; it stays, and scripts that look for it "
		"take this host for ready",
		file);
	doctor_fix(h->report, "mv %s elsewhere, or another path", file);
}

void check_directory(const struct doctor_host *h)
{
	const struct config *c = h->config;
	if (c->state_dir) {
		look_at_folder(h, "state_dir", c->state_dir, false);
		look_at_state(h, c->state_dir);
	}
	if (c->capture && c->capture->directory && c->capture->directory[0] == '/')
		look_at_folder(h, "capture.directory", c->capture->directory, false);
	if (c->ready_file)
		look_at_ready(h, c->ready_file);
}
