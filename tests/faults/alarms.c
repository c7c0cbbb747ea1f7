/* SPDX-License-Identifier: BSD-2-Clause */
/* Short jobs, one after another, with other processes that only use processor time: none may fail.
 */
#include "cluster.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOAD_MAX   64u
#define OPERATIONS 5u
#define FORM_MS	   30000u

int alarms(struct cluster *c, uint32_t jobs, uint32_t load)
{
	struct job *j = &c->shared->job;
	uint64_t begin = now_us(), at, worst = 0;
	uint32_t failed = 0, errors = 0;
	pid_t burners[LOAD_MAX];

	load = load < LOAD_MAX ? load : LOAD_MAX;
	for (uint32_t i = 0; i < load; i++) {
		burners[i] = fork();
		if (burners[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (volatile uint64_t n = 0;; n++) {
			}
		}
	}
	for (uint32_t i = 0; i < jobs; i++) {
		uint32_t before = errors;

		*j = (struct job){ .seed = c->random,
				   .ranks = c->nhosts,
				   .local = 1,
				   .bytes = 1024,
				   .form_ms = FORM_MS,
				   .op_ms = FORM_MS };
		atomic_init(&j->stop, OPERATIONS);
		at = now_us();
		if (!job_start(c)) {
			return 1;
		}
		job_ended(c, 3 * FORM_MS, NOBODY);
		worst = now_us() - at > worst ? now_us() - at : worst;
		for (uint32_t r = 0; r < j->ranks; r++) {
			const struct slot *s = &c->shared->slots[r];

			errors += !atomic_load(&s->ended) || s->status != 0 || s->wrong > 0;
		}
		if (errors != before) {
			failed++;
			printf("job %u failed:\n", i);
			job_print(c, stdout);
		}
		job_reap(c);
	}
	for (uint32_t i = 0; i < load; i++) {
		kill(burners[i], SIGKILL);
		waitpid(burners[i], NULL, 0);
	}
	printf("%u jobs of %u ranks at load %u: %u false alarms (%u ranks), longest job %.2f s, "
	       "%.0f s in all\n",
	       jobs, c->nhosts, load, failed, errors, (double)worst / 1e6,
	       (double)(now_us() - begin) / 1e6);
	return failed > 0;
}
