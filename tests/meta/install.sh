# SPDX-License-Identifier: BSD-2-Clause
# What make install gives: the example compiles with what pkg-config says, shared and static, the
# commands run, and everything is where it belongs, also below another prefix than the configured
# one.
set -u
cd "$(dirname "$0")/../.." || exit 1
t=$(mktemp -d) || exit 1
trap 'rm -rf "$t"' EXIT
export PKG_CONFIG_PATH="$PREFIX/lib/pkgconfig"
# In a copy of the build, whose libraries are linked again for the other prefix. Its objects may depend
# on files by relative names.
for f in *; do
	case $f in
	build | build-asan) ;;
	*) ln -s "$PWD/$f" "$t/$f" ;;
	esac
done
mkdir "$t/build"
tar cf - -C "$BUILD" --exclude=./prefix --exclude='./collnet-*' . | tar xf - -C "$t/build"
make -C "$t/build" install prefix="$t/other" >"$t/log" 2>&1 || {
	tail -n 20 "$t/log"
	exit 1
}
for f in include/collnet/collnet.h lib/libcollnet.so lib/libcollnet.a lib/pkgconfig/collnet.pc \
	lib/wireshark/plugins/collnet.lua bin/collnet sbin/collnetd lib/systemd/system/collnetd.service \
	lib/sysctl.d/10-collnet.conf lib/sysusers.d/collnet.conf share/man/man1/collnet.1 \
	share/collnet/compare/tools/compare/loop_mpi.c share/man/man8/collnetd.8 \
	share/doc/collnet/examples/topologies/aapc-c.topo \
	share/bash-completion/completions/collnetd share/zsh/site-functions/_collnet; do
	for prefix in "$PREFIX" "$t/other"; do
		[ -e "$prefix/$f" ] || {
			echo "make install does not install $prefix/$f"
			exit 1
		}
	done
done
if [ -e "$t/other/share/doc/collnet/HACKING.md" ]; then
	echo "make install installs HACKING.md, which users do not need"
	exit 1
fi
if grep -rl "$PREFIX" "$t/other"; then
	echo "make install prefix=... installs files with the configured prefix"
	exit 1
fi
set -ex
# shellcheck disable=SC2046 # a list of flags
for example in examples/*.c; do
	${CC:-cc} -std=c11 -Wall -Wextra -Werror "$example" -o "$t/shared" \
		$(pkg-config --cflags --libs collnet) -lm
	LD_LIBRARY_PATH=$PREFIX/lib ldd "$t/shared" | grep "$PREFIX/lib/libcollnet.so"
	${CC:-cc} -std=c11 "$example" -o "$t/static" $(pkg-config --cflags collnet) \
		"$PREFIX/lib/libcollnet.a" \
		$(pkg-config --static --libs-only-l collnet | sed 's/-lcollnet //') -lm
done
# The program of the README compiles, too, and prints what the README states.
awk '/^## / { inside = /^## A program/ } inside && /^    / { sub("^    ", ""); print }' README.md |
	sed '/^cc program.c/,$d' >"$t/readme.c"
${CC:-cc} -std=c11 -Wall -Wextra -Werror "$t/readme.c" -o "$t/readme" \
	$(pkg-config --cflags --libs collnet) -Wl,-rpath,"$PREFIX/lib"
status=0
"$PREFIX/bin/collnet" lab run --shape 4 --timeout 60 -- "$t/readme" >"$t/out" 2>&1 || status=$?
cat "$t/out"
[ $status -eq 77 ] || grep -q '^rank 3 has 3 from rank 0$' "$t/out"
[ $status -eq 77 ] || [ $status -eq 0 ]

"$PREFIX/bin/collnet" --version
"$PREFIX/sbin/collnetd" --version
