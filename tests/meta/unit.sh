# SPDX-License-Identifier: BSD-2-Clause
# systemd finds nothing wrong with the unit, and the example of a configuration, with its lines
# uncommented, is one that collnetd understands.
set -u
t=$(mktemp -d) || exit 1
trap 'rm -rf "$t"' EXIT
example=$(find "$PREFIX/share/doc" -name collnetd.conf | head -n 1)
[ -n "$example" ] || {
	echo "make install gives no example of collnetd.conf"
	exit 1
}
echo 'host n17' >"$t/topology"
(umask 077 && echo 0123456789abcdef0123456789abcdef >"$t/key")
sed -e 's/^#\([a-z]\)/\1/' -e "s|/etc/collnet/topology|$t/topology|" \
	-e "s|/etc/collnet/key|$t/key|" "$example" >"$t/conf"
# It is refused for its interface, not for its configuration.
timeout 10 "$PREFIX/sbin/collnetd" --config "$t/conf" --interface lo --user none --group "$(id -gn)" >"$t/out" 2>&1
grep -q 'interface lo is not Ethernet' "$t/out" && ! grep -q "$t/conf" "$t/out" || {
	cat "$t/out"
	exit 1
}
# A restart leaves the directory that containers have mounted.
grep -qx 'RuntimeDirectoryPreserve=yes' "$PREFIX/lib/systemd/system/collnetd.service" || {
	echo "a restart makes /run/collnet anew"
	exit 1
}
command -v systemd-analyze >/dev/null || {
	echo "skip: systemd-analyze is not installed"
	exit 77
}
out=$(systemd-analyze verify --man=no "$PREFIX/lib/systemd/system/collnetd.service" 2>&1)
status=$?
# Other units of this machine may have faults of their own.
echo "$out" | grep collnetd && exit 1
[ $status -eq 0 ] || [ -n "$out" ]
