/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosts and processors. A host's processes stay on its own processors: if those of several hosts
 * moved among all, a daemon would take turns with one of another host while the processor next to
 * it is idle, and times would depend on where the scheduler put them.
 */
#include <sched.h>

#include "tools/lab/command.h"

void lab_assign_cpus(struct lab *lab)
{
	cpu_set_t allowed;
	uint32_t cpus[CPU_SETSIZE], n = 0;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0) {
		return; /* more processors than a cpu_set_t has: there is no lack of them */
	}
	for (uint32_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &allowed)) {
			cpus[n++] = cpu;
		}
	}
	for (uint32_t i = 0; n > 0 && i < lab->nhosts; i++) {
		struct lab_host *h = &lab->hosts[i];
		const bool shared = lab->nhosts >= n;
		const uint32_t first = shared ? i % n : i * n / lab->nhosts;
		const uint32_t end = shared ? first + 1 : (i + 1) * n / lab->nhosts;

		for (uint32_t k = first; k < end; k++) {
			CPU_SET(cpus[k], &h->cpus);
		}
	}
}

void lab_bind(const struct lab_host *h)
{
	if (CPU_COUNT(&h->cpus) > 0) {
		(void)sched_setaffinity(0, sizeof(h->cpus), &h->cpus);
	}
}

void lab_write_bind(const struct lab_host *h, FILE *f)
{
	const char *separator = "taskset -p -c ";

	for (uint32_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &h->cpus)) {
			fprintf(f, "%s%u", separator, cpu);
			separator = ",";
		}
	}
	if (*separator == ',') {
		fputs(" $$ >/dev/null\n", f);
	}
}
