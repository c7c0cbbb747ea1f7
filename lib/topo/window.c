/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The global window W_g from the buffers of the switch ports (Tam and Wang, section 3.2, Eq. 3
 * and 4), generalised from equal switches under one root to any tree.
 *
 * A link of a tree parts the n hosts of an exchange into s and n - s. In one step every host sends
 * one frame to a partner, each of the n - 1 others equally often, so nu = s (n - s) / (n - 1)
 * frames a step go through the port on either end of the link. For a host's own port that is 1
 * and for the uplink of one of B switches with A hosts it is A * A (B - 1) / (A B - 1): the
 * paper's two cases. W_g frames a host in flight fill a port with at most W_g * nu frames.
 *
 * A link of c channels is c cables with a port and a buffer each, and a frame goes to one of them:
 * nu / c frames a step for each, or c times the buffer for all. (Evenly, in the mean: a pair of
 * hosts may well keep to one cable.) The spanning tree alone counts: other links carry nothing.
 *
 * Eq. 4 lets all of these frames wait in one port, as they do where the link is the busiest one,
 * and as they may in the input-buffered switches of the paper. A port of an output-buffered switch
 * whose link has time left sends while it receives: of a burst that arrives at the rate F of all
 * links that feed the port, and leaves at its rate R, the share 1 - R / F waits. The equation
 * neglects that where all links have one rate r, R = r; so the share (F - R) / (F - r) counts here.
 * At least 1/16 does: in an uplink as fast as all its hosts together no queue grows, but clocks
 * differ, and links carry other frames.
 *
 * The mean over the steps that Eq. 4 takes holds while all of the slowest links are crossed alike.
 * Frames for the slowest ones are acknowledged last, so the frames that a host has in flight become
 * those that cross one of these; one host with a slow cable collects the windows of all others in
 * its port. So nu is also the sum, over the hosts that send through the port, of the share that
 * this port has of a host's crossings of the slowest links. With equal hosts on one switch, and
 * with equal switches, these are Eq. 3 and 4.
 *
 * A file that says no buffer at all is taken for one of small switches: a window that is a little
 * too small costs a little, none lets queues overflow.
 *
 * W_g = floor(buffer c (n - 1) 1024 / (control s (n - s) q)) in whole numbers, where q is that
 * share in 1024ths, rounded up.
 */
#include <math.h>
#include <stdlib.h>

#include "topo/topo.h"

#define WINDOW_MAX 65535u
#define LEAST	   (CN_TOPO_ALL / 16)
#define FRAME	   1538u /* bytes on the wire of a full one */
#define TURN_MOST  40e-3 /* seconds: the transport delays an acknowledgement so long */

/* Frames that a link carries in n - 1 steps: nu (n - 1). Zero: the exchange does not cross it. */
static uint64_t crossings(uint64_t s, uint64_t n)
{
	return s * (n - s);
}

uint32_t cn_topo_assumed_buffer(const struct cn_topo *t)
{
	for (uint32_t i = 0; i < t->nlinks; i++) {
		if (t->links[i].buffer != 0) {
			return 0;
		}
	}
	return CN_TOPO_BUFFER_ASSUMED;
}

static uint32_t buffer_of(const struct cn_topo *t, uint32_t link, uint32_t assumed)
{
	return t->links[link].buffer != 0 ? t->links[link].buffer : assumed;
}

/* Frames that the ports of all channels hold; 0: not known. */
static uint64_t room_of(const struct cn_topo *t, uint32_t link, uint32_t assumed)
{
	return (uint64_t)buffer_of(t, link, assumed) * t->links[link].channels;
}

/*
 * a / b < c / d, without a fraction and without a product, which might not fit: while the whole
 * parts are equal the remainders decide, the other way up.
 */
static bool is_less(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	uint64_t t;

	while (a / b == c / d) {
		a %= b;
		c %= d;
		if (a == 0 || c == 0) {
			return a == 0 && c != 0;
		}
		t = a;
		a = d;
		d = t;
		t = b;
		b = c;
		c = t;
	}
	return a / b < c / d;
}

/* A vertex as the sender of what its parent's port, or all the rest of the tree, receives. */
struct feed {
	uint32_t hosts;	 /* at or below */
	double rates;	 /* of their links, together */
	double up;	 /* what the link to the parent can bring, bit/s; INFINITY: not known */
	double down;	 /* what the link from the parent can bring */
	double fan_in;	 /* what feeds the vertex from below */
	bool is_slowest; /* the link to the parent, or as slow as the slowest one */
	double crosses;	 /* cross_slowest() */
};

static double smaller(double a, double b)
{
	return b < a ? b : a;
}

static double rate_of(const struct cn_topo_link *l)
{
	return l->rate != 0 ? (double)l->rate * l->channels : INFINITY;
}

static struct feed *feeds(const struct cn_topo *t, const uint32_t *hosts, uint32_t n)
{
	struct feed *f = calloc(t->nvertices, sizeof(*f));
	uint32_t i, v;

	for (i = 0; f != NULL && i < n; i++) {
		v = hosts[i];
		if (v < t->nvertices && t->vertices[v].parent_link != CN_TOPO_NONE) {
			f[v].hosts = 1;
			f[v].rates = f[v].fan_in = rate_of(&t->links[t->vertices[v].parent_link]);
		}
	}
	for (i = t->nvertices; f != NULL && i-- > 1;) {
		struct feed *parent = &f[t->vertices[t->order[i]].parent];

		v = t->order[i];
		f[v].up = smaller(f[v].fan_in, rate_of(&t->links[t->vertices[v].parent_link]));
		parent->hosts += f[v].hosts;
		parent->rates += f[v].rates;
		parent->fan_in += f[v].up;
	}
	for (i = 1; f != NULL && i < t->nvertices; i++) {
		const struct feed *parent = &f[t->vertices[t->order[i]].parent];

		v = t->order[i];
		/* in this order: where a rate is not known the sum is no number */
		f[v].down = smaller(rate_of(&t->links[t->vertices[v].parent_link]),
				    parent->down + parent->fan_in - f[v].up);
	}
	return f;
}

/* The share, of CN_TOPO_ALL, of the frames of `senders` of n hosts, with links of `rates` together,
 * that waits in a port of this rate, which they reach at the rate `fan_in`. */
static uint32_t waiting(double rate, double fan_in, double rates, uint32_t senders, uint32_t n)
{
	const double each = rates / senders, load = each * (double)crossings(senders, n) / (n - 1);
	uint32_t share;

	if (!isfinite(rate) || !isfinite(rates) || !isfinite(fan_in)) {
		return CN_TOPO_ALL;
	}
	if (n - senders > 1) {
		fan_in = smaller(fan_in, each * (n - senders));
	}
	if (fan_in <= rate) {
		return LEAST;
	}
	if (load >= rate || fan_in - rate >= fan_in - each) {
		return CN_TOPO_ALL;
	}
	share = 1 + (uint32_t)(CN_TOPO_ALL * (fan_in - rate) / (fan_in - each));
	return share > LEAST ? share : LEAST;
}

/* The share of the two ports of the link from v to its parent, the greater one. */
static uint32_t waiting_at(const struct cn_topo *t, const struct feed *f, uint32_t v, uint32_t n)
{
	const struct cn_vertex *at = &t->vertices[v];
	const struct feed *parent = &f[at->parent], *all = &f[t->root];
	const double rate = rate_of(&t->links[at->parent_link]);
	uint32_t up = 0, down;

	if (at->input_buffered || t->vertices[at->parent].input_buffered) {
		return CN_TOPO_ALL;
	}
	if (at->is_switch) {
		up = waiting(rate, f[v].fan_in, f[v].rates, f[v].hosts, n);
	}
	down = waiting(rate, parent->down + parent->fan_in - f[v].up, all->rates - f[v].rates,
		       n - f[v].hosts, n);
	return up > down ? up : down;
}

uint32_t *cn_topo_waiting(const struct cn_topo *t, const uint32_t *hosts, uint32_t n)
{
	struct feed *f = feeds(t, hosts, n);
	uint32_t *share = f != NULL ? calloc(t->nvertices, sizeof(*share)) : NULL;

	for (uint32_t i = 1; share != NULL && i < t->nvertices; i++) {
		uint32_t v = t->order[i];

		if (crossings(f[v].hosts, n) != 0) {
			share[v] = waiting_at(t, f, v, n);
		}
	}
	free(f);
	return share;
}

uint32_t cn_topo_port_window(uint64_t frames, uint32_t s, uint32_t n, uint32_t share,
			     uint32_t control)
{
	const uint64_t window = frames * CN_TOPO_ALL * (n - 1) /
				(control * crossings(s, n) * share);

	return window < 1 ? 1 : window > WINDOW_MAX ? WINDOW_MAX : (uint32_t)window;
}

uint32_t cn_topo_window(const struct cn_topo *t, const uint32_t *hosts, uint32_t n,
			uint32_t control, uint32_t *bottleneck)
{
	uint64_t best_room = 0, best_cross = 0, cross, room;
	uint32_t i, v, link, best = CN_TOPO_NONE, assumed = cn_topo_assumed_buffer(t);
	uint32_t share, least = COLLNET_WINDOW_OFF;
	struct feed *f;

	if (bottleneck != NULL) {
		*bottleneck = CN_TOPO_NONE;
	}
	if (n < 2 || n > t->nvertices) {
		return COLLNET_WINDOW_OFF;
	}
	f = feeds(t, hosts, n);
	if (f == NULL) {
		return 0;
	}
	for (i = 1; i < t->nvertices; i++) {
		v = t->order[i];
		link = t->vertices[v].parent_link;
		room = room_of(t, link, assumed);
		if (room == 0 || crossings(f[v].hosts, n) == 0) {
			continue;
		}
		share = waiting_at(t, f, v, n);
		cross = crossings(f[v].hosts, n) * share;
		if (best == CN_TOPO_NONE || is_less(room, cross, best_room, best_cross)) {
			best = link;
			best_room = room;
			best_cross = cross;
			least = cn_topo_port_window(room, f[v].hosts, n, share, control);
		}
	}
	free(f);
	if (bottleneck != NULL) {
		*bottleneck = best;
	}
	return least;
}

/* What a link takes for the frames of n - 1 steps; 0: its rate is not known. */
static double time_of(const struct cn_topo *t, const struct feed *f, uint32_t v, uint32_t n)
{
	return (double)crossings(f[v].hosts, n) / rate_of(&t->links[t->vertices[v].parent_link]);
}

/* What the slowest link takes, and the fastest cable of a host; 0: no rate of such is known. */
static double longest_time(const struct cn_topo *t, const struct feed *f, uint32_t n, double *cable)
{
	double longest = 0;

	*cable = 0;
	for (uint32_t i = 1; i < t->nvertices; i++) {
		const double time = time_of(t, f, t->order[i], n);

		longest = time > longest ? time : longest;
		if (!t->vertices[t->order[i]].is_switch && time > 0 &&
		    (*cable == 0 || time < *cable)) {
			*cable = time;
		}
	}
	return longest;
}

/*
 * Sets `crosses` of each host to 1 / how often its frames cross one of the slowest links in n - 1
 * steps, of other vertices to the sum of these below. Its own cable does not count on the way out:
 * what waits for that is in no port. Links differ by a tenth that are meant to be equal: rates may
 * be measured ones.
 */
static void cross_slowest(const struct cn_topo *t, struct feed *f, uint32_t n, double longest)
{
	double all = 0;

	for (uint32_t i = 1; i < t->nvertices; i++) {
		struct feed *at = &f[t->order[i]];

		at->is_slowest = longest > 0 && time_of(t, f, t->order[i], n) >= 0.9 * longest;
		all += at->is_slowest ? at->hosts : 0;
	}
	f[t->root].crosses = all;
	for (uint32_t i = 1; i < t->nvertices; i++) {
		const struct cn_vertex *v = &t->vertices[t->order[i]];
		struct feed *at = &f[t->order[i]];

		at->crosses = f[v->parent].crosses;
		if (at->is_slowest) {
			at->crosses += v->is_switch ? (double)n - 2.0 * at->hosts : -1;
		}
	}
	for (uint32_t i = t->nvertices; i-- > 0;) {
		struct feed *at = &f[t->order[i]];

		at->crosses = t->vertices[t->order[i]].is_switch ? 0
			      : at->hosts > 0 && at->crosses > 0 ? 1 / at->crosses
								 : 0;
	}
	for (uint32_t i = t->nvertices; i-- > 1;) {
		f[t->vertices[t->order[i]].parent].crosses += f[t->order[i]].crosses;
	}
}

/* Frames that all hosts with one frame in flight have at the fuller port of a slowest link. */
static double at_slowest(const struct cn_topo *t, const struct feed *f, uint32_t v, uint32_t n)
{
	const double up = (n - f[v].hosts) * f[v].crosses,
		     down = f[v].hosts * (f[t->root].crosses - f[v].crosses);

	return t->vertices[v].is_switch && up > down ? up : down;
}

uint32_t cn_topo_slowest_window(const struct cn_topo *t, const uint32_t *hosts, uint32_t n,
				uint64_t time, uint32_t bytes, uint32_t *slowest)
{
	struct feed *f = n > 1 && n <= t->nvertices ? feeds(t, hosts, n) : NULL;
	const uint32_t assumed = cn_topo_assumed_buffer(t);
	double least = WINDOW_MAX + 1.0, longest, cable, window;

	*slowest = CN_TOPO_NONE;
	if (f == NULL) {
		return n < 2 || n > t->nvertices ? COLLNET_WINDOW_OFF : 0;
	}
	longest = longest_time(t, f, n, &cable);
	cross_slowest(t, f, n, longest);
	for (uint32_t i = 1; i < t->nvertices; i++) {
		const uint32_t v = t->order[i], link = t->vertices[v].parent_link;
		const double room = (double)room_of(t, link, assumed);

		if (room > 0 && f[v].is_slowest) {
			window = room * CN_TOPO_ALL / waiting_at(t, f, v, n) /
				 at_slowest(t, f, v, n);
			*slowest = window < least ? link : *slowest;
			least = smaller(least, window);
		}
	}
	free(f);
	if (*slowest == CN_TOPO_NONE) {
		return COLLNET_WINDOW_OFF;
	}
	/* Frames for others are in the sender's cable meanwhile, the receiver's, and between. */
	least += 2 * cable / longest + (double)time / 1e9 * (n - 1) / (longest * 8 * bytes);
	least = least < 1 ? 1 : least;
	return least < WINDOW_MAX ? (uint32_t)least : WINDOW_MAX;
}

/*
 * Frames in the port of the link from v to its parent, in the mean, with two of each host in
 * flight. In that of a slowest link all may wait of the hosts before it, and none at the one behind
 * it, which they reach at the same rate; but those in the cables of the host and of the receiver.
 */
static double two_at(const struct cn_topo *t, const struct feed *f, uint32_t v, uint32_t n,
		     double longest, double cable)
{
	const uint32_t below = f[v].hosts, senders = below < n - below ? below : n - below;

	if (t->vertices[v].is_switch && time_of(t, f, v, n) >= 0.9 * longest) {
		return senders * (2 - 2 * cable / longest);
	}
	return 2.0 * (double)crossings(below, n) / (n - 1) * waiting_at(t, f, v, n) / CN_TOPO_ALL;
}

/* True if all ports hold the mean of these plus four standard deviations. */
static bool hold_two(const struct cn_topo *t, const struct feed *f, uint32_t n)
{
	const uint32_t assumed = cn_topo_assumed_buffer(t);
	double cable, mean, longest = longest_time(t, f, n, &cable);

	if (longest * 8 * FRAME > TURN_MOST) {
		return false;
	}
	for (uint32_t i = 1; i < t->nvertices; i++) {
		const uint32_t v = t->order[i], link = t->vertices[v].parent_link;
		const double room = (double)room_of(t, link, assumed);

		if (crossings(f[v].hosts, n) == 0) {
			continue;
		}
		if (t->links[link].rate == 0 || t->vertices[v].input_buffered ||
		    t->vertices[t->vertices[v].parent].input_buffered) {
			return false;
		}
		mean = two_at(t, f, v, n, longest, cable);
		mean = mean < 2 ? 2 : mean;
		if (room > 0 && (room < mean || (room - mean) * (room - mean) < 16 * mean)) {
			return false;
		}
	}
	return true;
}

uint32_t cn_topo_widened(const struct cn_topo *t, const uint32_t *hosts, uint32_t n,
			 uint32_t window)
{
	const uint32_t data = window == 1 ? cn_topo_window(t, hosts, n, 1, NULL) : 1;
	struct feed *f;

	if (data == 1 || n < 2 || n > t->nvertices) {
		return window;
	}
	f = feeds(t, hosts, n);
	window = data == 0 || f == NULL ? 0 : hold_two(t, f, n) ? 2 : 1;
	free(f);
	return window;
}

uint32_t cn_topo_exchange_window(const struct cn_topo *t, const uint32_t *hosts, uint32_t n,
				 uint64_t time, uint32_t bytes)
{
	uint32_t link, window = cn_topo_window(t, hosts, n, 2, NULL),
		       slowest = cn_topo_slowest_window(t, hosts, n, time, bytes, &link);

	window = cn_topo_widened(t, hosts, n, window);
	return slowest < window ? slowest : window;
}

double cn_topo_share(const struct cn_topo *t, const uint32_t *hosts, uint32_t n, bool exchange)
{
	struct feed *f = n > 1 && n <= t->nvertices ? feeds(t, hosts, n) : NULL;
	double least = INFINITY;

	if (f == NULL) {
		return n < 2 || n > t->nvertices ? 0 : -1;
	}
	for (uint32_t i = 1; i < t->nvertices; i++) {
		const uint32_t v = t->order[i];
		const uint64_t cross = crossings(f[v].hosts, n);
		const struct cn_topo_link *l = &t->links[t->vertices[v].parent_link];
		const double rate = (double)l->rate;

		if (cross != 0) { /* a message takes one channel */
			least = smaller(least,
					exchange ? rate * l->channels * (n - 1) / (double)cross
						 : rate);
		}
	}
	free(f);
	return isfinite(least) ? least : 0;
}

/* What a port holds of frames that hosts send at once. */
struct burst {
	double left; /* of each frame per pair, when the last one comes */
	double turn; /* at most besides, of those that all hosts send at a time */
};

/* `all` frames come from so many hosts, with links of `rates` together, at the rate `most` for a
 * moment, and in the mean as they send to the other hosts. */
static struct burst burst(double all, double rate, double most, double rates, double senders,
			  double share)
{
	const double each = rates / senders, mean = smaller(most, rates * share);
	struct burst b = { all, 0 };

	if (!isfinite(rate) || !isfinite(mean)) {
		return b;
	}
	b.left = mean > rate ? all * (1 - rate / mean) : 0;
	b.turn = (smaller(most, rates) - rate) / each;
	b.turn = b.turn > 0 ? b.turn : 0;
	return b;
}

/* How many frames for each other host all hosts may send at once, by the port of this room. */
static double burst_by(const struct burst *b, double room)
{
	room = room * 3 / 4 - b->turn;
	return room <= 0 ? 0 : b->left > 0 ? room / b->left : WINDOW_MAX;
}

/* Likewise, by both ports of the link from v to its parent. */
static double burst_at(const struct cn_topo *t, const struct feed *f, uint32_t v, uint32_t n,
		       double room)
{
	const struct cn_vertex *at = &t->vertices[v];
	const struct feed *parent = &f[at->parent], *all = &f[t->root];
	const double rate = rate_of(&t->links[at->parent_link]), s = f[v].hosts;
	const double cross = (double)crossings(f[v].hosts, n);
	struct burst up = { cross, 0 }, down;

	if (!at->is_switch || at->input_buffered || t->vertices[at->parent].input_buffered) {
		return burst_by(&up, room);
	}
	up = burst(cross, rate, f[v].fan_in, f[v].rates, s, (n - s) / (n - 1));
	down = burst(cross, rate, parent->down + parent->fan_in - f[v].up, all->rates - f[v].rates,
		     n - s, s / (n - 1));
	return smaller(burst_by(&up, room), burst_by(&down, room));
}

uint32_t cn_topo_burst(const struct cn_topo *t, const uint32_t *hosts, uint32_t n)
{
	struct feed *f = n > 1 && n <= t->nvertices ? feeds(t, hosts, n) : NULL;
	const uint32_t assumed = cn_topo_assumed_buffer(t);
	double least = WINDOW_MAX;

	if (f == NULL) {
		return n < 2 || n > t->nvertices ? 0 : COLLNET_WINDOW_OFF;
	}
	for (uint32_t i = 1; i < t->nvertices; i++) {
		const uint32_t v = t->order[i], link = t->vertices[v].parent_link;
		const double room = (double)room_of(t, link, assumed);

		if (room != 0 && crossings(f[v].hosts, n) != 0) {
			least = smaller(least, burst_at(t, f, v, n, room));
		}
	}
	free(f);
	return (uint32_t)least;
}

/* The smallest buffer of a port that one of the hosts needs to reach another; COLLNET_WINDOW_OFF:
 * none is limited; 0: no memory. */
static uint32_t smallest_buffer(const struct cn_topo *t, const uint32_t *hosts, uint32_t n)
{
	struct feed *f = feeds(t, hosts, n);
	uint32_t assumed = cn_topo_assumed_buffer(t), least = f != NULL ? COLLNET_WINDOW_OFF : 0;

	for (uint32_t i = 1; f != NULL && i < t->nvertices; i++) {
		uint32_t v = t->order[i],
			 buffer = buffer_of(t, t->vertices[v].parent_link, assumed);

		if (buffer != 0 && crossings(f[v].hosts, n) != 0 && buffer < least) {
			least = buffer;
		}
	}
	free(f);
	return least;
}

uint32_t cn_topo_link_window(const struct cn_topo *t, const uint32_t *hosts, uint32_t n)
{
	uint32_t least;

	if (n < 2 || n > t->nvertices) {
		return COLLNET_WINDOW_OFF;
	}
	least = smallest_buffer(t, hosts, n);
	if (least == COLLNET_WINDOW_OFF || least == 0) {
		return least;
	}
	least = least / 2 > 0 ? least / 2 : 1;
	return least > WINDOW_MAX ? WINDOW_MAX : least;
}

uint32_t cn_topo_fan_in(const struct cn_topo *t, const uint32_t *hosts, uint32_t n,
			uint32_t *senders)
{
	uint32_t least = CN_TOPO_BUFFER_ASSUMED;

	*senders = n > 1 ? n - 1 : 1;
	if (t != NULL && n <= t->nvertices) {
		least = smallest_buffer(t, hosts, n);
	}
	if (least == COLLNET_WINDOW_OFF || least == 0) {
		return least;
	}
	least -= least > 1 ? least / 8 + 1 : 0;
	least = least > WINDOW_MAX ? WINDOW_MAX : least;
	*senders = *senders < least ? *senders : least;
	return least / *senders;
}

uint32_t cn_topo_few(const struct cn_topo *t, const uint32_t *hosts, uint32_t n)
{
	struct feed *f = n > 1 && n <= t->nvertices ? feeds(t, hosts, n) : NULL;
	const uint32_t burst = cn_topo_burst(t, hosts, n);
	uint32_t across = n - 1;

	if (f == NULL || burst == COLLNET_WINDOW_OFF) {
		free(f);
		return n < 2 || n > t->nvertices ? 0 : COLLNET_WINDOW_OFF;
	}
	for (uint32_t i = 1; i < t->nvertices; i++) {
		const uint32_t below = f[t->order[i]].hosts,
			       few = below < n - below ? below : n - below;

		if (few > 1 && few < across) {
			across = few;
		}
	}
	free(f);
	return across * burst;
}
