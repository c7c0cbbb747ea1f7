/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `collnet status`: the node table, jobs, global window and counters of this node's daemon.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tool.h"

#define SLACK 64 /* entries more than were there a moment ago */

struct status {
	collnet_t *c;
	struct collnet_stats stats;
	struct collnet_node_info *nodes;
	struct collnet_job_info *jobs;
	size_t nnodes, njobs;
};

/* The counters, in the order they are shown. */
static const struct counter {
	const char *name;
	size_t offset;
	const char *what;
} counters[] = {
#define C(field, what)                                                                             \
	{                                                                                          \
#field, offsetof(struct collnet_stats, field), what                                \
	}
	C(frames_sent, "frames sent"),
	C(frames_received, "valid frames received"),
	C(bytes_sent, "bytes sent"),
	C(bytes_received, "bytes received"),
	C(data_sent, "reliable frames sent for the first time"),
	C(data_resent, "reliable frames retransmitted"),
	C(data_received, "reliable frames accepted in order"),
	C(acks_sent, "frames that carry only an acknowledgement"),
	C(ack_bytes_sent, "bytes of these frames"),
	C(naks_sent, "negative acknowledgements among them"),
	C(duplicates, "reliable frames received twice"),
	C(gaps, "reliable frames received out of order"),
	C(timeouts, "retransmission timeouts"),
	C(busy, "frames refused: no buffer was free"),
	C(bad_frames, "malformed frames, wrong tags"),
	C(version_frames, "frames of another wire version, encapsulation or key"),
	C(plans, "schedules planned"),
	C(foreign_frames, "frames of another cluster or protocol"),
	C(stale_frames, "frames of an earlier incarnation or an unknown node"),
	C(ring_drops, "frames dropped by the kernel: receive buffer full"),
	C(send_full, "times that the interface's queue was full"),
	C(send_errors, "frames refused by the interface"),
#undef C
};
#define NCOUNTERS (sizeof(counters) / sizeof(counters[0]))

static uint64_t counter_value(const struct collnet_stats *s, const struct counter *c)
{
	uint64_t v;

	memcpy(&v, (const char *)s + c->offset, sizeof(v));
	return v;
}

static const char *mac_text(const uint8_t mac[6], char buf[TOOL_TEXT])
{
	snprintf(buf, TOOL_TEXT, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3],
		 mac[4], mac[5]);
	return buf;
}

static int complain(const struct status *s, int status)
{
	const char *message = collnet_error(s->c);

	tool_complain("%s", message != NULL && *message != 0 ? message : collnet_strerror(status));
	return TOOL_FAILED;
}

/* Everything at once, so that what is shown belongs together. */
static int collect(struct status *s)
{
	int rc;

	s->stats.size = sizeof(s->stats);
	rc = collnet_get_stats(s->c, &s->stats, 0);
	if (rc != COLLNET_OK) {
		return complain(s, rc);
	}
	s->nnodes = (size_t)s->stats.nodes + SLACK;
	s->njobs = (size_t)s->stats.jobs + SLACK;
	s->nodes = calloc(s->nnodes, sizeof(*s->nodes));
	s->jobs = calloc(s->njobs, sizeof(*s->jobs));
	if (s->nodes == NULL || s->jobs == NULL) {
		tool_complain("no memory for %zu nodes and %zu jobs", s->nnodes, s->njobs);
		return TOOL_FAILED;
	}
	rc = collnet_get_nodes(s->c, s->nodes, &s->nnodes);
	if (rc == COLLNET_OK) {
		rc = collnet_get_jobs(s->c, s->jobs, &s->njobs);
	}
	if (rc != COLLNET_OK) {
		return complain(s, rc);
	}
	/* The count may have grown beyond the space since. */
	if (s->nnodes > (size_t)s->stats.nodes + SLACK) {
		s->nnodes = (size_t)s->stats.nodes + SLACK;
	}
	if (s->njobs > (size_t)s->stats.jobs + SLACK) {
		s->njobs = (size_t)s->stats.jobs + SLACK;
	}
	return TOOL_OK;
}

static void json_nodes(struct json *j, const struct status *s)
{
	char mac[TOOL_TEXT];
	size_t i;

	json_array(j, "nodes");
	for (i = 0; i < s->nnodes; i++) {
		const struct collnet_node_info *n = &s->nodes[i];

		json_object(j, NULL);
		json_string(j, "name", n->name);
		json_string(j, "mac", mac_text(n->mac, mac));
		json_bool(j, "self", n->self != 0);
		json_bool(j, "alive", n->alive != 0);
		json_uint(j, "mtu", n->mtu);
		json_uint(j, "wire_version", n->wire_version);
		if (n->mismatch[0] != '\0') {
			json_string(j, "mismatch", n->mismatch);
		} else {
			json_null(j, "mismatch");
		}
		json_double(j, "heard_us", n->self || n->mtu == 0 ? NAN : (double)n->heard_ns / 1e3,
			    0);
		json_double(j, "rtt_us", n->rtt_ns > 0 ? (double)n->rtt_ns / 1e3 : NAN, 1);
		json_uint(j, "data_sent", n->data_sent);
		json_uint(j, "data_resent", n->data_resent);
		json_uint(j, "data_received", n->data_received);
		json_object_end(j);
	}
	json_array_end(j);
}

static void json_jobs(struct json *j, const struct status *s)
{
	size_t i;

	json_array(j, "jobs");
	for (i = 0; i < s->njobs; i++) {
		const struct collnet_job_info *job = &s->jobs[i];

		json_object(j, NULL);
		json_string(j, "name", job->name);
		json_uint(j, "ranks", job->ranks);
		json_uint(j, "local", job->local);
		json_uint(j, "present", job->present);
		json_bool(j, "ready", job->ready != 0);
		json_uint(j, "operations", job->operations);
		json_object_end(j);
	}
	json_array_end(j);
}

static bool show_json(const struct status *s)
{
	const struct collnet_stats *st = &s->stats;
	struct json j;
	size_t i;

	json_begin(&j, stdout);
	json_object(&j, NULL);
	json_string(&j, "node", collnet_node_name(s->c));
	json_string(&j, "version", collnet_version());
	json_string(&j, "interface", st->interface);
	json_bool(&j, "down", st->down != 0);
	if (st->down) {
		json_null(&j, "carrier");
	} else {
		json_bool(&j, "carrier", st->no_carrier == 0);
	}
	json_string(&j, "link", st->link);
	json_string(&j, "encapsulation", st->encapsulation);
	json_uint(&j, "ethertype", st->ethertype);
	json_uint(&j, "cluster", st->cluster);
	json_bool(&j, "authenticated", st->authenticated != 0);
	if (st->other_heard) {
		json_uint(&j, "other_cluster", st->other_cluster);
	} else {
		json_null(&j, "other_cluster");
	}
	json_uint(&j, "mtu", st->mtu);
	json_double(&j, "link_rate_bit_per_s", st->link_rate > 0 ? (double)st->link_rate : NAN, 0);
	json_object(&j, "window");
	if (st->window == COLLNET_WINDOW_OFF) {
		json_null(&j, "limit");
	} else {
		json_uint(&j, "limit", st->window);
	}
	if (st->adaptive_window == 0) {
		json_null(&j, "adaptive");
	} else {
		json_uint(&j, "adaptive", st->adaptive_window);
	}
	json_uint(&j, "now", st->window_now);
	json_uint(&j, "peak", st->window_peak);
	json_object_end(&j);
	json_uint(&j, "rss_bytes", st->rss_bytes);
	json_double(&j, "cpu_s", (double)st->cpu_ns / 1e9, 3);
	json_nodes(&j, s);
	json_jobs(&j, s);
	json_object(&j, "counters");
	for (i = 0; i < NCOUNTERS; i++) {
		json_uint(&j, counters[i].name, counter_value(st, &counters[i]));
	}
	json_object_end(&j);
	json_object_end(&j);
	return json_end(&j);
}

static void show_nodes(const struct status *s)
{
	char mac[TOOL_TEXT], heard[TOOL_TEXT], rtt[TOOL_TEXT];
	int width = 4;
	size_t i;

	for (i = 0; i < s->nnodes; i++) {
		int n = (int)strlen(s->nodes[i].name);

		width = n > width ? n : width;
	}
	printf("\n%-*s  %-17s  %-5s  %5s  %10s  %9s  %9s  %7s  %9s\n", width, "node", "mac",
	       "state", "mtu", "heard", "rtt", "sent", "resent", "received");
	for (i = 0; i < s->nnodes; i++) {
		const struct collnet_node_info *n = &s->nodes[i];

		printf("%-*s  %-17s  %-5s  %5u  %10s  %9s  %9" PRIu64 "  %7" PRIu64 "  %9" PRIu64
		       "\n",
		       width, n->name, mac_text(n->mac, mac),
		       n->self	  ? "self"
		       : n->alive ? "alive"
				  : "dead",
		       n->mtu, n->self || n->mtu == 0 ? "-" : tool_format_ns(n->heard_ns, heard),
		       n->rtt_ns > 0 ? tool_format_ns(n->rtt_ns, rtt) : "-", n->data_sent,
		       n->data_resent, n->data_received);
	}
}

static void show_mismatches(const struct status *s)
{
	for (size_t i = 0; i < s->nnodes; i++) {
		if (s->nodes[i].mismatch[0] != '\0') {
			printf("%s %s\n", s->nodes[i].name, s->nodes[i].mismatch);
		}
	}
	if (s->stats.other_heard) {
		printf("nodes of cluster %u were heard, this node is of cluster %u\n",
		       s->stats.other_cluster, s->stats.cluster);
	}
}

static void show_jobs(const struct status *s)
{
	size_t i;

	if (s->njobs == 0) {
		puts("\nno jobs");
		return;
	}
	printf("\n%-24s  %6s  %6s  %7s  %-8s  %10s\n", "job", "ranks", "here", "present", "state",
	       "operations");
	for (i = 0; i < s->njobs; i++) {
		const struct collnet_job_info *job = &s->jobs[i];

		printf("%-24s  %6u  %6u  %7u  %-8s  %10" PRIu64 "\n", job->name, job->ranks,
		       job->local, job->present, job->ready ? "running" : "waiting",
		       job->operations);
	}
}

static bool show_text(const struct status *s)
{
	const struct collnet_stats *st = &s->stats;
	char rate[TOOL_TEXT];
	size_t i;

	printf("node %s, collnet %s, MTU %u, link %s\n", collnet_node_name(s->c), collnet_version(),
	       st->mtu, st->link_rate > 0 ? tool_format_rate(st->link_rate, rate) : "rate unknown");
	printf("interface %s%s, link %s, encapsulation %s, EtherType 0x%04X, cluster %u%s\n",
	       st->interface,
	       st->down		     ? " is DOWN"
	       : st->no_carrier != 0 ? " has no carrier"
				     : "",
	       st->link, st->encapsulation, st->ethertype, st->cluster,
	       st->authenticated != 0 ? ", authenticated" : "");
	if (st->adaptive_window != 0) {
		printf("window: adaptive, %u frames now; %u in flight, at most %u so far\n",
		       st->adaptive_window, st->window_now, st->window_peak);
	} else if (st->window == COLLNET_WINDOW_OFF) {
		printf("window: off; %u frames in flight, at most %u so far\n", st->window_now,
		       st->window_peak);
	} else {
		printf("window: %u frames; %u in flight, at most %u so far\n", st->window,
		       st->window_now, st->window_peak);
	}
	printf("daemon: %.1f MiB resident, %.2f s of processor time\n",
	       (double)st->rss_bytes / 0x1p20, (double)st->cpu_ns / 1e9);
	show_nodes(s);
	show_mismatches(s);
	show_jobs(s);
	puts("");
	for (i = 0; i < NCOUNTERS; i++) {
		printf("%-16s %14" PRIu64 "  %s\n", counters[i].name,
		       counter_value(st, &counters[i]), counters[i].what);
	}
	return fflush(stdout) == 0 && !ferror(stdout);
}

static const char help_text[] =
	"usage: collnet status [OPTION...]\n"
	"\n"
	"Shows the node table, jobs, global window and counters of this node's daemon.\n"
	"\n"
	"  --json         print one JSON object\n"
	"  --socket PATH  socket of the daemon (default: COLLNET_SOCKET, or /run/collnet/collnetd.sock)\n"
	"  --help         print this text\n"
	"\n"
	"Exit status: 0; 1: the daemon does not respond; 2: invalid command line.\n";

struct status_options {
	struct collnet_options open;
	bool json;
};

static int parse_option(void *into, int opt, char *arg, struct cn_err *err)
{
	struct status_options *o = into;

	(void)err;
	if (opt == 'j') {
		o->json = true;
	} else {
		o->open.socket = arg;
	}
	return COLLNET_OK;
}

int collnet_cmd_status(int argc, char **argv)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "json", no_argument, NULL, 'j' },
		{ "socket", required_argument, NULL, 's' },
		{ NULL, 0, NULL, 0 },
	};
	struct status_options o = { .json = false };
	struct status s = { 0 };
	int rc;

	collnet_options_init(&o.open);
	o.open.mode = COLLNET_MODE_DAEMON;
	rc = tool_options(argc, argv, options, parse_option, &o);
	if (rc < 0) {
		fputs(help_text, stdout);
		return TOOL_OK;
	}
	if (rc != TOOL_OK) {
		return rc;
	}
	if (optind < argc) {
		return tool_usage("unexpected argument '%.40s'", argv[optind]);
	}
	rc = collnet_open(&o.open, &s.c);
	if (rc != COLLNET_OK) {
		return complain(&s, rc); /* without a context, the message of the failed open */
	}
	rc = collect(&s);
	if (rc == TOOL_OK && !(o.json ? show_json(&s) : show_text(&s))) {
		tool_complain("standard output: %s", strerror(errno));
		rc = TOOL_FAILED;
	}
	collnet_close(s.c);
	free(s.nodes);
	free(s.jobs);
	return rc;
}
