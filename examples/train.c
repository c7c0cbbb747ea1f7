/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data-parallel training: every rank has a share of the samples and a copy of the model, a network
 * of one hidden layer. In each step the ranks compute the gradients of their samples, add them up
 * by collnet_allreduce(), and change their copies alike. The sum has the same bits on all ranks, so
 * the copies stay equal without being sent.
 *
 *   cc train.c -o train $(pkg-config --cflags --libs collnet) -lm
 *   collnet lab run --shape 4x2 -- ./train		on an emulated cluster of 8 hosts
 *
 * Usage: train [STEPS] (300)
 */
#include <math.h>
#include <string.h>

#include "start.h"

#define SAMPLES 512
#define HIDDEN	32
#define RATE	0.03f

#define PARAMETERS (4 * HIDDEN + 1)

/* Two inputs, tanh, one output. */
union model {
	struct {
		float in[HIDDEN][2], bias[HIDDEN], out[HIDDEN], shift;
	};
	float parameters[PARAMETERS]; /* the same, to be reduced */
};

/* Pseudo-random numbers in -1 .. 1, the same on all ranks. */
static float draw(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (float)(*seed >> 8) / (float)(1 << 23) - 1;
}

/* The function to be learned. */
static float wanted(const float x[2])
{
	return x[0] * x[1] > 0 ? 1 : -1;
}

/* Adds the gradient of a sample's squared error; returns the error. */
static float add_gradient(const union model *m, const float x[2], union model *g)
{
	float h[HIDDEN], y = m->shift, d;

	for (int i = 0; i < HIDDEN; i++) {
		h[i] = tanhf(m->in[i][0] * x[0] + m->in[i][1] * x[1] + m->bias[i]);
		y += m->out[i] * h[i];
	}
	d = y - wanted(x);
	for (int i = 0; i < HIDDEN; i++) {
		float back = d * m->out[i] * (1 - h[i] * h[i]);

		g->out[i] += d * h[i];
		g->in[i][0] += back * x[0];
		g->in[i][1] += back * x[1];
		g->bias[i] += back;
	}
	g->shift += d;
	return d * d;
}

/* What all ranks must agree on: the bits of the model, mixed (FNV-1a). */
static uint64_t digest(const union model *m)
{
	const unsigned char *bytes = (const unsigned char *)m;
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < sizeof(*m); i++) {
		h = (h ^ bytes[i]) * 0x100000001b3u;
	}
	return h;
}

int main(int argc, char **argv)
{
	char *end = "";
	long steps = argc > 1 ? strtol(argv[1], &end, 10) : 300;
	float samples[SAMPLES][2], first_loss = 0, loss[2] = { 0, 0 };
	union model m, *gradient, *sum;
	uint64_t own, least, most;
	uint32_t seed = 1;
	int right;

	if (*end != '\0' || steps < 1 || steps > 1000000) {
		fprintf(stderr, "usage: train [STEPS], 1 to 1000000\n");
		return 2;
	}
	start();
	for (size_t i = 0; i < PARAMETERS; i++) {
		m.parameters[i] = draw(&seed);
	}
	for (int i = 0; i < SAMPLES; i++) {
		samples[i][0] = draw(&seed);
		samples[i][1] = draw(&seed);
	}
	gradient = allocate(sizeof(*gradient));
	sum = allocate(sizeof(*sum));
	for (long step = 0; step < steps; step++) {
		memset(gradient, 0, sizeof(*gradient));
		loss[0] = 0;
		for (size_t i = first_row(SAMPLES, rank); i < first_row(SAMPLES, rank + 1); i++) {
			loss[0] += add_gradient(&m, samples[i], gradient);
		}
		CHECK(collnet_allreduce(team, gradient->parameters, sum->parameters, PARAMETERS,
					COLLNET_FLOAT32, COLLNET_SUM, NULL));
		CHECK(collnet_allreduce(team, &loss[0], &loss[1], 1, COLLNET_FLOAT32, COLLNET_SUM,
					NULL));
		for (size_t i = 0; i < PARAMETERS; i++) {
			m.parameters[i] -= RATE / SAMPLES * sum->parameters[i];
		}
		first_loss = step == 0 ? loss[1] : first_loss;
	}
	own = digest(&m);
	CHECK(collnet_allreduce(team, &own, &least, 1, COLLNET_UINT64, COLLNET_MIN, NULL));
	CHECK(collnet_allreduce(team, &own, &most, 1, COLLNET_UINT64, COLLNET_MAX, NULL));
	right = least == most && loss[1] < first_loss / 2;
	if (rank == 0) {
		printf("train: %ld steps on %u ranks, loss %.3f to %.3f, %s: %s\n", steps, ranks,
		       (double)(first_loss / SAMPLES), (double)(loss[1] / SAMPLES),
		       least == most ? "equal models" : "different models",
		       right ? "correct" : "WRONG");
	}
	collnet_free(context, gradient);
	collnet_free(context, sum);
	finish();
	return right ? 0 : 1;
}
