/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `collnet topo draw`: a picture of a network, with the messages of a ring or of one phase on it.
 *
 * The drawing is made in memory as DOT; `dot` turns it into SVG, in memory too, so that a failure
 * leaves no half-written file.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sched/allgather/ring.h"
#include "tools/schedule/command.h"
#include "tools/topo/command.h"
#include "tools/plan/draw.h"
#include "util/vector.h"

#define LABELS_MAX  64u /* a ring of more messages has no numbers on them */
#define NUMBER_TEXT 12

extern char **environ;

/* What is drawn on the network. */
struct drawing {
	struct cn_drawn *messages;
	uint32_t n;
	char (*labels)[NUMBER_TEXT]; /* of the messages, or NULL */
	char title[256];
};

static int no_memory(struct cn_err *err)
{
	return cn_fail(err, COLLNET_ENOMEM, "no memory for the drawing");
}

/* ---- a ring --------------------------------------------------------------------------- */

static int order_ring(const char *name, const struct cn_tree *t, uint32_t *ring, struct cn_err *err)
{
	if (strcmp(name, "lr1") == 0) {
		cn_ring_lr1(t, ring);
	} else if (strcmp(name, "lr2") == 0) {
		return cn_ring_lr2(t, ring, err);
	} else if (strcmp(name, "lr3") == 0) {
		return cn_ring_lr3(t, ring, err);
	} else {
		for (uint32_t i = 0; i < t->nhosts; i++) {
			ring[i] = i;
		}
	}
	return COLLNET_OK;
}

static int draw_ring(const struct topo_options *o, const struct subject *s, struct drawing *d,
		     struct cn_err *err)
{
	const struct cn_tree *t = s->tree;
	uint32_t n = t->nhosts, longest, *ring = calloc(n, sizeof(*ring));
	int rc;

	d->messages = calloc(n, sizeof(*d->messages));
	d->labels = n <= LABELS_MAX ? calloc(n, sizeof(*d->labels)) : NULL;
	if (ring == NULL || d->messages == NULL || (n <= LABELS_MAX && d->labels == NULL)) {
		free(ring);
		return no_memory(err);
	}
	rc = order_ring(o->ring, t, ring, err);
	if (rc == COLLNET_OK) {
		longest = cn_ring_longest(t, ring, NULL);
		for (uint32_t i = 0; i < n; i++) {
			uint32_t from = ring[i], to = ring[(i + 1) % n];

			d->messages[d->n++] = (struct cn_drawn){
				.from = t->v[t->host[from]].vertex,
				.to = t->v[t->host[to]].vertex,
				.colour = 0,
				.label = d->labels == NULL ? NULL : d->labels[i],
			};
			if (d->labels != NULL) {
				snprintf(d->labels[i], NUMBER_TEXT, "%" PRIu32, i + 1);
			}
		}
		snprintf(d->title, sizeof(d->title),
			 "%.120s: ring %s of %" PRIu32 " hosts, longest path %" PRIu32 " %s",
			 topo_source(o), o->ring, n, longest, longest == 1 ? "switch" : "switches");
	}
	free(ring);
	return rc;
}

/* ---- a phase -------------------------------------------------------------------------- */

/* The algorithm of that name; where several operations have one, that of the first. */
static const struct cn_algorithm *find_algorithm(const char *name)
{
	size_t n;
	const struct cn_algorithm *a = cn_algorithms(&n);

	for (size_t i = 0; i < n; i++) {
		if (strcmp(a[i].name, name) == 0) {
			return &a[i];
		}
	}
	return NULL;
}

int topo_check_algorithm(const char *name, struct cn_err *err)
{
	char known[CN_ERR_TEXT] = "";
	size_t n;
	const struct cn_algorithm *a = cn_algorithms(&n);

	if (find_algorithm(name) != NULL) {
		return COLLNET_OK;
	}
	for (size_t i = 0; i < n; i++) {
		if (find_algorithm(a[i].name) == &a[i]) {
			tool_list(known, sizeof(known), a[i].name);
		}
	}
	return cn_fail(err, COLLNET_EINVAL, "unknown algorithm '%.40s'; there are %s", name, known);
}

/* Adds what one node sends in the phase. Empty messages (synchronisations) are not drawn. */
static int add_sends(const struct subject *s, uint32_t node, const struct cn_sched *sched,
		     uint32_t phase, struct drawing *d, uint32_t *cap, struct cn_err *err)
{
	for (uint32_t i = 0; i < sched->n; i++) {
		const struct cn_action *a = &sched->actions[i];
		struct cn_drawn *m;

		if (a->kind != CN_ACT_SEND || a->phase != phase || emit_is_sync(a)) {
			continue;
		}
		m = cn_vector_grow(d->messages, d->n, cap, sizeof(*m));
		if (m == NULL) {
			return no_memory(err);
		}
		d->messages = m;
		d->messages[d->n] = (struct cn_drawn){
			.from = s->tree->v[s->tree->host[node]].vertex,
			.to = s->tree->v[s->tree->host[a->peer]].vertex,
			.colour = d->n,
		};
		d->n++;
	}
	return COLLNET_OK;
}

static int draw_phase(const struct topo_options *o, struct subject *s, struct drawing *d,
		      struct cn_err *err)
{
	const char *name = o->algorithm == NULL ? "aapc" : o->algorithm;
	const struct cn_algorithm *a = find_algorithm(name);
	struct cn_sched sched = { 0 };
	uint32_t cap = 0, phases = 0;
	int rc = COLLNET_OK;

	s->plan.op = a->op;
	s->plan.algorithm = a->id;
	s->plan.bytes = 1024;
	for (uint32_t node = 0; rc == COLLNET_OK && node < s->layout.nnodes; node++) {
		rc = cn_sched_plan(&s->layout, &s->plan, node, &sched, err);
		if (rc == COLLNET_OK) {
			phases = sched.phases > phases ? sched.phases : phases;
			rc = add_sends(s, node, &sched, (uint32_t)o->phase, d, &cap, err);
		}
	}
	cn_sched_reset(&sched);
	if (rc == COLLNET_OK && o->phase >= phases) {
		rc = cn_fail(err, COLLNET_EINVAL,
			     "--phase %" PRIu64 ": %s has phases 0 to %" PRIu32 " here", o->phase,
			     name, phases == 0 ? 0 : phases - 1);
	}
	snprintf(d->title, sizeof(d->title),
		 "%.120s: %.40s, phase %" PRIu64 " of 0 to %" PRIu32 ", %" PRIu32 " messages",
		 topo_source(o), name, o->phase, phases - 1, d->n);
	return rc;
}

static int make_drawing(const struct topo_options *o, const struct cn_topo *t, struct drawing *d,
			struct cn_err *err)
{
	struct subject s;
	int rc;

	snprintf(d->title, sizeof(d->title), "%.200s", topo_source(o));
	if (o->ring == NULL && !o->phase_given) {
		return COLLNET_OK;
	}
	rc = subject_init(&s, t, t->hosts, t->nhosts, err);
	if (rc == COLLNET_OK) {
		rc = o->ring != NULL ? draw_ring(o, &s, d, err) : draw_phase(o, &s, d, err);
	}
	subject_done(&s);
	return rc;
}

/* ---- dot ------------------------------------------------------------------------------ */

/* All of a file of memory, from its beginning. NULL: errno says why. */
static char *contents(int fd, size_t *len)
{
	off_t end = lseek(fd, 0, SEEK_END);
	char *text = end < 0 ? NULL : malloc((size_t)end + 1);
	size_t n = 0;
	ssize_t got = 1;

	while (text != NULL && n < (size_t)end && got > 0) {
		got = pread(fd, text + n, (size_t)end - n, (off_t)n);
		if (got < 0 && errno == EINTR) {
			got = 1;
		} else if (got > 0) {
			n += (size_t)got;
		}
	}
	if (text != NULL) {
		text[n] = 0;
	}
	*len = n;
	return text;
}

static bool write_all(int fd, const char *p, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno != EINTR) {
			return false;
		}
		p += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return true;
}

/* `dot -Tsvg` between two files of memory. Its own complaints go to our standard error. */
static int run_dot(int in, int out, struct cn_err *err)
{
	static char *const argv[] = { "dot", "-Tsvg", NULL };
	posix_spawn_file_actions_t files;
	int rc, status = 0;
	pid_t pid = -1;

	rc = posix_spawn_file_actions_init(&files);
	if (rc != 0) {
		return no_memory(err);
	}
	rc = posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
	rc = rc != 0 ? rc : posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
	rc = rc != 0 ? rc : posix_spawnp(&pid, "dot", &files, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	if (rc == ENOENT) {
		return cn_fail(err, COLLNET_ESYSTEM,
			       "dot is missing: install the Debian package "
			       "graphviz, or use --format dot");
	}
	if (rc != 0) {
		return cn_fail(err, COLLNET_ESYSTEM, "cannot run dot: %s", strerror(rc));
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
		/* again */
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		return cn_fail(err, COLLNET_ESYSTEM, "dot could not draw it (%s %d)",
			       WIFSIGNALED(status) ? "signal" : "status",
			       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	}
	return COLLNET_OK;
}

/* DOT text becomes SVG text, which is the caller's to free; *text is freed. */
static int to_svg(char **text, size_t *len, struct cn_err *err)
{
	int in = memfd_create("drawing", MFD_CLOEXEC), out = memfd_create("svg", MFD_CLOEXEC);
	int rc = COLLNET_OK;
	char *svg = NULL;

	if (in < 0 || out < 0 || !write_all(in, *text, *len) || lseek(in, 0, SEEK_SET) < 0) {
		rc = cn_fail(err, COLLNET_ESYSTEM, "the drawing: %s", strerror(errno));
	} else {
		rc = run_dot(in, out, err);
	}
	if (rc == COLLNET_OK) {
		svg = contents(out, len);
		if (svg == NULL) {
			rc = no_memory(err);
		}
	}
	if (in >= 0) {
		close(in);
	}
	if (out >= 0) {
		close(out);
	}
	free(*text);
	*text = svg;
	return rc;
}

/* ---- the subcommand ------------------------------------------------------------------- */

static bool wants_svg(const struct topo_options *o)
{
	size_t len = o->output == NULL ? 0 : strlen(o->output);

	if (o->format != NULL) {
		return strcmp(o->format, "svg") == 0;
	}
	return len >= 4 && strcmp(o->output + len - 4, ".svg") == 0;
}

static int put_output(const struct topo_options *o, const char *text, size_t len,
		      struct cn_err *err)
{
	FILE *f = o->output == NULL ? stdout : fopen(o->output, "we");
	bool ok = f != NULL && fwrite(text, 1, len, f) == len;

	if (f != NULL) {
		ok = (o->output == NULL ? fflush(f) : fclose(f)) == 0 && ok;
	}
	return ok ? COLLNET_OK
		  : cn_fail(err, COLLNET_ESYSTEM, "%.200s: %s",
			    o->output == NULL ? "standard output" : o->output, strerror(errno));
}

/* The messages as JSON, for other programs that draw. */
static bool put_json(const struct topo_options *o, const struct cn_topo *t, const struct drawing *d,
		     FILE *f)
{
	struct json j;

	json_begin(&j, f);
	json_object(&j, NULL);
	json_string(&j, "source", topo_source(o));
	json_string(&j, "title", d->title);
	json_array(&j, "messages");
	for (uint32_t i = 0; i < d->n; i++) {
		json_object(&j, NULL);
		json_string(&j, "from", t->vertices[d->messages[i].from].name);
		json_string(&j, "to", t->vertices[d->messages[i].to].name);
		json_object_end(&j);
	}
	json_array_end(&j);
	topo_json(&j, t);
	json_object_end(&j);
	return json_end(&j);
}

static int make_text(const struct topo_options *o, const struct cn_topo *t, const struct drawing *d,
		     char **text, size_t *len, struct cn_err *err)
{
	FILE *f = open_memstream(text, len);
	bool ok;

	if (f == NULL) {
		return no_memory(err);
	}
	ok = o->json ? put_json(o, t, d, f)
		     : cn_topo_draw(t, d->messages, d->n, d->title, f) == COLLNET_OK;
	ok = fclose(f) == 0 && ok;
	return ok ? COLLNET_OK : no_memory(err);
}

int topo_draw(const struct topo_options *o)
{
	struct drawing d = { 0 };
	struct cn_topo *t = NULL;
	struct cn_err err = { 0 };
	char *text = NULL;
	size_t len = 0;
	int rc = topo_open(o, &t, &err);

	rc = rc != COLLNET_OK ? rc : make_drawing(o, t, &d, &err);
	rc = rc != COLLNET_OK ? rc : make_text(o, t, &d, &text, &len, &err);
	if (rc == COLLNET_OK && !o->json && wants_svg(o)) {
		rc = to_svg(&text, &len, &err);
	}
	rc = rc != COLLNET_OK ? rc : put_output(o, text, len, &err);
	free(text);
	free(d.messages);
	free(d.labels);
	cn_topo_free(t);
	if (rc != COLLNET_OK) {
		tool_complain("%s", err.text);
		return TOOL_FAILED;
	}
	return TOOL_OK;
}
