// SPDX-License-Identifier: Apache-2.0
// Any bytes of a client of HTTP/1.1: what we take of them llhttp takes, and means the same by it.
#include "tests/support/llhttp_twin.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct llhttp_twin_count count = {0};
	const char *complaint = llhttp_twin_complaint(data, size, &count);
	if (!complaint)
		return 0;
	fprintf(stderr, "%s\n", complaint);
	abort();
}
