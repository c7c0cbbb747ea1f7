# SPDX-License-Identifier: BSD-2-Clause
# Packages of distributions: their version is that of configure.ac, and what Spack's recipe passes to
# configure is what configure knows. The Debian package suggests those of the libraries that are loaded
# on request. tests/packages and tests/rpm build packages.
. "$(dirname "$0")/lib.sh"
: >"$t/out"
: >"$t/err"
version=$(sed -n 's/^AC_INIT(\[collnet\], \[\([^]]*\)\].*/\1/p' configure.ac)
grep -q "^Version:[	 ]*$version$" packaging/collnet.spec || fail "the version of packaging/collnet.spec"
sed -n '1s/^collnet (\(.*\)) .*/\1/p' debian/changelog | grep -qx "$version" || fail "the version of debian/changelog"
loaded=$(sed -n 's/.*cn_load("[^"]*", "[^"]*", "\([^"]*\)".*/\1/p' lib/link/pcap.c)
[ -n "$loaded" ] || fail "lib/link/pcap.c loads no library"
for package in $loaded; do
	sed -n 's/^Suggests: /, /p' debian/control | grep -q ", $package\(,\|$\)" || fail "debian/control suggests no $package"
done

command -v python3 >/dev/null || {
	echo "skip: python3 is not installed, which reads Spack's recipe"
	exit 77
}
./configure --help >"$t/help" || fail "configure --help"
# Of Spack, what the recipe uses; with each variant on and off.
python3 - "$t/help" >"$t/out" 2>"$t/err" <<'EOS' || fail "Spack's recipe"
import re, runpy, sys, types

variants = []
package, base = types.ModuleType("spack.package"), types.ModuleType("autotools")
for name in "license version depends_on extends requires".split():
    setattr(package, name, lambda *a, **k: None)
package.variant = lambda name, **k: variants.append(name)

class Spec(str):
    def satisfies(self, text):
        return text in self.split()
    def __getitem__(self, name):
        return types.SimpleNamespace(prefix=types.SimpleNamespace(bin=types.SimpleNamespace(mpicc="/x/mpicc")))

class AutotoolsPackage:
    def with_or_without(self, name):
        assert name in variants, name
        return [("--with-" if self.spec.satisfies("+" + name) else "--without-") + name]

base.AutotoolsPackage = AutotoolsPackage
for name in ("spack", "spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["spack.package"] = package
sys.modules["spack_repo.builtin.build_systems.autotools"] = base
recipe = runpy.run_path("packaging/spack/package.py")["Collnet"]()
known = set(re.findall(r"--with(?:out)?-([a-z-]+)", open(sys.argv[1]).read()))
for sign in "+~":
    recipe.spec = Spec(" ".join(sign + v for v in variants))
    for arg in recipe.configure_args():
        option = re.match(r"--with(?:out)?-([a-z-]+)(=no)?$", arg)
        assert option and option[1] in known or arg == "MPICC_MPICH=/x/mpicc" and sign == "+", arg
EOS
exit 0
