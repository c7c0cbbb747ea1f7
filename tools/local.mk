# SPDX-License-Identifier: BSD-2-Clause
# collnet, the command: one folder per subcommand, over a convenience library that the tests link too.

noinst_LTLIBRARIES += tools/libcn_shared.la tools/libcn_plan.la tools/libcn_sim.la \
	tools/libcn_tools.la tools/libcn_compare.la
# Programs alone link them, so that no second object of each file is compiled for a shared library.
tools_libcn_shared_la_LIBTOOLFLAGS = --tag=disable-shared
tools_libcn_plan_la_LIBTOOLFLAGS = --tag=disable-shared
tools_libcn_sim_la_LIBTOOLFLAGS = --tag=disable-shared
tools_libcn_tools_la_LIBTOOLFLAGS = --tag=disable-shared
tools_libcn_compare_la_LIBTOOLFLAGS = --tag=disable-shared

tools_libcn_shared_la_SOURCES = \
	tools/args.c \
	tools/json.c \
	tools/tool.h

tools_libcn_plan_la_SOURCES = \
	tools/plan/check.c \
	tools/plan/check.h \
	tools/plan/check_data.c \
	tools/plan/check_links.c \
	tools/plan/check_match.c \
	tools/plan/check_order.c \
	tools/plan/check_parts.h \
	tools/plan/check_reduce.c \
	tools/plan/draw.c \
	tools/plan/draw.h \
	tools/plan/emit.c \
	tools/plan/emit.h \
	tools/plan/emit_dot.c \
	tools/plan/emit_json.c \
	tools/plan/emit_mpi.c \
	tools/plan/emit_mpi.h \
	tools/plan/emit_mpi_text.c \
	tools/plan/emit_text.c \
	tools/plan/random.c \
	tools/plan/random.h \
	tools/plan/span.c \
	tools/plan/span.h \
	tools/plan/write.c \
	tools/plan/write.h

# The cluster in virtual time: `collnet sim`, the experiments of the papers and tests run it.
tools_libcn_sim_la_SOURCES = \
	tools/sim/core/event.c \
	tools/sim/core/fault.c \
	tools/sim/core/host.c \
	tools/sim/core/job.c \
	tools/sim/core/job.h \
	tools/sim/core/net.c \
	tools/sim/core/parts.h \
	tools/sim/core/sim.c \
	tools/sim/core/sim.h

tools_libcn_tools_la_SOURCES = \
	tools/bench/baseline.c \
	tools/bench/baseline.h \
	tools/bench/blocks.c \
	tools/bench/blocks.h \
	tools/bench/coll.c \
	tools/bench/command.c \
	tools/bench/command.h \
	tools/bench/options.c \
	tools/bench/p2p.c \
	tools/bench/pair.c \
	tools/bench/pair.h \
	tools/bench/pattern.c \
	tools/bench/pattern.h \
	tools/bench/pingpong.c \
	tools/bench/plan.c \
	tools/bench/report.c \
	tools/bench/stream.c \
	tools/gnuplot.c \
	tools/gnuplot.h \
	tools/lab/command.c \
	tools/lab/command.h \
	tools/lab/cpus.c \
	tools/lab/fault.c \
	tools/lab/namespaces.c \
	tools/lab/net.c \
	tools/lab/plan.c \
	tools/lab/ports.c \
	tools/lab/run.c \
	tools/lab/start.c \
	tools/lab/tool.c \
	tools/measure/choose.c \
	tools/measure/measure.h \
	tools/measure/model.c \
	tools/measure/model.h \
	tools/measure/options.c \
	tools/measure/report.c \
	tools/papers/aapc.c \
	tools/papers/allgather.c \
	tools/papers/bcast.c \
	tools/papers/bcast.h \
	tools/papers/exchange.c \
	tools/papers/flows.c \
	tools/papers/limits.c \
	tools/papers/papers.c \
	tools/papers/papers.h \
	tools/papers/rings.c \
	tools/papers/rings.h \
	tools/papers/sim.c \
	tools/papers/sim.h \
	tools/papers/smp.c \
	tools/schedule/command.c \
	tools/schedule/command.h \
	tools/schedule/options.c \
	tools/schedule/plan.c \
	tools/schedule/read.c \
	tools/schedule/report.c \
	tools/shape.c \
	tools/shape.h \
	tools/sim/capture.c \
	tools/sim/capture.h \
	tools/sim/case.c \
	tools/sim/case.h \
	tools/sim/command.c \
	tools/sim/command.h \
	tools/sim/fault.h \
	tools/sim/fault_parse.c \
	tools/sim/fault_report.c \
	tools/sim/fault_run.c \
	tools/sim/model.c \
	tools/sim/model.h \
	tools/sim/options.c \
	tools/sim/parse.c \
	tools/sim/parse.h \
	tools/sim/progress.c \
	tools/sim/progress.h \
	tools/sim/report.c \
	tools/sim/trace.c \
	tools/sim/trace.h \
	tools/status/command.c \
	tools/topo/command.c \
	tools/topo/command.h \
	tools/topo/draw.c \
	tools/topo/make.c \
	tools/topo/read.c \
	tools/topo/show.c
tools_libcn_tools_la_LIBADD = -lm

# `collnet compare` knows where its source is installed, which the user's mpicc compiles.
comparedir = $(pkgdatadir)/compare
tools_libcn_compare_la_CPPFLAGS = $(AM_CPPFLAGS) -DCN_COMPARE_DIR='"$(comparedir)"' \
	-DCN_OPENMPI_DIR='"$(openmpidir)"' -DCN_LIB_DIR='"$(libdir)"'
$(tools_libcn_compare_la_OBJECTS): stamp-directories
tools_libcn_compare_la_SOURCES = \
	tools/compare/cell.c \
	tools/compare/cell.h \
	tools/compare/command.c \
	tools/compare/command.h \
	tools/compare/contender.c \
	tools/compare/find.c \
	tools/compare/loop.c \
	tools/compare/loop.h \
	tools/compare/loop_blocks.c \
	tools/compare/loop_collnet.c \
	tools/compare/options.c \
	tools/compare/plot.c \
	tools/compare/report.c \
	tools/compare/run.c
nobase_dist_compare_DATA = \
	lib/include/collnet/collnet.h \
	lib/util/util.h \
	tools/bench/pattern.c \
	tools/bench/pattern.h \
	tools/compare/loop.c \
	tools/compare/loop.h \
	tools/compare/loop_blocks.c \
	tools/compare/loop_mpi.c

bin_PROGRAMS += tools/collnet
tools_collnet_SOURCES = tools/collnet.c
tools_collnet_LDADD = tools/libcn_compare.la tools/libcn_tools.la tools/libcn_plan.la tools/libcn_sim.la \
	tools/libcn_shared.la lib/libcn_all.la

EXTRA_DIST += tools/build tools/deps tools/experiments tools/experiments.awk tools/libtool tools/quickstart
