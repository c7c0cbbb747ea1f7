/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Trace files in Chrome's format (chrome://tracing, Perfetto), in which a host or switch is a
 * process and each of its ports a thread, and capture files as tcpdump writes them. The time of a
 * captured frame is that of its last bit at the sending port.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/wire.h"
#include "util/byteorder.h"
#include "tools/sim/capture.h"
#include "tools/sim/trace.h"
#include "tools/tool.h"

struct sim_trace {
	const struct cn_topo *topo;
	const char *trace_path, *pcap_path;
	FILE *trace, *pcap;
	struct json json;
	int trace_error, pcap_error; /* errno of the first write that failed */
	bool measuring, cut;
	cn_time began; /* of the counted iterations: 0 in the trace */
	uint32_t events, link;
};

/* ---- the trace ------------------------------------------------------------------------ */

static uint32_t sender(const struct cn_topo *t, uint32_t link, uint32_t end)
{
	return end == 0 ? t->links[link].a : t->links[link].b;
}

static void event(struct sim_trace *w)
{
	putc('\n', w->trace);
	json_object(&w->json, NULL);
}

static void name_one(struct sim_trace *w, const char *what, uint32_t pid, uint32_t tid,
		     const char *name)
{
	event(w);
	json_string(&w->json, "name", what);
	json_string(&w->json, "ph", "M");
	json_uint(&w->json, "pid", pid);
	json_uint(&w->json, "tid", tid);
	json_object(&w->json, "args");
	json_string(&w->json, "name", name);
	json_object_end(&w->json);
	json_object_end(&w->json);
}

/* Names of processes and threads. */
static void name_all(struct sim_trace *w)
{
	const struct cn_topo *t = w->topo;

	for (uint32_t v = 0; v < t->nvertices; v++) {
		name_one(w, "process_name", v + 1, 0, t->vertices[v].name);
	}
	for (uint32_t d = 0; d < 2 * t->nlinks; d++) {
		char text[COLLNET_NAME_MAX + 8];

		if (cn_topo_in_tree(t, d / 2)) {
			snprintf(text, sizeof(text), "to %s",
				 t->vertices[sender(t, d / 2, (d % 2) ^ 1)].name);
			name_one(w, "thread_name", sender(t, d / 2, d % 2) + 1, d + 1, text);
		}
	}
}

/* "h3 > h7", by the addresses that tools/sim/core gives: 02:00:00 and the host's number from 1. */
static const char *host_of(const struct cn_topo *t, const uint8_t *mac)
{
	uint32_t number = (uint32_t)mac[3] << 16 | (uint32_t)mac[4] << 8 | mac[5];

	if ((mac[0] & 1) != 0) {
		return "all";
	}
	return number == 0 || number > t->nhosts ? "?" : t->vertices[t->hosts[number - 1]].name;
}

static const char *type_of(const struct cn_wire *f)
{
	switch (f->type) {
	case CN_TYPE_HELLO:
		return "hello";
	case CN_TYPE_ACK:
		return (f->flags & CN_FLAG_NAK) != 0 ? "nak" : "ack";
	case CN_TYPE_CONTROL:
		return "control";
	case CN_TYPE_COLL:
		return "data";
	case CN_TYPE_MESSAGE:
		return "message";
	default:
		return "frame";
	}
}

static void trace_frame(struct sim_trace *w, const struct cn_sim_record *record)
{
	const struct cn_topo *t = w->topo;
	char name[2 * COLLNET_NAME_MAX + 40];
	struct cn_wire f;
	bool ours = record->len >= CN_HEAD &&
		    cn_wire_get(record->frame + CN_ETH_HEADER, record->len - CN_ETH_HEADER, &f) ==
			    CN_WIRE_OK;

	if (w->events++ >= SIM_TRACE_MAX) {
		w->cut = true;
		return;
	}
	snprintf(name, sizeof(name), "%s%s %s > %s", record->kind == CN_SIM_DROPPED ? "lost: " : "",
		 ours ? type_of(&f) : "frame", host_of(t, record->frame + 6),
		 host_of(t, record->frame));
	event(w);
	json_string(&w->json, "name", name);
	json_string(&w->json, "cat", ours ? type_of(&f) : "frame");
	json_string(&w->json, "ph", record->kind == CN_SIM_DROPPED ? "i" : "X");
	json_double(&w->json, "ts", (double)(record->at - w->began) / 1e3, 3);
	if (record->kind == CN_SIM_SENT) {
		json_double(&w->json, "dur", (double)(record->until - record->at) / 1e3, 3);
	}
	json_uint(&w->json, "pid", sender(t, record->link, record->end) + 1);
	json_uint(&w->json, "tid", 2 * record->link + record->end + 1);
	json_object(&w->json, "args");
	json_uint(&w->json, "bytes", record->len);
	if (ours) {
		json_uint(&w->json, "seq", f.seq);
		json_uint(&w->json, "ack", f.ack);
	}
	json_object_end(&w->json);
	json_object_end(&w->json);
}

/* ---- both ----------------------------------------------------------------------------- */

/* A stream remembers that a write failed, and not why. */
static void note_error(FILE *f, int *first)
{
	if (*first == 0 && ferror(f)) {
		*first = errno != 0 ? errno : EIO;
	}
}

static int open_trace(struct sim_trace *w, const char *path, struct cn_err *err)
{
	w->trace_path = path;
	w->trace = fopen(path, "we");
	if (w->trace == NULL) {
		return cn_fail(err, COLLNET_ESYSTEM, "--trace: %.250s: %s", path, strerror(errno));
	}
	json_begin(&w->json, w->trace);
	json_object(&w->json, NULL);
	json_string(&w->json, "displayTimeUnit", "ns");
	json_array(&w->json, "traceEvents");
	name_all(w);
	note_error(w->trace, &w->trace_error);
	return COLLNET_OK;
}

static int open_pcap(struct sim_trace *w, const char *path, uint32_t link, struct cn_err *err)
{
	w->pcap_path = path;
	w->link = link;
	w->pcap = fopen(path, "we");
	if (w->pcap == NULL) {
		return cn_fail(err, COLLNET_ESYSTEM, "--pcap: %.250s: %s", path, strerror(errno));
	}
	sim_capture_begin(w->pcap);
	return COLLNET_OK;
}

int sim_trace_open(const struct cn_topo *t, const char *trace, const char *pcap, uint32_t link,
		   struct sim_trace **out, struct cn_err *err)
{
	struct sim_trace *w = calloc(1, sizeof(*w));
	int rc = COLLNET_OK;

	if (w == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a trace");
	}
	w->topo = t;
	if (trace != NULL) {
		rc = open_trace(w, trace, err);
	}
	if (rc == COLLNET_OK && pcap != NULL) {
		rc = open_pcap(w, pcap, link, err);
	}
	if (rc != COLLNET_OK) {
		if (w->trace != NULL) {
			fclose(w->trace);
		}
		free(w);
		return rc;
	}
	*out = w;
	return COLLNET_OK;
}

void sim_trace_measure(struct sim_trace *w, bool measuring)
{
	w->measuring = measuring;
}

void sim_trace_record(void *arg, const struct cn_sim_record *record)
{
	struct sim_trace *w = arg;

	if (w->trace != NULL && w->measuring &&
	    (record->kind == CN_SIM_SENT || record->kind == CN_SIM_DROPPED)) {
		w->began = w->began == 0 ? record->at : w->began;
		trace_frame(w, record);
		note_error(w->trace, &w->trace_error);
	}
	if (w->pcap != NULL && record->kind == CN_SIM_SENT && record->link == w->link) {
		sim_capture_frame(w->pcap, record->until, record->frame, record->len);
		note_error(w->pcap, &w->pcap_error);
	}
}

/* Closes the file of an option; fails with the reason if not all of it was written. */
static int close_file(FILE *f, int error, const char *option, const char *path, struct cn_err *err)
{
	fflush(f);
	note_error(f, &error);
	if (fclose(f) != 0 && error == 0) {
		error = errno;
	}
	return error == 0 ? COLLNET_OK
			  : cn_fail(err, COLLNET_ESYSTEM, "%s: %.250s could not be written: %s",
				    option, path, strerror(error));
}

int sim_trace_close(struct sim_trace *w, bool *cut, struct cn_err *err)
{
	int rc = COLLNET_OK;

	if (w == NULL) {
		return COLLNET_OK;
	}
	if (w->trace != NULL) {
		json_array_end(&w->json);
		json_object_end(&w->json);
		json_end(&w->json);
		rc = close_file(w->trace, w->trace_error, "--trace", w->trace_path, err);
	}
	if (w->pcap != NULL) {
		int r = close_file(w->pcap, w->pcap_error, "--pcap", w->pcap_path,
				   rc == COLLNET_OK ? err : NULL);

		rc = rc == COLLNET_OK ? r : rc;
	}
	if (cut != NULL) {
		*cut = w->cut;
	}
	free(w);
	return rc;
}
