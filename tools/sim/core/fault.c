/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fault injection. Faults of links are drawn per frame from the simulation's seed; a link without
 * faults draws nothing, so faults elsewhere do not change its random numbers.
 */
#include "tools/sim/core/parts.h"

static bool hit(struct cn_sim *s, uint32_t ppm)
{
	return ppm > 0 && sim_below(s, 1000000) < ppm;
}

/* Gilbert model: a burst begins with probability loss / (burst (1 - loss)) per frame and ends with
 * 1 / burst, so the mean loss is `loss`. */
static bool lost(struct cn_sim *s, struct dlink *l)
{
	const struct cn_sim_faults *f = &l->faults;

	if (f->burst < 2 || f->loss >= 1000000) {
		return hit(s, f->loss);
	}
	if (l->bursting) {
		l->bursting = sim_below(s, f->burst) != 0;
	} else {
		l->bursting = sim_below(s, (uint64_t)(1000000 - f->loss) * f->burst) < f->loss;
	}
	return l->bursting;
}

enum fault_outcome sim_fault_outcome(struct cn_sim *s, struct dlink *l, uint32_t len,
				     cn_time *extra)
{
	const struct cn_sim_faults *f = &l->faults;

	*extra = 0;
	if (l->cut) {
		return OUTCOME_LOST;
	}
	if (!l->faulty) {
		return OUTCOME_DELIVERED;
	}
	if (f->mtu > 0 && len > f->mtu + CN_ETH_HEADER) {
		return OUTCOME_LOST;
	}
	/* A corrupted frame fails its checksum at the far end, where it is dropped. */
	if (lost(s, l) || hit(s, f->corrupt)) {
		return OUTCOME_LOST;
	}
	if (hit(s, f->reorder)) {
		*extra = f->late;
	} else if (hit(s, f->spikes)) {
		*extra = f->spike;
	}
	return hit(s, f->duplicate) ? OUTCOME_DUPLICATED : OUTCOME_DELIVERED;
}

static void set(struct dlink *l, const struct cn_sim_faults *f)
{
	l->faults = *f;
	l->bursting = false;
	l->faulty = f->loss > 0 || f->duplicate > 0 || f->reorder > 0 || f->corrupt > 0 ||
		    f->spikes > 0 || f->mtu > 0;
}

void cn_sim_fault(struct cn_sim *s, uint32_t link, uint32_t end, const struct cn_sim_faults *f)
{
	for (uint32_t d = 0; d < 2 * s->topo->nlinks; d++) {
		if ((link == CN_TOPO_NONE || d / 2 == link) && (end == 2 || d % 2 == end)) {
			set(&s->links[d], f);
		}
	}
}

void cn_sim_cut(struct cn_sim *s, uint32_t link, uint32_t end, bool cut)
{
	for (uint32_t e = 0; e < 2; e++) {
		struct dlink *l = &s->links[2 * link + e];

		/* The port at `end` receives nothing. */
		if (end == 2 || e != end) {
			l->cuts += cut && !l->cut;
			l->cut = cut;
		}
	}
}

void cn_sim_partition(struct cn_sim *s, uint32_t id, const uint8_t *side)
{
	const uint64_t bit = (uint64_t)1 << id % CN_SIM_PARTITIONS;

	for (uint32_t i = 0; i < s->topo->nhosts; i++) {
		struct host *h = &s->hosts[i];

		h->left = side != NULL && side[i] == 1 ? h->left | bit : h->left & ~bit;
		h->right = side != NULL && side[i] == 2 ? h->right | bit : h->right & ~bit;
	}
}

bool sim_separated(const struct cn_sim *s, uint32_t from, uint32_t to)
{
	const struct host *a = &s->hosts[from], *b = &s->hosts[to];

	return ((a->left & b->right) | (a->right & b->left)) != 0;
}

void cn_sim_pause(struct cn_sim *s, uint32_t host, cn_time duration)
{
	struct host *h = &s->hosts[host];

	if (h->paused < s->now + duration) {
		h->paused = s->now + duration;
	}
}

void cn_sim_crash(struct cn_sim *s, uint32_t host)
{
	struct host *h = &s->hosts[host];
	struct cn_engine *e = h->engine;
	struct frame *f;

	h->engine = NULL; /* done functions find it gone already */
	if (e != NULL) {
		cn_engine_free(e);
	}
	while ((f = sim_queue_get(&h->ring)) != NULL) {
		sim_frame_put(s, f);
	}
}

int cn_sim_restart(struct cn_sim *s, uint32_t host, struct cn_err *err)
{
	if (s->hosts[host].engine != NULL) {
		return cn_fail(err, COLLNET_EINVAL, "host %s is running",
			       s->topo->vertices[s->hosts[host].vertex].name);
	}
	return sim_host_start(s, host, err);
}
