// SPDX-License-Identifier: Apache-2.0
// A fuzzer's corpus as a plain test: runs each file of the folders that are named. Not a fuzzer.
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	if (!f) {
		perror(path);
		return 1;
	}
	static uint8_t data[1 << 20];
	size_t size = fread(data, 1, sizeof(data), f);
	fclose(f);
	// Of exactly this size, so that a sanitizer sees a read beyond it.
	uint8_t *copy = malloc(size ? size : 1);
	if (!copy)
		return 1;
	for (size_t i = 0; i < size; i++)
		copy[i] = data[i];
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
	return 0;
}

// How many files were run; -1 = one cannot be read.
static int run_folder(const char *path)
{
	DIR *dir = opendir(path);
	if (!dir) {
		perror(path);
		return -1;
	}
	int n = 0;
	for (struct dirent *e; n >= 0 && (e = readdir(dir));) {
		char file[4096];
		if (e->d_name[0] == '.')
			continue;
		snprintf(file, sizeof(file), "%s/%s", path, e->d_name);
		n = run_file(file) ? -1 : n + 1;
	}
	closedir(dir);
	return n;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		int n = run_folder(argv[i]);
		if (n <= 0) {
			fprintf(stderr, "%s: nothing to run\n", argv[i]);
			return 1;
		}
		printf("%s: %d inputs\n", argv[i], n);
	}
	return argc > 1 ? 0 : 1;
}
