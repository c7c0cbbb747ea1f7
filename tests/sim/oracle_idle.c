/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The oracle of idle times. While calls are outstanding and no rank delays its next one, some frame
 * of theirs moves: a host sends it, it passes a link, or a host receives it. No pause is longer
 * than
 *
 *     R + C + L
 *
 * R: a round trip: a full frame and its acknowledgement over the longest path, with processors and
 *    the longest scheduling delay;
 * C: the longest time for which the scenario delays a combination;
 * L: recovery, once a frame has been lost or refused: the cap of the retransmission timeout's
 *    backoff (dead_after / 3), and the delay of a delayed frame.
 *
 * Hellos do not count. Hosts that are gone for a while (PROFILE_OUTAGE) and attackers, which make
 * nodes wait, are not checked.
 */
#include "fixture.h"

#include "proto/wire.h"

/* All that the ranks may call is called. */
static bool all_called(const struct fixture *fx)
{
	for (uint32_t i = 0; i < fx->s->ranks; i++) {
		if (fx->ranks[i].waiting) {
			return false;
		}
	}
	return fx->open > 0;
}

static cn_time allowance(struct fixture *fx)
{
	const struct cn_sim_faults *f = &fx->s->faults[0].link_faults;
	const cn_time usual = fx->round_trip + FIXTURE_LATE;
	struct cn_sim_totals now;

	cn_sim_totals(fx->sim, &now);
	if (fx->s->profile != PROFILE_LOSS && now.lost == 0 && now.drops == 0 &&
	    now.ring_drops == 0 && !fx->refused) {
		return usual;
	}
	return usual + fx->s->config.engine.node.dead_after / 3 +
	       (fx->s->nfaults > 0 ? f->late + f->spike : 0);
}

void oracle_idle_begin(struct fixture *fx)
{
	fx->round_trip = (cn_time)(oracle_round_trip(fx) * 1e9);
	fx->active = cn_sim_now(fx->sim);
}

void oracle_idle_note(struct fixture *fx)
{
	const cn_time now = cn_sim_now(fx->sim);

	if (now > fx->active + fx->round_trip && all_called(fx) && fx->s->attackers == 0 &&
	    (fx->s->profile == PROFILE_NONE || fx->s->profile == PROFILE_LOSS) &&
	    now > fx->active + allowance(fx)) {
		fixture_report(fx, "idle for %.3f ms where a round trip takes %.3f",
			       (double)(now - fx->active) / 1e6, (double)fx->round_trip / 1e6);
	}
	fx->active = now > fx->active ? now : fx->active;
}

void oracle_idle_record(struct fixture *fx, const struct cn_sim_record *record)
{
	struct cn_wire w;

	if (record->kind == CN_SIM_DROPPED || record->len < CN_ETH_HEADER ||
	    cn_wire_get(record->frame + CN_ETH_HEADER, record->len - CN_ETH_HEADER, &w) !=
		    CN_WIRE_OK ||
	    w.type == CN_TYPE_HELLO) {
		return;
	}
	fx->refused |= w.type == CN_TYPE_ACK && (w.flags & CN_FLAG_RNR) != 0;
	oracle_idle_note(fx);
	if (record->kind == CN_SIM_SENT && record->until > fx->active) {
		fx->active = record->until; /* its last bit leaves then */
	}
}
