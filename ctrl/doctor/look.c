// SPDX-License-Identifier: Apache-2.0
#include "ctrl/doctor/look.h"

#include "lb/base/path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool look_line(const char *path, char *ret, size_t size)
{
	FILE *f = fopen(path, "re");
	if (!f)
		return false;
	bool ok = fgets(ret, (int)size, f);
	fclose(f);
	if (ok)
		ret[strcspn(ret, "\n")] = '\0';
	return ok;
}

long look_number(const char *path, long fallback)
{
	char line[64], *end;
	if (!look_line(path, line, sizeof(line)))
		return fallback;
	long n = strtol(line, &end, 10);
	return end == line ? fallback : n;
}

bool look_cores_of(const char *text, cpu_set_t *ret)
{
	CPU_ZERO(ret);
	while (*text) {
		char *end;
		unsigned long first = strtoul(text, &end, 10), last = first;
		if (end == text)
			return false;
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (unsigned long c = first; c <= last && c < CPU_SETSIZE; c++)
			CPU_SET(c, ret);
		text = end + strspn(end, ", \n");
	}
	return true;
}

bool look_cores(const char *path, cpu_set_t *ret)
{
	char line[4096];
	return look_line(path, line, sizeof(line)) && look_cores_of(line, ret);
}

long look_field(const char *path, const char *field)
{
	FILE *f = fopen(path, "re");
	char line[256];
	size_t len = strlen(field);
	long value = -1;
	while (f && value < 0 && fgets(line, sizeof(line), f))
		if (strncmp(line, field, len) == 0 && line[len] == ':')
			value = strtol(line + len + 1, NULL, 10);
	if (f)
		fclose(f);
	return value;
}

const char *look_folder(const char *path, char ret[PATH_MAX])
{
	snprintf(ret, PATH_MAX, "%s", path);
	char *slash = strrchr(ret, '/');
	if (!slash)
		strcpy(ret, ".");
	else
		slash[slash == ret] = '\0';
	return ret;
}

// "/system.slice/shunt.service"; "" = the root. False = there is no unified hierarchy.
static bool own_cgroup(const struct doctor_host *h, char ret[LOOK_GROUP_MAX])
{
	char path[PATH_MAX], line[LOOK_GROUP_MAX];
	FILE *f = fopen(path_under(h->root, path, "/proc/self/cgroup"), "re");
	bool found = false;
	while (f && !found && fgets(line, sizeof(line), f)) {
		found = strncmp(line, "0::/", 4) == 0;
		line[strcspn(line, "\n")] = '\0';
	}
	if (f)
		fclose(f);
	if (found)
		strcpy(ret, strcmp(line, "0::/") == 0 ? "" : line + 3);
	return found;
}

bool look_cgroups(const struct doctor_host *h, const char *file, double (*read)(const char *path),
	double *ret, char ret_group[LOOK_GROUP_MAX])
{
	char path[PATH_MAX], group[LOOK_GROUP_MAX], *slash;
	bool found = false;
	if (!own_cgroup(h, group))
		return false;
	do {
		double value = read(path_under(h->root, path, "/sys/fs/cgroup%s/%s", group, file));
		if (value >= 0 && (!found || value < *ret)) {
			found = true;
			*ret = value;
			strcpy(ret_group, group[0] ? group : "/");
		}
		slash = strrchr(group, '/');
		if (slash)
			*slash = '\0';
	} while (slash);
	return found;
}
