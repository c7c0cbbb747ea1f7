# SPDX-License-Identifier: BSD-2-Clause
"""The recipe for Spack 1.0 or later: packages/collnet/package.py of a repository of packages.

    spack develop --path DIR collnet@main      # in an environment: build the clone in DIR

Spack installs for users, so that there is neither a unit of systemd nor a user of the daemon's own:
collnetd runs with link udp, or programs in direct mode. The component for Open MPI needs its internal
headers, which Spack's openmpi does not install.
"""

from spack.package import *
from spack_repo.builtin.build_systems.autotools import AutotoolsPackage


class Collnet(AutotoolsPackage):
    """Collective communication on plain Ethernet, by schedules that do not overflow the buffers of
    switches: a daemon, a library, and a command that measures, emulates and simulates."""

    # Placeholders, as in debian/control: replace them when collnet is published.
    homepage = "https://collnet.example"
    git = "https://collnet.example/collnet.git"

    license("BSD-2-Clause")

    version("main", branch="main")

    variant("mpich", default=False, description="Build the library to preload into programs of MPICH")
    variant("pcap", default=False, description="Build link pcap, which uses libpcap and libnet")
    variant("python", default=True, description="Install the Python package")

    depends_on("c", type="build")
    depends_on("autoconf", type="build")
    depends_on("automake", type="build")
    depends_on("libtool", type="build")
    depends_on("m4", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("cmocka@1.1.5:", type="test")
    depends_on("mpich@3:", when="+mpich")
    depends_on("libnet", when="+pcap")
    depends_on("libpcap", when="+pcap")
    extends("python@3.9:", when="+python")

    requires("platform=linux", msg="collnet uses the packet sockets and namespaces of Linux")

    def configure_args(self):
        args = ["--without-openmpi", "--with-systemdsystemunitdir=no", "--with-sysusersdir=no"]
        args += self.with_or_without("mpich")
        args += self.with_or_without("pcap")
        args += self.with_or_without("python")
        if self.spec.satisfies("+mpich"):
            args.append(f"MPICC_MPICH={self.spec['mpich'].prefix.bin.mpicc}")
        return args
