// SPDX-License-Identifier: Apache-2.0
#include "tools/shuntctl/ping.h"

#include <string.h>

bool ping_is_asked(const char *words)
{
	return strncmp(words, "ping ", strlen("ping ")) == 0;
}

int ping_status(const char *line, int so_far)
{
	bool is_none = strcmp(line, "answered: 0\n") == 0 ||
	               (line[0] == '{' && strstr(line, "\"answered\":0,"));
	return is_none ? 1 : so_far;
}
