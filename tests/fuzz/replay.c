/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A main() for fuzz harnesses where libFuzzer is not at hand: runs the harness on the files that
 * are named, or on every file of $COLLNET_CORPUS/<name>, for a program called fuzz_<name>. Then on
 * mutations of each of them, from a printed seed, so that the neighbourhood of the corpus is
 * tried too: REPLAY_SEED and REPLAY_MUTATIONS (per file; by default 1,000 over all files) in the
 * environment. A harness that has a mutator of its own (mutate.h) makes three quarters of them.
 * REPLAY_SAVE names a file that every input is written to before it is run.
 *
 * Exit status 1: a file could not be read, or there was none. Findings crash.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/util.h"

#define INPUT_MAX (1u << 20)
#define MUTATIONS 500

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
/* A harness with a mutator of its own (mutate.h) defines it. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
	__attribute__((weak));

static uint64_t seed, mutations, inputs;

/* REPLAY_SAVE names a file that holds the input in progress: after a crash, the finding. */
static void save(const uint8_t *data, size_t size)
{
	const char *path = getenv("REPLAY_SAVE");
	FILE *f = path ? fopen(path, "wb") : NULL;

	if (!path) {
		return;
	}
	if (!f || fwrite(data, 1, size, f) != size || fclose(f) != 0) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		exit(1);
	}
}

/* Runs the harness on a copy of exact size, so that the sanitizer sees a read past the end. */
static void run(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy) {
		abort();
	}
	memcpy(copy, data, size);
	save(data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
	inputs++;
}

static size_t mutate(uint8_t *data, size_t size, size_t max, uint64_t *random)
{
	unsigned times = 1 + cn_random(random) % 4;

	while (times-- && size) {
		size_t at = cn_random(random) % size, len = cn_random(random) % (size - at);

		switch (cn_random(random) % 5) {
		case 0:
			data[at] ^= 1u << (cn_random(random) % 8);
			break;
		case 1:
			data[at] = (uint8_t)cn_random(random);
			break;
		case 2: /* cut a piece out */
			memmove(data + at, data + at + len, size - at - len);
			size -= len;
			break;
		case 3: /* say a piece twice */
			if (size + len <= max) {
				memmove(data + at + len, data + at, size - at);
				size += len;
			}
			break;
		default:
			size = at;
			break;
		}
	}
	return size;
}

/* libFuzzer's byte mutator, for a custom one that leaves a share to it. */
static uint64_t byte_random;
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size)
{
	return mutate(data, size, max_size, &byte_random);
}

static size_t change(uint8_t *data, size_t size, uint64_t *random)
{
	if (LLVMFuzzerCustomMutator == NULL || cn_random(random) % 4 == 0) {
		return mutate(data, size, INPUT_MAX, random);
	}
	byte_random = cn_random(random);
	return LLVMFuzzerCustomMutator(data, size, INPUT_MAX, (unsigned int)cn_random(random));
}

static int run_file(const char *path)
{
	static uint8_t data[INPUT_MAX], changed[INPUT_MAX];
	FILE *f = fopen(path, "rb");
	uint64_t random = seed;
	size_t size;

	if (!f) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return 1;
	}
	size = fread(data, 1, sizeof(data), f);
	fclose(f);
	run(data, size);
	for (uint64_t i = 0; i < mutations; i++) {
		memcpy(changed, data, size);
		run(changed, change(changed, size, &random));
	}
	return 0;
}

static uint64_t number(const char *variable, uint64_t fallback)
{
	const char *text = getenv(variable);
	uint64_t n;

	return text && cn_parse_uint(text, 0, UINT64_MAX, &n) ? n : fallback;
}

static void read_environment(int files)
{
	seed = number("REPLAY_SEED", 1);
	mutations = number("REPLAY_MUTATIONS", (uint64_t)(MUTATIONS / files));
	printf("seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
}

static int run_corpus(const char *corpus, const char *program)
{
	const char *name = strstr(program, "fuzz_");
	struct dirent **entries;
	int n, files = 0, status = 0;
	char dir[3000], path[4000];

	/* The last one: the directory may be called so, too. */
	while (name && strstr(name + 1, "fuzz_")) {
		name = strstr(name + 1, "fuzz_");
	}
	if (!corpus || !name) {
		fprintf(stderr, "usage: %s FILE..., or set COLLNET_CORPUS\n", program);
		return 1;
	}
	snprintf(dir, sizeof(dir), "%s/%s", corpus, name + strlen("fuzz_"));
	n = scandir(dir, &entries, NULL, alphasort);
	read_environment(n > 0 ? n : 1);
	for (int i = 0; i < n; i++) {
		if (entries[i]->d_name[0] != '.') {
			snprintf(path, sizeof(path), "%s/%s", dir, entries[i]->d_name);
			status |= run_file(path);
			files++;
		}
		free(entries[i]);
	}
	if (n >= 0) {
		free(entries);
	}
	if (!files) {
		fprintf(stderr, "%s: no file there\n", dir);
		return 1;
	}
	printf("%s: %d files, %llu inputs\n", dir, files, (unsigned long long)inputs);
	return status;
}

int main(int argc, char **argv)
{
	int status = 0;

	if (argc < 2) {
		return run_corpus(getenv("COLLNET_CORPUS"), argv[0]);
	}
	read_environment(argc - 1);
	for (int i = 1; i < argc; i++) {
		status |= run_file(argv[i]);
	}
	return status;
}
