// SPDX-License-Identifier: Apache-2.0
// The fuzz target tests/fuzz/fuzz_tcp_input.c without a fuzzer: replays the files that it is given,
// or else runs random inputs. Usage: tcp_random_input [file...].
// Thread: one.
#include "lb/base/rand.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define N_INPUTS 4000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void replay(const char *name)
{
	static uint8_t bytes[1 << 20];
	FILE *f = fopen(name, "rb");
	if (!f) {
		perror(name);
		exit(1);
	}
	size_t n = fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	LLVMFuzzerTestOneInput(bytes, n);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		replay(argv[i]);
	for (uint64_t seed = 1; argc == 1 && seed <= N_INPUTS; seed++) {
		uint8_t bytes[4000];
		struct rand r;
		rand_init(&r, seed);
		size_t n = rand_below(&r, sizeof(bytes));
		for (size_t i = 0; i < n; i++)
			bytes[i] = (uint8_t)rand_u64(&r);
		printf("seed %" PRIu64 "\n", seed);
		LLVMFuzzerTestOneInput(bytes, n);
	}
	return 0;
}
