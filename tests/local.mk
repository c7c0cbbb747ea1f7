# SPDX-License-Identifier: BSD-2-Clause
# Tests. `sh tests/run` runs all of them; `make check` the unit tests and the fuzz corpora.

# One program a source file: test_<file>.c is for lib/*/<file>.c. A new test is one line here.
unit_tests = \
	tests/unit/test_adaptive_window \
	tests/unit/test_auth \
	tests/unit/test_aapc \
	tests/unit/test_aapc_close \
	tests/unit/test_aapc_tables \
	tests/unit/test_args \
	tests/unit/test_baseline \
	tests/unit/test_bcast \
	tests/unit/test_bcast_smp \
	tests/unit/test_bcast_tree \
	tests/unit/test_bench_blocks \
	tests/unit/test_bench_options \
	tests/unit/test_bench_pattern \
	tests/unit/test_blocked \
	tests/unit/test_call \
	tests/unit/test_cc \
	tests/unit/test_check \
	tests/unit/test_check_data \
	tests/unit/test_check_mutants \
	tests/unit/test_check_order \
	tests/unit/test_check_reduce \
	tests/unit/test_choice \
	tests/unit/test_client \
	tests/unit/test_compare_cell \
	tests/unit/test_compare_options \
	tests/unit/test_combine \
	tests/unit/test_config \
	tests/unit/test_completions \
	tests/unit/test_control \
	tests/unit/test_control_loss \
	tests/unit/test_control_path \
	tests/unit/test_cursor \
	tests/unit/test_daemon_call \
	tests/unit/test_daemon_late \
	tests/unit/test_daemon_combine \
	tests/unit/test_daemon_interface \
	tests/unit/test_daemon_request \
	tests/unit/test_derive \
	tests/unit/test_descriptor \
	tests/unit/test_draw \
	tests/unit/test_emit \
	tests/unit/test_emit_mpi \
	tests/unit/test_endpoint \
	tests/unit/test_endpoint_close \
	tests/unit/test_endpoint_control \
	tests/unit/test_endpoint_flow \
	tests/unit/test_endpoint_local \
	tests/unit/test_endpoint_order \
	tests/unit/test_endpoint_owner \
	tests/unit/test_endpoint_credit \
	tests/unit/test_endpoint_share \
	tests/unit/test_endpoint_timeout \
	tests/unit/test_copies \
	tests/unit/test_turns \
	tests/unit/test_engine \
	tests/unit/test_engine_fault \
	tests/unit/test_engine_leave \
	tests/unit/test_engine_memory \
	tests/unit/test_engine_team \
	tests/unit/test_engine_wait \
	tests/unit/test_split \
	tests/unit/test_task \
	tests/unit/test_team_jobs \
	tests/unit/test_team_memory \
	tests/unit/test_team_ready \
	tests/unit/test_split_refusals \
	tests/unit/test_split_restart \
	tests/unit/test_engine_vector \
	tests/unit/test_exit \
	tests/unit/test_experiment_rings \
	tests/unit/test_experiment_sim \
	tests/unit/test_fat_tree_exchange \
	tests/unit/test_fat_tree_multinode \
	tests/unit/test_fat_tree_scatter \
	tests/unit/test_fattree \
	tests/unit/test_file \
	tests/unit/test_filter \
	tests/unit/test_furthest \
	tests/unit/test_gather \
	tests/unit/test_global_window \
	tests/unit/test_goodbye_list \
	tests/unit/test_heap \
	tests/unit/test_hello \
	tests/unit/test_helper \
	tests/unit/test_hub \
	tests/unit/test_input \
	tests/unit/test_interface \
	tests/unit/test_json \
	tests/unit/test_key \
	tests/unit/test_launcher \
	tests/unit/test_link \
	tests/unit/test_link_open \
	tests/unit/test_link_refusals \
	tests/unit/test_offload \
	tests/unit/test_link_encapsulated \
	tests/unit/test_liveness \
	tests/unit/test_load \
	tests/unit/test_reaper \
	tests/unit/test_listen \
	tests/unit/test_lock \
	tests/unit/test_log \
	tests/unit/test_mapping \
	tests/unit/test_measure_model \
	tests/unit/test_memfd \
	tests/unit/test_msg \
	tests/unit/test_node \
	tests/unit/test_notify \
	tests/unit/test_numbering \
	tests/unit/test_op_deadline \
	tests/unit/test_op_frames \
	tests/unit/test_op_start \
	tests/unit/test_op_unexpected \
	tests/unit/test_op_window \
	tests/unit/test_pair_window \
	tests/unit/test_parent \
	tests/unit/test_payers \
	tests/unit/test_path_mtu \
	tests/unit/test_peer \
	tests/unit/test_peer_table \
	tests/unit/test_pending \
	tests/unit/test_periodic \
	tests/unit/test_permutation \
	tests/unit/test_poller \
	tests/unit/test_pool \
	tests/unit/test_post \
	tests/unit/test_pqueue \
	tests/unit/test_quota \
	tests/unit/test_random \
	tests/unit/test_ranges \
	tests/unit/test_receive \
	tests/unit/test_receiver \
	tests/unit/test_receiver_gaps \
	tests/unit/test_reduce \
	tests/unit/test_reduce_scatterv \
	tests/unit/test_registry \
	tests/unit/test_regions \
	tests/unit/test_reload \
	tests/unit/test_reorder \
	tests/unit/test_replay \
	tests/unit/test_report \
	tests/unit/test_request \
	tests/unit/test_residue \
	tests/unit/test_ring \
	tests/unit/test_ring_lr3 \
	tests/unit/test_ring_matching \
	tests/unit/test_rings \
	tests/unit/test_rtt \
	tests/unit/test_runtime \
	tests/unit/test_runtime_end \
	tests/unit/test_rtx_queue \
	tests/unit/test_sched \
	tests/unit/test_schedule_read \
	tests/unit/test_seccomp \
	tests/unit/test_secret \
	tests/unit/test_select \
	tests/unit/test_select_memory \
	tests/unit/test_sender \
	tests/unit/test_sender_lost \
	tests/unit/test_sender_unheard \
	tests/unit/test_serial \
	tests/unit/test_shm_ring \
	tests/unit/test_signature \
	tests/unit/test_sim \
	tests/unit/test_sim_fault \
	tests/unit/test_sim_net \
	tests/unit/test_sim_options \
	tests/unit/test_sim_run \
	tests/unit/test_sim_switch \
	tests/unit/test_sim_timing \
	tests/unit/test_siphash \
	tests/unit/test_slurm \
	tests/unit/test_socket \
	tests/unit/test_socket_permission \
	tests/unit/test_source \
	tests/unit/test_span \
	tests/unit/test_spin \
	tests/unit/test_subuid \
	tests/unit/test_super_frame \
	tests/unit/test_tlp \
	tests/unit/test_encapsulation \
	tests/unit/test_topo \
	tests/unit/test_transport \
	tests/unit/test_tree \
	tests/unit/test_time_slice \
	tests/unit/test_unexpected_limit \
	tests/unit/test_unexpected_queue \
	tests/unit/test_unmap \
	tests/unit/test_udp_address \
	tests/unit/test_udp_socket \
	tests/unit/test_union_find \
	tests/unit/test_unvalidated \
	tests/unit/test_util \
	tests/unit/test_window \
	tests/unit/test_wire \
	tests/unit/test_wireup \
	tests/unit/test_wireup_announce \
	tests/unit/test_wireup_join

# Its allocations and forks fail, and its clients have the groups that it says.
tests_unit_test_client_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc -Wl,--wrap=fork \
	-Wl,--wrap=getsockopt -Wl,--wrap=__getsockopt64 -Wl,--wrap=epoll_ctl

# Others replace the file that bind() made.
tests_unit_test_listen_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=bind

# The transport is a fake: what it is given is the log.
tests_unit_test_pending_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=cn_node_control \
	-Wl,--wrap=cn_peer_index -Wl,--wrap=cn_peer_name -Wl,--wrap=cn_peer_log

# The system refuses options of sockets.
tests_unit_test_link_open_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=setsockopt \
	-Wl,--wrap=__setsockopt64

# The system's interfaces are its own.
tests_unit_test_daemon_interface_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=cn_interface_find \
	-Wl,--wrap=cn_runtime_attach -Wl,--wrap=cn_runtime_detach

# Teams fail at the worst moment.
tests_unit_test_daemon_call_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=cn_helper_submit

# A request takes as long as it says, and the clock shows that.
tests_unit_test_time_slice_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=clock_gettime \
	-Wl,--wrap=__clock_gettime64 -Wl,--wrap=cn_client_complete

# A file cannot be read.
tests_unit_test_topo_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=cn_read_all

# The system has no inotify instance.
tests_unit_test_unmap_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=inotify_init1

# The system refuses memory for a flow or for the pool.
tests_unit_test_endpoint_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc -Wl,--wrap=mmap \
	-Wl,--wrap=mmap64

# The files of the system are its own.
tests_unit_test_quota_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=fopen -Wl,--wrap=fopen64

# It counts the sessions that are looked at.
tests_unit_test_report_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=cn_peer_info

# Allocations fail, one at a time.
tests_unit_test_select_memory_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc -Wl,--wrap=calloc \
	-Wl,--wrap=realloc -Wl,--wrap=free

# Allocations of one node fail, one at a time.
tests_unit_test_engine_memory_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc -Wl,--wrap=calloc \
	-Wl,--wrap=realloc -Wl,--wrap=free -Wl,--wrap=mmap -Wl,--wrap=mmap64 \
	-Wl,--wrap=munmap
tests_unit_test_team_memory_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc -Wl,--wrap=calloc \
	-Wl,--wrap=realloc -Wl,--wrap=free -Wl,--wrap=mmap -Wl,--wrap=mmap64 \
	-Wl,--wrap=munmap

# It counts what is allocated.
tests_unit_test_node_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc

# Programs that lab tests run on hosts.
lab_programs = \
	examples/cg \
	examples/exchange \
	examples/fft2d \
	examples/train \
	tests/lab/api \
	tests/lab/attacker \
	tests/lab/buffered \
	tests/lab/calls \
	tests/lab/departures \
	tests/lab/forks \
	tests/lab/frames \
	tests/lab/greedy \
	tests/lab/kept \
	tests/lab/late \
	tests/lab/restrict \
	tests/lab/rooted \
	tests/lab/stress \
	tests/lab/persistent \
	tests/lab/reduce \
	tests/lab/teams \
	tests/lab/threads \
	tests/lab/unload \
	tests/lab/vector \
	tests/lab/malformed_client \
	tests/faults/fault_driver

# Scenarios in virtual time, by seeds. soak is the same program and runs for as long as it is told.
sim_tests = \
	tests/sim/attack \
	tests/sim/broken \
	tests/sim/choice \
	tests/sim/idle \
	tests/sim/sweep \
	tests/sim/teams
sim_sources = \
	tests/sim/attackers.c \
	tests/sim/attackers.h \
	tests/sim/buffers.c \
	tests/sim/buffers.h \
	tests/sim/draw.h \
	tests/sim/fixture.c \
	tests/sim/fixture.h \
	tests/sim/fixture_faults.c \
	tests/sim/oracle_errors.c \
	tests/sim/oracle_goodput.c \
	tests/sim/oracle_idle.c \
	tests/sim/oracle_leaks.c \
	tests/sim/scenario.c \
	tests/sim/scenario.h \
	tests/sim/seeds.c \
	tests/sim/seeds.h \
	tests/sim/wire_oracle.c \
	tests/sim/wire_oracle.h
# Faults in labs: tests/soak and tests/trials run it.
tests_faults_fault_driver_SOURCES = \
	tests/faults/alarms.c \
	tests/faults/cluster.c \
	tests/faults/cluster.h \
	tests/faults/driver.c \
	tests/faults/inject.c \
	tests/faults/model.c \
	tests/faults/soak.c \
	tests/faults/trials.c
tests_sim_attack_SOURCES = $(sim_sources) tests/sim/attack.c
tests_sim_sweep_SOURCES = $(sim_sources) tests/sim/sweep.c
tests_lab_stress_SOURCES = tests/lab/stress.c tests/lab/stress_call.c tests/lab/stress.h
tests_sim_choice_SOURCES = tests/sim/choice.c
tests_sim_idle_SOURCES = $(sim_sources) tests/sim/idle.c
tests_sim_soak_SOURCES = $(sim_sources) tests/sim/sweep.c
tests_sim_teams_SOURCES = \
	$(sim_sources) \
	tests/sim/script.c \
	tests/sim/script.h \
	tests/sim/teams.c \
	tests/sim/teams.h \
	tests/sim/teams_call.c \
	tests/sim/teams_errors.c \
	tests/sim/teams_process.c
# The same with three functions of the transport replaced by faulty ones.
tests_sim_broken_SOURCES = $(sim_sources) tests/sim/broken.c
tests_sim_broken_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=cn_window_open -Wl,--wrap=cn_wire_put \
	-Wl,--wrap=cn_flight_end

# Without --enable-fuzzer a harness is linked with a small main() that runs the files of its
# corpus, so that the corpora are tests and need no clang.
fuzz_tests = \
	tests/fuzz/fuzz_config \
	tests/fuzz/fuzz_daemon \
	tests/fuzz/fuzz_engine \
	tests/fuzz/fuzz_events \
	tests/fuzz/fuzz_frame \
	tests/fuzz/fuzz_topo
if FUZZER
fuzz_main =
fuzz_ldflags = $(AM_LDFLAGS) $(FUZZER_LDFLAGS)
else
fuzz_main = tests/fuzz/replay.c
fuzz_ldflags = $(AM_LDFLAGS)
endif
tests_fuzz_fuzz_config_SOURCES = tests/fuzz/fuzz_config.c $(fuzz_main)
tests_fuzz_fuzz_config_LDFLAGS = $(fuzz_ldflags)
fuzz_mutate = tests/fuzz/mutate.c tests/fuzz/mutate.h $(fuzz_main)
fuzz_script = tests/fuzz/script.c tests/fuzz/script.h $(fuzz_mutate)
tests_fuzz_fuzz_daemon_SOURCES = tests/fuzz/fuzz_daemon.c tests/fuzz/daemon_client.c \
	tests/fuzz/daemon_client.h $(fuzz_mutate)
tests_fuzz_fuzz_daemon_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_engine_SOURCES = tests/fuzz/fuzz_engine.c tests/fuzz/forge.c tests/fuzz/forge.h \
	tests/fuzz/reducer.c tests/fuzz/reducer.h $(fuzz_script)
tests_fuzz_fuzz_engine_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_events_SOURCES = tests/fuzz/fuzz_events.c $(fuzz_script)
tests_fuzz_fuzz_events_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_frame_SOURCES = tests/fuzz/fuzz_frame.c $(fuzz_script)
tests_fuzz_fuzz_frame_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_topo_SOURCES = tests/fuzz/fuzz_topo.c $(fuzz_main)
tests_fuzz_fuzz_topo_LDFLAGS = $(fuzz_ldflags)

# What several tests share: the files of tests/unit that are not a test_*.c.
check_LTLIBRARIES = tests/unit/libtests.la
tests_unit_libtests_la_LIBTOOLFLAGS = --tag=disable-shared
tests_unit_libtests_la_SOURCES = \
	tests/unit/aapc_oracle.c \
	tests/unit/aapc_oracle.h \
	tests/unit/bcast_team.c \
	tests/unit/bcast_team.h \
	tests/unit/check_book.c \
	tests/unit/check_book.h \
	tests/unit/check_oracle.c \
	tests/unit/check_oracle.h \
	tests/unit/control_team.c \
	tests/unit/control_team.h \
	tests/unit/crowd.c \
	tests/unit/crowd.h \
	tests/unit/daemon_fixture.c \
	tests/unit/daemon_fixture.h \
	tests/unit/descriptor.c \
	tests/unit/descriptor.h \
	tests/unit/emit_plan.c \
	tests/unit/emit_plan.h \
	tests/unit/endpoint_fixture.c \
	tests/unit/endpoint_fixture.h \
	tests/unit/engine_fixture.c \
	tests/unit/engine_fixture.h \
	tests/unit/fake_daemon.c \
	tests/unit/fake_daemon.h \
	tests/unit/fat_tree.c \
	tests/unit/fat_tree.h \
	tests/unit/hub.c \
	tests/unit/hub.h \
	tests/unit/link_pair.c \
	tests/unit/link_pair.h \
	tests/unit/log_capture.c \
	tests/unit/log_capture.h \
	tests/unit/multinode.c \
	tests/unit/multinode.h \
	tests/unit/namespace.c \
	tests/unit/namespace.h \
	tests/unit/pair.c \
	tests/unit/pair.h \
	tests/unit/pair_run.c \
	tests/unit/pair_trace.c \
	tests/unit/reduction.c \
	tests/unit/reduction.h \
	tests/unit/region_daemon.c \
	tests/unit/region_daemon.h \
	tests/unit/ring_client.c \
	tests/unit/ring_client.h \
	tests/unit/ring_oracle.c \
	tests/unit/ring_oracle.h \
	tests/unit/runtime_pair.c \
	tests/unit/runtime_pair.h \
	tests/unit/sched_fixture.c \
	tests/unit/sched_fixture.h \
	tests/unit/scarce_impl.h \
	tests/unit/failing_memory_impl.h \
	tests/unit/sched_fixture_impl.h \
	tests/unit/sched_interpreter.c \
	tests/unit/sim_net.c \
	tests/unit/sim_net.h \
	tests/unit/packet_stepper.c \
	tests/unit/packet_stepper.h \
	tests/unit/topo_text.c \
	tests/unit/topo_text.h \
	tests/unit/two_jobs.c \
	tests/unit/two_jobs.h \
	tests/unit/words.c \
	tests/unit/words.h

# What programs link that name nothing else.
LDADD = tests/unit/libtests.la tools/libcn_compare.la tools/libcn_tools.la \
	tools/libcn_plan.la tools/libcn_sim.la tools/libcn_shared.la daemon/libcn_daemon.la lib/libcn_all.la
AM_TESTS_ENVIRONMENT = COLLNET_CORPUS='$(abs_top_srcdir)/tests/fuzz/corpus'; \
	COLLNET_SOURCE='$(abs_top_srcdir)'; export COLLNET_CORPUS COLLNET_SOURCE;

# They include <collnet/collnet.h>, as users' programs do.
examples_cg_SOURCES = examples/cg.c examples/start.h
examples_fft2d_SOURCES = examples/fft2d.c examples/start.h
examples_train_SOURCES = examples/train.c examples/start.h

check_PROGRAMS += $(fuzz_tests) $(lab_programs) $(sim_tests) tests/sim/soak
if !FUZZER
TESTS += $(fuzz_tests) $(sim_tests)
endif
if HAVE_CMOCKA
AM_CFLAGS += $(CMOCKA_CFLAGS)
LDADD += $(CMOCKA_LIBS)
check_PROGRAMS += $(unit_tests)
TESTS += $(unit_tests)
else
check-local:
	@echo "cmocka is missing, so no unit test was built; on Debian: apt-get install libcmocka-dev" >&2
	@exit 1
endif

# For tests/run.
.PHONY: list-unit-tests list-fuzz-tests list-sim-tests list-lab-programs
list-unit-tests:
	@for t in $(unit_tests); do echo $$t; done
list-fuzz-tests:
	@for t in $(fuzz_tests); do echo $$t; done
list-sim-tests:
	@for t in $(sim_tests); do echo $$t; done
list-lab-programs:
	@for t in $(lab_programs); do echo $$t; done

EXTRA_DIST += tests/run tests/bare tests/soak tests/stream tests/trials tests/sharing tests/torch tests/mutants tests/mutants.list tests/mpi-cost tests/mpi-suite tests/mpi4py-suite tests/packages tests/rpm tests/programs tests/programs.d tests/meta tests/fuzz/corpus \
	tests/lab/python_arguments.py tests/lab/python_calls.py tests/lab/python_checks.py tests/lab/python_dropped.py tests/lab/python_log.py tests/lab/python_requests.py tests/lab/python_signals.py tests/lab/torch_calls.py tests/lab/torch_compare.py tests/lab/mpi_arguments.c tests/lab/mpi_blocks.h tests/lab/mpi_cases.c tests/lab/mpi_check.c tests/lab/mpi_choices.h tests/lab/mpi_cost.c tests/lab/mpi_errors.h tests/lab/mpi_inter.c tests/lab/mpi_large.c tests/lab/mpi_memory.c tests/lab/mpi_neighbours.c tests/lab/mpi_nonblocking.h tests/lab/mpi_outstanding.h tests/lab/mpi_persistent.c tests/lab/mpi_persistent_names.h tests/lab/mpi_program.c tests/lab/mpi_program.f tests/lab/mpi_program.f90 tests/lab/mpi_select.c tests/lab/mpi_teams.c
