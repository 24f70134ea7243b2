// SPDX-License-Identifier: Apache-2.0
#include "tools/shuntctl/doctor.h"

#include <stdio.h>
#include <string.h>

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

bool doctor_is_asked(const char *words)
{
	return begins(words, "doctor") && strchr(" ", words[strlen("doctor")]);
}

int doctor_status(const char *line, int so_far)
{
	static const char key[] = "\"data\":{\"status\":";
	const char *json = line[0] == '{' ? strstr(line, key) : NULL;
	int status = json                       ? json[strlen(key)] - '0'
	             : begins(line, "error  ")  ? 2
	             : begins(line, "warning ") ? 1
	                                        : 0;
	return status > so_far ? status : so_far;
}

void doctor_hint(void)
{
	fputs("shuntctl: without a daemon: shuntd --check --device -c /etc/shunt/shunt.yaml\n",
		stderr);
}
