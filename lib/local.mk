# SPDX-License-Identifier: BSD-2-Clause
# The library. Each module is a convenience library, so that tests link what ships and can look at
# the undefined symbols of a module alone; libcn_all.la is all of them.

pkginclude_HEADERS = lib/include/collnet/collnet.h
pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = lib/collnet.pc
lib/collnet.pc: lib/collnet.pc.in stamp-directories
	$(AM_V_GEN)$(MKDIR_P) lib && $(SED) -e 's|@prefix[@]|$(prefix)|' -e 's|@libdir[@]|$(libdir)|' \
		-e 's|@includedir[@]|$(includedir)|' -e 's|@PACKAGE_VERSION[@]|$(PACKAGE_VERSION)|' \
		-e 's|@LIBS[@]|$(LIBS)|' $(top_srcdir)/lib/collnet.pc.in >$@.tmp && mv -f $@.tmp $@
EXTRA_DIST += lib/collnet.pc.in
CLEANFILES += lib/collnet.pc

noinst_LTLIBRARIES += \
	lib/libcn_util.la lib/libcn_proto.la lib/libcn_topo.la lib/libcn_sched.la \
	lib/libcn_link.la lib/libcn_coll.la lib/libcn_node.la lib/libcn_ipc.la \
	lib/libcn_client.la lib/libcn_all.la

# Automake then prefixes each object with its module, so that no two in libcn_all.la have one name.
lib_libcn_util_la_CFLAGS = $(AM_CFLAGS)
lib_libcn_proto_la_CFLAGS = $(AM_CFLAGS)
lib_libcn_topo_la_CFLAGS = $(AM_CFLAGS)
lib_libcn_sched_la_CFLAGS = $(AM_CFLAGS)
lib_libcn_link_la_CFLAGS = $(AM_CFLAGS)
lib_libcn_coll_la_CFLAGS = $(AM_CFLAGS)
lib_libcn_node_la_CFLAGS = $(AM_CFLAGS)
lib_libcn_ipc_la_CFLAGS = $(AM_CFLAGS)
lib_libcn_client_la_CFLAGS = $(AM_CFLAGS)

lib_libcn_util_la_SOURCES = \
	lib/util/ascending.h \
	lib/util/bits.h \
	lib/util/bucket.h \
	lib/util/byteorder.h \
	lib/util/clock.h \
	lib/util/descriptors.h \
	lib/util/file.c \
	lib/util/file.h \
	lib/util/heap.c \
	lib/util/heap.h \
	lib/util/hostlist.c \
	lib/util/hostlist.h \
	lib/util/owner.h \
	lib/util/parse.c \
	lib/util/pool.c \
	lib/util/pool.h \
	lib/util/pqueue.h \
	lib/util/priority.h \
	lib/util/siphash.c \
	lib/util/siphash.h \
	lib/util/spin.h \
	lib/util/union_find.h \
	lib/util/util.c \
	lib/util/util.h \
	lib/util/vector.c \
	lib/util/vector.h

lib_libcn_proto_la_SOURCES = \
	lib/proto/cc.c \
	lib/proto/cc.h \
	lib/proto/connect.c \
	lib/proto/connect.h \
	lib/proto/counters.h \
	lib/proto/foreign_version.c \
	lib/proto/foreign_version.h \
	lib/proto/frame.h \
	lib/proto/adaptive_window.c \
	lib/proto/auth.c \
	lib/proto/auth.h \
	lib/proto/adaptive_window.h \
	lib/proto/global_window.c \
	lib/proto/global_window.h \
	lib/proto/goodbye_list.c \
	lib/proto/goodbye_list.h \
	lib/proto/hello.c \
	lib/proto/hello.h \
	lib/proto/input.c \
	lib/proto/interarrival.h \
	lib/proto/liveness.c \
	lib/proto/liveness.h \
	lib/proto/log.c \
	lib/proto/node.c \
	lib/proto/node.h \
	lib/proto/node_impl.h \
	lib/proto/output.c \
	lib/proto/path_mtu.c \
	lib/proto/path_mtu.h \
	lib/proto/peer.c \
	lib/proto/peer.h \
	lib/proto/peer_impl.h \
	lib/proto/receiver.c \
	lib/proto/receiver.h \
	lib/proto/reorder.c \
	lib/proto/reorder.h \
	lib/proto/rtt.c \
	lib/proto/rtt.h \
	lib/proto/rtx_queue.c \
	lib/proto/rtx_queue.h \
	lib/proto/sender.c \
	lib/proto/sender.h \
	lib/proto/serial.h \
	lib/proto/timers.c \
	lib/proto/tlp.c \
	lib/proto/tlp.h \
	lib/proto/unvalidated.c \
	lib/proto/unvalidated.h \
	lib/proto/wire.c \
	lib/proto/wire.h

lib_libcn_topo_la_SOURCES = \
	lib/topo/build.c \
	lib/topo/build.h \
	lib/topo/pair_window.c \
	lib/topo/read.c \
	lib/topo/slurm.c \
	lib/topo/topo.c \
	lib/topo/topo.h \
	lib/topo/tree.c \
	lib/topo/tree.h \
	lib/topo/window.c

lib_libcn_sched_la_SOURCES = \
	lib/sched/allgather/allgather.c \
	lib/sched/allgather/allgather.h \
	lib/sched/allgather/doubling.c \
	lib/sched/allgather/doubling.h \
	lib/sched/allgather/ring.c \
	lib/sched/allgather/ring.h \
	lib/sched/allgather/ring_dfs.c \
	lib/sched/allgather/ring_lr3.c \
	lib/sched/allgather/ring_lr3.h \
	lib/sched/allgather/ring_lr3_switch.c \
	lib/sched/allgather/ring_matching.c \
	lib/sched/allgather/ring_matching.h \
	lib/sched/alltoall/aapc.c \
	lib/sched/alltoall/aapc.h \
	lib/sched/alltoall/aapc_close.c \
	lib/sched/alltoall/aapc_phases.c \
	lib/sched/alltoall/aapc_sync.c \
	lib/sched/alltoall/aapc_users.c \
	lib/sched/alltoall/alltoall.c \
	lib/sched/alltoall/fattree.c \
	lib/sched/alltoall/fattree.h \
	lib/sched/alltoall/fattree_colour.c \
	lib/sched/alltoall/fattree_diagonal.c \
	lib/sched/alltoall/fattree_phases.c \
	lib/sched/alltoall/fattree_root.c \
	lib/sched/alltoall/linear.c \
	lib/sched/alltoall/pairwise.c \
	lib/sched/alltoall/shuffle.c \
	lib/sched/barrier/barrier.c \
	lib/sched/barrier/barrier.h \
	lib/sched/barrier/dissemination.c \
	lib/sched/barrier/doubling.c \
	lib/sched/allreduce/chain.c \
	lib/sched/allreduce/allgather.c \
	lib/sched/allreduce/doubling.c \
	lib/sched/allreduce/halving.c \
	lib/sched/allreduce/power.c \
	lib/sched/allreduce/power.h \
	lib/sched/allreduce/ring.c \
	lib/sched/bcast/bcast.c \
	lib/sched/bcast/bcast.h \
	lib/sched/bcast/binomial.c \
	lib/sched/bcast/chain.c \
	lib/sched/bcast/kary.c \
	lib/sched/bcast/model.c \
	lib/sched/bcast/phase.c \
	lib/sched/bcast/relay.c \
	lib/sched/bcast/relay.h \
	lib/sched/bcast/smp.c \
	lib/sched/bcast/switch.c \
	lib/sched/bcast/switch.h \
	lib/sched/blocks.c \
	lib/sched/call.c \
	lib/sched/choice.c \
	lib/sched/choice.h \
	lib/sched/cost.c \
	lib/sched/cost.h \
	lib/sched/load.c \
	lib/sched/load.h \
	lib/sched/numbering.c \
	lib/sched/permutation.c \
	lib/sched/permutation.h \
	lib/sched/planners.h \
	lib/sched/predict.c \
	lib/sched/predict.h \
	lib/sched/predict_barrier.c \
	lib/sched/predict_doubling.c \
	lib/sched/predict_reduction.c \
	lib/sched/reduce/binomial.c \
	lib/sched/reduce/chain.c \
	lib/sched/reduce_scatter/exchange.c \
	lib/sched/reduce_scatter/ring.c \
	lib/sched/reduce_scatter/ring.h \
	lib/sched/reduction.c \
	lib/sched/reduction.h \
	lib/sched/registry.c \
	lib/sched/residue.c \
	lib/sched/residue.h \
	lib/sched/rooted/furthest.c \
	lib/sched/rooted/furthest.h \
	lib/sched/rooted/gather.c \
	lib/sched/rooted/gather.h \
	lib/sched/rooted/gather_nearest.c \
	lib/sched/rooted/gather_windowed.c \
	lib/sched/rooted/rooted.c \
	lib/sched/rooted/rooted.h \
	lib/sched/rooted/scatter_furthest.c \
	lib/sched/scan/chain.c \
	lib/sched/scan/doubling.c \
	lib/sched/scan/scan.c \
	lib/sched/scan/scan.h \
	lib/sched/sched.c \
	lib/sched/sched.h \
	lib/sched/select.c \
	lib/sched/select.h

lib_libcn_link_la_SOURCES = \
	lib/link/encapsulation.c \
	lib/link/encapsulation.h \
	lib/link/filter.c \
	lib/link/filter.h \
	lib/link/interface.c \
	lib/link/interface.h \
	lib/link/kinds.h \
	lib/link/link.c \
	lib/link/link.h \
	lib/link/load.c \
	lib/link/load.h \
	lib/link/netlink.c \
	lib/link/netlink.h \
	lib/link/offload.c \
	lib/link/offload.h \
	lib/link/packet.c \
	lib/link/packet_impl.h \
	lib/link/packet_recv.c \
	lib/link/packet_send.c \
	lib/link/super_frame.c \
	lib/link/super_frame.h \
	lib/link/udp_address.c \
	lib/link/udp_address.h \
	lib/link/udp_impl.h \
	lib/link/udp_send.c \
	lib/link/udp_socket.c
if HAVE_PCAP
lib_libcn_link_la_SOURCES += lib/link/pcap.c
endif

lib_libcn_coll_la_SOURCES = \
	lib/coll/combine.c \
	lib/coll/combine.h \
	lib/coll/control.c \
	lib/coll/control.h \
	lib/coll/cursor.c \
	lib/coll/cursor.h \
	lib/coll/endpoint.c \
	lib/coll/endpoint.h \
	lib/coll/endpoint_local.c \
	lib/coll/endpoint_post.c \
	lib/coll/endpoint_recv.c \
	lib/coll/endpoint_send.c \
	lib/coll/endpoint_unexpected.c \
	lib/coll/engine.c \
	lib/coll/engine.h \
	lib/coll/engine_state.h \
	lib/coll/flow.c \
	lib/coll/flow.h \
	lib/coll/join.h \
	lib/coll/node_table.c \
	lib/coll/op.c \
	lib/coll/op_deadline.c \
	lib/coll/op.h \
	lib/coll/op_idle.c \
	lib/coll/op_recv.c \
	lib/coll/op_reduce.c \
	lib/coll/op_send.c \
	lib/coll/op_plan.c \
	lib/coll/op_start.c \
	lib/coll/op_window.c \
	lib/coll/op_frames.c \
	lib/coll/op_unexpected.c \
	lib/coll/job_log.c \
	lib/coll/peer_loss.c \
	lib/coll/payers.c \
	lib/coll/pending.c \
	lib/coll/pending.h \
	lib/coll/post.c \
	lib/coll/ranges.c \
	lib/coll/ranges.h \
	lib/coll/source.c \
	lib/coll/source.h \
	lib/coll/stream.h \
	lib/coll/split.c \
	lib/coll/split.h \
	lib/coll/team.c \
	lib/coll/team.h \
	lib/coll/team_jobs.c \
	lib/coll/team_ready.c \
	lib/coll/task.c \
	lib/coll/task.h \
	lib/coll/transport.c \
	lib/coll/transport.h \
	lib/coll/transport_output.c \
	lib/coll/turns.c \
	lib/coll/turns.h \
	lib/coll/unexpected_limit.c \
	lib/coll/unexpected_limit.h \
	lib/coll/unexpected_queue.c \
	lib/coll/unexpected_queue.h \
	lib/coll/version_mismatch.c \
	lib/coll/version_mismatch.h \
	lib/coll/wireup.c \
	lib/coll/wireup.h \
	lib/coll/wireup_announce.c \
	lib/coll/wireup_deadline.c \
	lib/coll/wireup_join.c \
	lib/coll/wireup_path.c

lib_libcn_node_la_SOURCES = \
	lib/node/descriptor.c \
	lib/node/descriptor.h \
	lib/node/helper.c \
	lib/node/helper.h \
	lib/node/key.c \
	lib/node/key.h \
	lib/node/lock.c \
	lib/node/lock.h \
	lib/node/memfd.c \
	lib/node/memfd.h \
	lib/node/poller.c \
	lib/node/poller.h \
	lib/node/runtime.c \
	lib/node/runtime.h \
	lib/node/thread.c \
	lib/node/thread.h

lib_libcn_ipc_la_SOURCES = \
	lib/ipc/msg.c \
	lib/ipc/msg.h \
	lib/ipc/shm_ring.c \
	lib/ipc/shm_ring.h

lib_libcn_client_la_SOURCES = \
	lib/client/backend.h \
	lib/client/collnet.c \
	lib/client/daemon.c \
	lib/client/daemon.h \
	lib/client/direct.c \
	lib/client/endpoint.c \
	lib/client/env.h \
	lib/client/fork.c \
	lib/client/launcher.c \
	lib/client/options.c \
	lib/client/periodic.c \
	lib/client/periodic.h \
	lib/client/persistent.c \
	lib/client/pmi.c \
	lib/client/reduce.c \
	lib/client/reduce.h \
	lib/client/region.c \
	lib/client/rings.c \
	lib/client/request.c \
	lib/client/secret.c \
	lib/client/socket.c \
	lib/client/split.c \
	lib/client/staging.c \
	lib/client/staging.h \
	lib/client/team.c \
	lib/client/threads.c \
	lib/client/vector.c \
	lib/client/wait.c

lib_libcn_all_la_SOURCES =
lib_libcn_all_la_LIBADD = \
	lib/libcn_client.la lib/libcn_node.la lib/libcn_ipc.la lib/libcn_coll.la \
	lib/libcn_link.la lib/libcn_sched.la lib/libcn_proto.la lib/libcn_topo.la \
	lib/libcn_util.la

lib_LTLIBRARIES += lib/libcollnet.la
lib_libcollnet_la_SOURCES =
lib_libcollnet_la_LIBADD = lib/libcn_all.la
# nodelete: contexts outlive dlclose(), in direct mode with a thread.
lib_libcollnet_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0 -Wl,-z,nodelete \
	-Wl,--version-script=$(top_srcdir)/lib/collnet.map
EXTRA_lib_libcollnet_la_DEPENDENCIES = lib/collnet.map stamp-directories
EXTRA_DIST += lib/collnet.map
