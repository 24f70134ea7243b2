// SPDX-License-Identifier: Apache-2.0
// The fuzz target tests/fuzz/fuzz_tcp_input.c without a fuzzer: replays the files that it is given,
// or else runs random inputs. Usage: tcp_random_input [count | file...].
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

// 0 = there are files to be replayed.
static uint64_t number_of_inputs(int argc, char **argv)
{
	char *end = NULL;
	uint64_t n = argc == 2 ? strtoull(argv[1], &end, 10) : 0;
	return argc == 1 ? N_INPUTS : end && !*end ? n : 0;
}

int main(int argc, char **argv)
{
	uint64_t n_inputs = number_of_inputs(argc, argv);
	for (int i = 1; i < argc && !n_inputs; i++)
		replay(argv[i]);
	for (uint64_t seed = 1; seed <= n_inputs; seed++) {
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
