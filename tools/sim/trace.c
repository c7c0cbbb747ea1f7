/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a simulation shows to others' tools: Chrome's trace format (chrome://tracing, Perfetto), in
 * which a host or switch is a process and each of its ports a thread, and capture files as tcpdump
 * writes them. A frame in a capture has the time at which its last bit left the port.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/wire.h"
#include "tools/sim/capture.h"
#include "tools/sim/trace.h"
#include "tools/tool.h"

struct sim_watch {
	const struct cn_topo *topo;
	const char *trace_path, *pcap_path;
	FILE *trace, *pcap;
	struct json json;
	bool measuring, cut;
	cn_time began; /* of the counted iterations: 0 in the trace */
	uint32_t events, link;
};

/* ---- the trace ------------------------------------------------------------------------ */

static uint32_t sender(const struct cn_topo *t, uint32_t link, uint32_t end)
{
	return end == 0 ? t->links[link].a : t->links[link].b;
}

static void event(struct sim_watch *w)
{
	putc('\n', w->trace);
	json_object(&w->json, NULL);
}

static void name_one(struct sim_watch *w, const char *what, uint32_t pid, uint32_t tid,
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

/* Who the processes and threads are. */
static void name_all(struct sim_watch *w)
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

static void trace_frame(struct sim_watch *w, const struct cn_sim_sight *seen)
{
	const struct cn_topo *t = w->topo;
	char name[2 * COLLNET_NAME_MAX + 40];
	struct cn_wire f;
	bool ours = seen->len >= CN_HEAD &&
		    cn_wire_get(seen->frame + CN_ETH_HEADER, seen->len - CN_ETH_HEADER,
				(uint16_t)(seen->frame[CN_ETH_HEADER + 4] << 8 |
					   seen->frame[CN_ETH_HEADER + 5]),
				&f) == CN_WIRE_OK;

	if (w->events++ >= SIM_TRACE_MAX) {
		w->cut = true;
		return;
	}
	snprintf(name, sizeof(name), "%s%s %s > %s", seen->what == CN_SIM_DROPPED ? "lost: " : "",
		 ours ? type_of(&f) : "frame", host_of(t, seen->frame + 6),
		 host_of(t, seen->frame));
	event(w);
	json_string(&w->json, "name", name);
	json_string(&w->json, "cat", ours ? type_of(&f) : "frame");
	json_string(&w->json, "ph", seen->what == CN_SIM_DROPPED ? "i" : "X");
	json_double(&w->json, "ts", (double)(seen->at - w->began) / 1e3, 3);
	if (seen->what == CN_SIM_SENT) {
		json_double(&w->json, "dur", (double)(seen->until - seen->at) / 1e3, 3);
	}
	json_uint(&w->json, "pid", sender(t, seen->link, seen->end) + 1);
	json_uint(&w->json, "tid", 2 * seen->link + seen->end + 1);
	json_object(&w->json, "args");
	json_uint(&w->json, "bytes", seen->len);
	if (ours) {
		json_uint(&w->json, "seq", f.seq);
		json_uint(&w->json, "ack", f.ack);
	}
	json_object_end(&w->json);
	json_object_end(&w->json);
}

/* ---- both ----------------------------------------------------------------------------- */

static int open_trace(struct sim_watch *w, const char *path, struct cn_err *err)
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
	return COLLNET_OK;
}

static int open_pcap(struct sim_watch *w, const char *path, uint32_t link, struct cn_err *err)
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

int sim_watch_open(const struct cn_topo *t, const char *trace, const char *pcap, uint32_t link,
		   struct sim_watch **out, struct cn_err *err)
{
	struct sim_watch *w = calloc(1, sizeof(*w));
	int rc = COLLNET_OK;

	if (w == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory to watch a simulation");
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

void sim_watch_measure(struct sim_watch *w, bool measuring)
{
	w->measuring = measuring;
}

void sim_watch_see(void *arg, const struct cn_sim_sight *seen)
{
	struct sim_watch *w = arg;

	if (w->trace != NULL && w->measuring && seen->what != CN_SIM_RECEIVED) {
		w->began = w->began == 0 ? seen->at : w->began;
		trace_frame(w, seen);
	}
	if (w->pcap != NULL && seen->what == CN_SIM_SENT && seen->link == w->link) {
		sim_capture_frame(w->pcap, seen->until, seen->frame, seen->len);
	}
}

int sim_watch_close(struct sim_watch *w, bool *cut, struct cn_err *err)
{
	int rc = COLLNET_OK;
	bool ok;

	if (w == NULL) {
		return COLLNET_OK;
	}
	if (w->trace != NULL) {
		json_array_end(&w->json);
		json_object_end(&w->json);
		ok = json_end(&w->json);
		if (fclose(w->trace) != 0 || !ok) {
			rc = cn_fail(err, COLLNET_ESYSTEM, "--trace: %.250s could not be written",
				     w->trace_path);
		}
	}
	if (w->pcap != NULL) {
		/* What failed earlier is not flushed again: only the stream remembers it. */
		ok = fflush(w->pcap) == 0 && !ferror(w->pcap);
		if ((fclose(w->pcap) != 0 || !ok) && rc == COLLNET_OK) {
			rc = cn_fail(err, COLLNET_ESYSTEM, "--pcap: %.250s could not be written",
				     w->pcap_path);
		}
	}
	if (cut != NULL) {
		*cut = w->cut;
	}
	free(w);
	return rc;
}
