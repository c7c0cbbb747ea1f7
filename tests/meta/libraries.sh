# SPDX-License-Identifier: BSD-2-Clause
# Programs that use libcollnet, collnetd and collnet load the C library and nothing else: libpcap and
# libnet, and with them D-Bus, systemd and gcrypt, only with --link pcap. And where these are missing,
# the error names the package.
set -u
export LC_ALL=C
t=$(mktemp -d) || exit 1
trap 'rm -rf "$t"' EXIT
status=0
export LD_LIBRARY_PATH="$PREFIX/lib"

printf '#include <collnet/collnet.h>\nint main(void) { return collnet_version()[0] == 0; }\n' >"$t/program.c"
${CC:-cc} -I"$PREFIX/include" -o "$t/program" "$t/program.c" -L"$PREFIX/lib" -lcollnet || exit 1
for file in "$PREFIX/lib/libcollnet.so" "$PREFIX/sbin/collnetd" "$PREFIX/bin/collnet" "$t/program"; do
	ldd "$file" >"$t/ldd" || exit 1
	grep -q 'libc\.so' "$t/ldd" || {
		echo "ldd $file shows no C library"
		status=1
	}
	# Sanitizers bring their own libraries.
	sed -n 's/^[[:space:]]*\([^ ]*\).*/\1/p' "$t/ldd" | grep -v -e 'linux-vdso' -e 'ld-linux' -e 'libc\.so' \
		-e 'libm\.so' -e 'libcollnet\.so' -e 'libasan' -e 'libubsan' -e 'libgcc_s' -e 'libstdc++' \
		-e 'libpthread' -e 'libdl\.' >"$t/extra"
	[ ! -s "$t/extra" ] || {
		echo "$file loads" $(cat "$t/extra")
		status=1
	}
done
grep -q '^#define HAVE_PCAP' "$BUILD/config.h" || exit $status

# In place of libpcap, an empty library.
echo 'int nothing;' >"$t/nothing.c"
${CC:-cc} -shared -fPIC -o "$t/libpcap.so.0.8" "$t/nothing.c" || exit 1
LD_LIBRARY_PATH="$t:$LD_LIBRARY_PATH" "$PREFIX/sbin/collnetd" --link pcap --encapsulation raw -i lo --user none \
	--socket "$t/socket" >"$t/out" 2>&1 && status=1
grep -q 'link pcap needs pcap_create() of libpcap.so.0.8: install .* libpcap0.8' "$t/out" || {
	cat "$t/out"
	status=1
}
exit $status
