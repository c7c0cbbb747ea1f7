# SPDX-License-Identifier: BSD-2-Clause
# collnet, the command: one file a verb, over a convenience library that the tests link too.

noinst_LTLIBRARIES += tools/libcn_tools.la
tools_libcn_tools_la_SOURCES = \
	tools/args.c \
	tools/bench.c \
	tools/bench.h \
	tools/bench_choose.c \
	tools/bench_coll.c \
	tools/bench_model.c \
	tools/bench_model.h \
	tools/bench_options.c \
	tools/bench_p2p.c \
	tools/bench_pattern.c \
	tools/bench_pattern.h \
	tools/bench_plan.c \
	tools/bench_report.c \
	tools/emit.c \
	tools/emit.h \
	tools/emit_dot.c \
	tools/emit_json.c \
	tools/emit_mpi.c \
	tools/emit_mpi.h \
	tools/emit_mpi_text.c \
	tools/emit_text.c \
	tools/experiment.c \
	tools/experiment.h \
	tools/experiment_aapc.c \
	tools/experiment_allgather.c \
	tools/experiment_bcast.c \
	tools/experiment_bcast.h \
	tools/experiment_exchange.c \
	tools/experiment_flows.c \
	tools/experiment_limits.c \
	tools/experiment_rings.c \
	tools/experiment_rings.h \
	tools/experiment_sim.c \
	tools/experiment_sim.h \
	tools/experiment_smp.c \
	tools/json.c \
	tools/lab.c \
	tools/lab.h \
	tools/lab_net.c \
	tools/lab_plan.c \
	tools/lab_ports.c \
	tools/lab_run.c \
	tools/lab_start.c \
	tools/lab_tool.c \
	tools/schedule.c \
	tools/schedule.h \
	tools/schedule_options.c \
	tools/schedule_plan.c \
	tools/schedule_read.c \
	tools/schedule_report.c \
	tools/sim.c \
	tools/sim.h \
	tools/sim_model.c \
	tools/sim_options.c \
	tools/sim_report.c \
	tools/sim_run.c \
	tools/sim_watch.c \
	tools/status.c \
	tools/tool.h \
	tools/topo.c \
	tools/topo.h \
	tools/topo_draw.c \
	tools/topo_make.c \
	tools/topo_read.c \
	tools/topo_show.c
tools_libcn_tools_la_LIBADD = -lm

bin_PROGRAMS += tools/collnet
tools_collnet_SOURCES = tools/collnet.c
tools_collnet_LDADD = tools/libcn_tools.la lib/libcn_sim.la lib/libcn_all.la

EXTRA_DIST += tools/build tools/deps tools/experiments tools/quickstart
