/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A plugin host: loads the library, uses it, and unloads it, once with the context closed before
 * and once with it open. It stays loaded: in direct mode a context has a thread, which would run
 * code that is gone.
 *
 *     unload LIBRARY
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collnet/collnet.h"

static struct {
	int (*open)(const struct collnet_options *, collnet_t **);
	void (*close)(collnet_t *);
	const char *(*error)(const collnet_t *);
	int (*team_create)(collnet_t *, const struct collnet_team_options *, collnet_team_t **);
	void (*team_destroy)(collnet_team_t *);
	int (*bcast)(collnet_team_t *, void *, size_t, uint32_t,
		     const struct collnet_coll_options *);
} f;

static void check(int ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "unload: %s\n", what);
		exit(1);
	}
}

static void find(void *library, const char *name, void *function)
{
	void *p = dlsym(library, name);

	check(p != NULL, name);
	memcpy(function, &p, sizeof(p));
}

static void *load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	check(library != NULL, "the library cannot be loaded");
	find(library, "collnet_open", &f.open);
	find(library, "collnet_close", &f.close);
	find(library, "collnet_error", &f.error);
	find(library, "collnet_team_create", &f.team_create);
	find(library, "collnet_team_destroy", &f.team_destroy);
	find(library, "collnet_bcast", &f.bcast);
	return library;
}

static void unload(void *library, const char *path)
{
	check(dlclose(library) == 0, "dlclose() failed");
	library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
	check(library != NULL, "dlclose() unloaded the library");
	dlclose(library);
}

static void broadcast(collnet_t *c, collnet_team_t *team)
{
	char text[32] = "";

	if (getenv("COLLNET_RANK")[0] == '0') {
		strcpy(text, "of rank 0");
	}
	check(f.bcast(team, text, sizeof(text), 0, NULL) == COLLNET_OK, f.error(c));
	check(strcmp(text, "of rank 0") == 0, "the broadcast has other bytes");
}

int main(int argc, char **argv)
{
	collnet_t *c;
	collnet_team_t *team;
	void *library;

	check(argc == 2 && getenv("COLLNET_RANK") != NULL, "one argument, in a lab");
	for (int closed = 1; closed >= 0; closed--) {
		library = load(argv[1]);
		check(f.open(NULL, &c) == COLLNET_OK, f.error(NULL));
		check(f.team_create(c, NULL, &team) == COLLNET_OK, f.error(c));
		broadcast(c, team);
		if (closed) {
			f.team_destroy(team);
			f.close(c);
		}
		unload(library, argv[1]);
	}
	broadcast(c, team);
	f.close(c);
	printf("rank %s: done\n", getenv("COLLNET_RANK"));
	return 0;
}
