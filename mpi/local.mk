# Components for MPI libraries; they share the glue.

mpi_glue = \
	mpi/glue/collectives.c \
	mpi/glue/glue.h \
	mpi/glue/list.c \
	mpi/glue/memory.c \
	mpi/glue/pack.c \
	mpi/glue/presence.c \
	mpi/glue/reduce.c \
	mpi/glue/select.c \
	mpi/glue/team.c \
	mpi/glue/vector.c \
	mpi/glue/wait.c \
	mpi/glue/world.c

if HAVE_OPENMPI
openmpi_LTLIBRARIES = mpi/mca_coll_collnet.la
mpi_mca_coll_collnet_la_SOURCES = \
	mpi/openmpi/coll_collnet.c \
	mpi/openmpi/coll_collnet.h \
	mpi/openmpi/missing/opal/mca/threads/pthreads/threads_pthreads_mutex.h \
	mpi/openmpi/missing/opal/mca/threads/pthreads/threads_pthreads_threads.h \
	mpi/openmpi/missing/opal/mca/threads/pthreads/threads_pthreads_tsd.h \
	mpi/openmpi/nonblocking.c \
	mpi/openmpi/presence.c \
	$(mpi_glue)
mpi_mca_coll_collnet_la_CPPFLAGS = $(AM_CPPFLAGS) $(OPENMPI_CPPFLAGS)
mpi_mca_coll_collnet_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared
mpi_mca_coll_collnet_la_LIBADD = lib/libcollnet.la $(OPENMPI_LIBS)
EXTRA_mpi_mca_coll_collnet_la_DEPENDENCIES = stamp-directories

# What mpirun --tune takes.
parametersdir = $(libdir)/collnet
parameters_DATA = mpi/openmpi.conf
mpi/openmpi.conf: mpi/openmpi/openmpi.conf.in stamp-directories
	$(AM_V_GEN)$(MKDIR_P) mpi && $(SED) -e 's|@libdir[@]|$(libdir)|g' \
		-e 's|@openmpidir[@]|$(openmpidir)|g' \
		$(top_srcdir)/mpi/openmpi/openmpi.conf.in >$@.tmp && mv -f $@.tmp $@
CLEANFILES += mpi/openmpi.conf
endif
EXTRA_DIST += mpi/openmpi/openmpi.conf.in

if HAVE_MPICH
lib_LTLIBRARIES += mpi/libcollnet_mpich.la
mpi_libcollnet_mpich_la_SOURCES = \
	mpi/mpich/arguments.c \
	mpi/mpich/collectives.h \
	mpi/mpich/fortran.c \
	mpi/mpich/pack.c \
	mpi/mpich/preload.c \
	mpi/mpich/preload.h \
	mpi/mpich/presence.c \
	mpi/mpich/weak.h \
	lib/client/pmi.c \
	$(mpi_glue)
mpi_libcollnet_mpich_la_CPPFLAGS = $(AM_CPPFLAGS) $(MPICH_CPPFLAGS) -include $(top_srcdir)/mpi/mpich/weak.h
mpi_libcollnet_mpich_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -Wl,-z,lazy
mpi_libcollnet_mpich_la_LIBADD = lib/libcollnet.la
EXTRA_mpi_libcollnet_mpich_la_DEPENDENCIES = stamp-directories
endif
