/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The window of an operation: as requested, else the team's by the algorithm's rule (team_ready.c).
 * The latter is what ports hold. Frames in cables (the bandwidth-delay product) are added, by the
 * links' rates or as measured, and losses reduce it, so it changes as the operation runs. An
 * exchange whose frames all fit into the ports at once has a window that allows for this.
 */
#include "coll/engine_state.h"
#include "coll/op.h"
#include "sched/cost.h"

/* Frames per node of the longest exchange that may be sent at once. */
static uint32_t at_once_window(const struct cn_team *t)
{
	return t->burst * (t->layout.nnodes - 1);
}

/* True if the exchange is sent at once, beyond its window; not after losses. */
static bool goes_at_once(const struct cn_team *t, const struct cn_coll_args *a,
			 const struct cn_algorithm *g)
{
	const struct cn_adaptive_window *known = &t->known;

	return g->window_rule == CN_WINDOW_EXCHANGE && a->op == CN_OP_ALLTOALL &&
	       a->contention_aware && at_once_window(t) > t->window[g->window_rule] &&
	       known->window == known->most &&
	       cn_frames_per_pair(&t->layout, a->bytes, cn_node_payload(t->transport->node)) <=
		       t->burst;
}

/* What the ports hold, by the algorithm's rule; two frames where Eq. 4 allows one only if all nodes
 * have as much for each other. */
static uint32_t ports_window(const struct cn_team *t, enum cn_op_kind op,
			     const struct cn_algorithm *g)
{
	return g->window_rule == CN_WINDOW_EXCHANGE && op != CN_OP_ALLTOALL
		       ? t->by_eq4
		       : t->window[g->window_rule];
}

/* The window of an operation: as requested, else the algorithm's own. */
static uint32_t window_of(const struct cn_team *t, const struct cn_coll_args *a,
			  const struct cn_algorithm *g)
{
	if (a->window != COLLNET_WINDOW_AUTO) {
		return a->window;
	}
	return ports_window(t, a->op, g);
}

/* True for an exchange of blocks of any size with the automatic window. */
static bool is_uneven(const struct cn_coll_args *a, const struct cn_algorithm *g)
{
	return cn_op_is_vector(a->op) && cn_op_is_exchange(a->op) &&
	       a->window == COLLNET_WINDOW_AUTO && g->window_rule == CN_WINDOW_EXCHANGE;
}

/*
 * The automatic window of an exchange is right where all hosts have as much for each other. With
 * blocks of any size it does not keep them from filling one port; a window towards each does. Where
 * many send to one, frames left in flight by an earlier operation count, too. And where a node has
 * a message to either neighbour, each has half of the window: frames queued in one neighbour's port
 * would leave no room for the other.
 */
static uint32_t pair_window_of(const struct cn_team *t, const struct cn_coll_args *a,
			       const struct cn_algorithm *g)
{
	if (g->window_rule == CN_WINDOW_FAN_IN) {
		return window_of(t, a, g);
	}
	if (g->window_rule == CN_WINDOW_TWO_WAY) {
		return cn_topo_two_way_window(window_of(t, a, g));
	}
	return is_uneven(a, g) ? t->pair_window : COLLNET_WINDOW_OFF;
}

/* The nearest node with frames left to send; UINT32_MAX: none. */
static uint32_t nearest_target(const struct cn_op *op)
{
	cn_time least = CN_NEVER;
	uint32_t nearest = UINT32_MAX;

	for (uint32_t i = 0; i < op->ntargets; i++) {
		const struct cn_peer *p = op->team->nodes[op->targets[i]].peer;
		cn_time rtt = p != NULL ? cn_peer_least_rtt(cn_engine_peer_of(p)->peer) : CN_NEVER;

		if (rtt < least) {
			least = rtt;
			nearest = op->targets[i];
		}
	}
	return nearest;
}

/* The node that the next frame is for; UINT32_MAX: several. */
static uint32_t next_node(const struct cn_op *op)
{
	const struct cn_sched *s = &op->sched;

	if (op->algorithm->window_rule == CN_WINDOW_TWO_WAY) {
		return nearest_target(op);
	}
	return s->order == CN_ORDER_IN_TURN && op->next < s->n &&
			       s->actions[op->next].kind == CN_ACT_SEND
		       ? s->actions[op->next].peer
		       : UINT32_MAX;
}

/*
 * Frames in cables on the way to node k (UINT32_MAX: several) where the links' rates are not known:
 * as many as it has acknowledged in this time, once that is a full window, less one on each link,
 * which is in the port before it. The maximum counts: a window that fluctuates by a few frames
 * would be a bad clock.
 */
static uint32_t measured(struct cn_op *op, uint32_t k, cn_time rtt)
{
	const struct cn_team *t = op->team;
	struct cn_streams *s = k != UINT32_MAX ? &op->streams[k] : NULL;
	uint32_t in_flight, acked;
	uint64_t frames;

	if (s == NULL || t->nodes[k].peer == NULL || t->path_links == 0) {
		return 0;
	}
	in_flight = cn_peer_in_flight(t->nodes[k].peer);
	acked = s->sent > in_flight ? s->sent - in_flight : 0;
	if (acked >= t->window[op->algorithm->window_rule] && op->pulled > s->begun) {
		frames = acked * rtt / (op->pulled - s->begun);
		if (frames > s->carried + t->path_links) {
			s->carried = (uint32_t)(frames - t->path_links);
		}
	}
	return s->carried;
}

/* Frames to the next node that are in cables, not in ports. */
static uint32_t in_cables(struct cn_op *op)
{
	const struct cn_team *t = op->team;
	const uint32_t k = next_node(op);
	const struct cn_peer *p = k != UINT32_MAX ? t->nodes[k].peer : NULL;
	/* of the node's own transport: this one's frames may have waited in ports from the start */
	const cn_time rtt = p != NULL ? cn_team_in_cables(t, cn_peer_least_rtt(cn_engine_peer_of(p)
										       ->peer))
				      : t->rtt;
	const uint64_t frames = t->rates_known ? rtt * t->frames_per_ms / CN_MS
					       : measured(op, k, rtt);

	switch (op->algorithm->window_rule) {
	case CN_WINDOW_LINK:
	case CN_WINDOW_TWO_WAY:
		return (uint32_t)frames;
	case CN_WINDOW_FAN_IN:
		return (uint32_t)(frames * 3 / 4 / t->senders); /* they send in bursts */
	default:
		return 0;
	}
}

/*
 * True if the links' rates determine how many of its frames are in cables, and when; not after
 * losses. Not of full frames: few of these are in cables, and all would be sent at once after a
 * scheduling delay.
 */
static bool goes_by_rates(const struct cn_op *op)
{
	const struct cn_team *t = op->team;

	return op->args.op == CN_OP_ALLTOALL &&
	       op->args.bytes < cn_node_payload(t->transport->node) &&
	       op->source.adaptive == &t->known && t->known.window == t->known.most &&
	       t->exchanged_per_ms > 0;
}

/* A frame's time on a link, relative to a full one. */
static double length_of(const struct cn_op *op)
{
	const double overhead = cn_cost_default.overhead,
		     full = cn_node_payload(op->team->transport->node);

	return ((double)op->args.bytes + overhead) / (full + overhead);
}

/*
 * Frames of the exchange of this length, one in each interval, that are in cables on the way to a
 * node. By the round trips of short frames there are more, but all of these would leave the ports
 * no room for late ones.
 */
static double frames_in_cables(const struct cn_team *t, double length, double interval)
{
	const double of_full = (double)t->rtt, ports = (double)t->serialisation * length,
		     of_short = 0.7 * ((double)t->rtt_short - ports);

	return (of_short > of_full ? of_short : of_full) / 2 / interval;
}

/*
 * Frames of an exchange that are in cables follow what the ports hold as the busiest link can carry
 * them, or as others arrive.
 */
static uint32_t window_by_rates(struct cn_op *op, cn_time now)
{
	const struct cn_flight *f = &op->source.flight;
	/* in one interval the busiest link carries a node's share, a frame for each other one */
	const double length = length_of(op),
		     one = (double)CN_MS / op->team->exchanged_per_ms * length,
		     cables = frames_in_cables(op->team, length, one);
	const uint32_t ports = op->team->by_eq4, least = op->team->window[CN_WINDOW_EXCHANGE];
	uint64_t more = f->by_acks ? f->sent - f->unacked : f->received, passed;

	op->begun = op->begun == 0 ? now : op->begun;
	passed = (uint64_t)((double)(now - op->begun) / one);
	op->opens_at = (double)passed < cables
			       ? op->begun + (cn_time)((double)(passed + 1) * one) + 1
			       : CN_NEVER;
	more = passed > more ? passed : more;
	more = ports + (uint32_t)((double)more < cables ? (double)more : cables);
	return more > least ? (uint32_t)more : least;
}

/*
 * The automatic window now: what the ports hold, and frames that are in cables. These follow one by
 * one, as others arrive: sent at once they would all meet in one port. Where many send to one, one
 * is added per three acknowledged ones: all senders get their acknowledgements at about the same
 * time, and the frames that these release meet in the port. Of the operations with the window of an
 * exchange, only an all-to-all loads the links evenly enough.
 */
static uint32_t window_now(struct cn_op *op, cn_time now)
{
	const struct cn_flight *f = &op->source.flight;
	const struct cn_adaptive_window *a = op->source.adaptive;
	const uint32_t ports = ports_window(op->team, op->args.op, op->algorithm),
		       most = a != NULL ? a->window : ports + in_cables(op);
	uint64_t arrived = f->by_acks ? f->sent - f->unacked : f->received;

	op->opens_at = CN_NEVER;
	if (goes_by_rates(op)) {
		return window_by_rates(op, now);
	}
	if (a != NULL && op->args.op != CN_OP_ALLTOALL) {
		arrived = 0;
	}
	if (op->algorithm->window_rule == CN_WINDOW_FAN_IN) {
		arrived /= 3;
	}
	return ports >= most || arrived >= most - ports ? most : ports + (uint32_t)arrived;
}

void cn_op_window_begin(struct cn_op *op)
{
	const struct cn_team *t = op->team;
	const bool automatic = op->args.window == COLLNET_WINDOW_AUTO,
		   at_once = automatic && goes_at_once(t, &op->args, op->algorithm);

	op->begun = 0;
	op->opens_at = CN_NEVER;
	op->window = at_once ? at_once_window(t) : window_of(t, &op->args, op->algorithm);
	op->pair_window = pair_window_of(t, &op->args, op->algorithm);
	op->source.adaptive = automatic && op->algorithm->window_rule == CN_WINDOW_EXCHANGE
				      ? t->adaptive
				      : NULL;
	/* losses of what goes at once give the next one another window */
	op->automatic = !at_once && (op->source.adaptive != NULL ||
				     (automatic && op->window != COLLNET_WINDOW_OFF));
}

/*
 * True if the port to this node holds all frames for it, and drains before the senders, which wait
 * for acknowledgements, probe this node. The limit applies to the frames sent, too, which then need
 * no acknowledgements.
 */
static bool is_few(const struct cn_op *op)
{
	const struct cn_team *t = op->team;

	return op->frames_in <= t->port_holds && op->frames_out <= t->few &&
	       op->bytes_in + op->frames_in * cn_cost_default.overhead <= t->port_carries;
}

void cn_op_window_start(struct cn_op *op)
{
	struct cn_team *t = op->team;
	const bool uneven = is_uneven(&op->args, op->algorithm);

	op->before = uneven ? t->uneven : 0;
	op->own_port_has_room = uneven && is_few(op) && t->transport->sources.n == 1;
	if (uneven) {
		t->uneven = op->seq + 1;
	}
}

/*
 * A node that advertises room in the port to it (CN_FLAG_ROOM) for an operation has received all
 * frames of the one before. So the port holds all frames of this operation and the next one. If it
 * has advertised room only for the operation before, the port may not hold all of this one: then it
 * holds one additional frame from each other node.
 */
bool cn_op_peer_port_has_room(const struct cn_op *op, uint32_t k)
{
	const uint32_t last = op->team->nodes[k].room_for;

	return last != 0 &&
	       (last == op->seq + 1 || (last == op->before && op->streams[k].sent == 0));
}

void cn_op_window_update(struct cn_op *op, cn_time now)
{
	op->pulled = now;
	if (op->automatic) {
		op->window = window_now(op, now);
		if (op->algorithm->window_rule == CN_WINDOW_FAN_IN) {
			op->pair_window = op->window;
		} else if (op->algorithm->window_rule == CN_WINDOW_TWO_WAY) {
			op->pair_window = cn_topo_two_way_window(op->window);
		}
	}
}

uint32_t cn_op_ports_window(const struct cn_op *op)
{
	const uint32_t ports = ports_window(op->team, op->args.op, op->algorithm);

	return op->args.window == COLLNET_WINDOW_AUTO && ports < op->window ? ports : op->window;
}
