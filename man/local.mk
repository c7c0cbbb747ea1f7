# SPDX-License-Identifier: BSD-2-Clause
# Manual pages, in mdoc, and the example program.

dist_man_MANS += \
	man/collnet.1 \
	man/collnet.7 \
	man/collnet-bench.1 \
	man/collnet-compare.1 \
	man/collnet-lab.1 \
	man/collnet-schedule.1 \
	man/collnet-sim.1 \
	man/collnet-status.1 \
	man/collnet-topo.1 \
	man/collnet_alloc.3 \
	man/collnet_allreduce.3 \
	man/collnet_alltoall.3 \
	man/collnet_alltoallv.3 \
	man/collnet_endpoint_open.3 \
	man/collnet_error.3 \
	man/collnet_experiments.7 \
	man/collnet_get_stats.3 \
	man/collnet_mpi.7 \
	man/collnet_open.3 \
	man/collnet_protocol.7 \
	man/collnet_python.7 \
	man/collnet_schedules.7 \
	man/collnet_start.3 \
	man/collnet_team_create.3 \
	man/collnet_topology.5 \
	man/collnet_wait.3 \
	man/collnetd.8 \
	man/collnetd.conf.5

exampledir = $(docdir)/examples
dist_example_DATA = \
	examples/cg.c \
	examples/ddp.py \
	examples/exchange.c \
	examples/fft2d.c \
	examples/sort.py \
	examples/start.h \
	examples/train.c
topologydir = $(exampledir)/topologies
dist_topology_DATA = \
	examples/topologies/aapc-a.topo \
	examples/topologies/aapc-b.topo \
	examples/topologies/aapc-c.topo \
	examples/topologies/aapc-figure-1.topo \
	examples/topologies/rings-a.topo \
	examples/topologies/rings-b.topo \
	examples/topologies/rings-c.topo \
	examples/topologies/rings-d.topo \
	examples/topologies/rings-e.topo \
	examples/topologies/rings-f.topo

# A page of section 3 describes a group of functions; each of the others gets a page of one line
# that leads there. They are made, not kept.
links_alloc = \
	man/links/collnet_free.3
links_allreduce = \
	man/links/collnet_exscan.3 \
	man/links/collnet_iallreduce.3 \
	man/links/collnet_iexscan.3 \
	man/links/collnet_ireduce.3 \
	man/links/collnet_ireduce_scatter.3 \
	man/links/collnet_ireduce_scatterv.3 \
	man/links/collnet_iscan.3 \
	man/links/collnet_reduce.3 \
	man/links/collnet_reduce_scatter.3 \
	man/links/collnet_reduce_scatterv.3 \
	man/links/collnet_scan.3 \
	man/links/collnet_type_size.3
links_alltoall = \
	man/links/collnet_allgather.3 \
	man/links/collnet_barrier.3 \
	man/links/collnet_coll_options_init.3 \
	man/links/collnet_iallgather.3 \
	man/links/collnet_ialltoall.3 \
	man/links/collnet_bcast.3 \
	man/links/collnet_gather.3 \
	man/links/collnet_ibcast.3 \
	man/links/collnet_igather.3 \
	man/links/collnet_iscatter.3 \
	man/links/collnet_scatter.3 \
	man/links/collnet_ibarrier.3
links_alltoallv = \
	man/links/collnet_allgatherv.3 \
	man/links/collnet_gatherv.3 \
	man/links/collnet_iallgatherv.3 \
	man/links/collnet_ialltoallv.3 \
	man/links/collnet_igatherv.3 \
	man/links/collnet_iscatterv.3 \
	man/links/collnet_scatterv.3
links_endpoint_open = \
	man/links/collnet_endpoint_close.3 \
	man/links/collnet_endpoint_number.3 \
	man/links/collnet_irecv.3 \
	man/links/collnet_isend.3 \
	man/links/collnet_recv.3 \
	man/links/collnet_send.3
links_error = \
	man/links/collnet_set_log.3 \
	man/links/collnet_strerror.3
links_get_stats = \
	man/links/collnet_get_jobs.3 \
	man/links/collnet_get_nodes.3
links_open = \
	man/links/collnet_close.3 \
	man/links/collnet_node_name.3 \
	man/links/collnet_options_init.3 \
	man/links/collnet_version.3
links_team_create = \
	man/links/collnet_team_destroy.3 \
	man/links/collnet_team_dup.3 \
	man/links/collnet_team_from_ranks.3 \
	man/links/collnet_team_node.3 \
	man/links/collnet_team_nodes.3 \
	man/links/collnet_team_options_init.3 \
	man/links/collnet_team_rank.3 \
	man/links/collnet_team_size.3 \
	man/links/collnet_team_split.3
links_wait = \
	man/links/collnet_test.3 \
	man/links/collnet_testall.3 \
	man/links/collnet_testany.3 \
	man/links/collnet_waitall.3 \
	man/links/collnet_waitany.3
links_start = \
	man/links/collnet_request_free.3

man_links = $(links_alloc) $(links_allreduce) $(links_alltoall) $(links_alltoallv) \
	$(links_endpoint_open) $(links_error) $(links_get_stats) $(links_open) $(links_start) $(links_team_create) $(links_wait)
nodist_man_MANS = $(man_links)
CLEANFILES += $(man_links)

$(links_alloc):
	$(AM_V_GEN)$(MKDIR_P) man/links && echo '.so man3/collnet_alloc.3' >$@
$(links_allreduce):
	$(AM_V_GEN)$(MKDIR_P) man/links && echo '.so man3/collnet_allreduce.3' >$@
$(links_alltoall):
	$(AM_V_GEN)$(MKDIR_P) man/links && echo '.so man3/collnet_alltoall.3' >$@
$(links_alltoallv):
	$(AM_V_GEN)$(MKDIR_P) man/links && echo '.so man3/collnet_alltoallv.3' >$@
$(links_endpoint_open):
	$(AM_V_GEN)$(MKDIR_P) man/links && echo '.so man3/collnet_endpoint_open.3' >$@
$(links_error):
	$(AM_V_GEN)$(MKDIR_P) man/links && echo '.so man3/collnet_error.3' >$@
$(links_get_stats):
	$(AM_V_GEN)$(MKDIR_P) man/links && echo '.so man3/collnet_get_stats.3' >$@
$(links_open):
	$(AM_V_GEN)$(MKDIR_P) man/links && echo '.so man3/collnet_open.3' >$@
$(links_start):
	$(AM_V_GEN)$(MKDIR_P) man/links && echo '.so man3/collnet_start.3' >$@
$(links_team_create):
	$(AM_V_GEN)$(MKDIR_P) man/links && echo '.so man3/collnet_team_create.3' >$@
$(links_wait):
	$(AM_V_GEN)$(MKDIR_P) man/links && echo '.so man3/collnet_wait.3' >$@
