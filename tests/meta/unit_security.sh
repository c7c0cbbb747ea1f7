# SPDX-License-Identifier: BSD-2-Clause
# The systemd unit: it is valid, names the paths of this build, and its exposure is at most 1.5.
. "$(dirname "$0")/lib.sh"

unit=$PREFIX/lib/systemd/system/collnetd.service
cp "$unit" "$t/out" || exit 1
: >"$t/err"
has "^ConditionPathExists=$PREFIX/etc/collnet/collnetd.conf$"
has "^ExecStart=$PREFIX/sbin/collnetd --config $PREFIX/etc/collnet/collnetd.conf$"
has "^User=collnet$"
[ "$(sed -n 's/^CapabilityBoundingSet=//p' "$unit")" = CAP_NET_RAW ] || fail "capabilities of the unit"
[ "$(sed -n 's/^AmbientCapabilities=//p' "$unit")" = CAP_NET_RAW ] || fail "capabilities of the unit"
grep -q '^u collnet ' "$PREFIX/lib/sysusers.d/collnet.conf" || fail "no user in sysusers.d"

# A mistake in the configuration is not tried again and again.
printf 'windoes 3\n' >"$t/conf"
"$PREFIX/sbin/collnetd" --config "$t/conf" >"$t/out" 2>"$t/err"
status=$?
has "unknown key 'windoes'" err
grep -q "^RestartPreventExitStatus=$status$" "$unit" || fail "the unit starts it again after status $status"

command -v systemd-analyze >/dev/null || {
	echo "skip: systemd-analyze is not installed"
	exit 77
}
systemd-analyze security --offline=yes "$unit" >"$t/out" 2>"$t/err" || {
	grep -qi "unrecognized option\|unknown option" "$t/err" || fail "systemd-analyze"
	echo "skip: this systemd-analyze cannot work offline (systemd 250)"
	exit 77
}
figure=$(sed -n 's/.*Overall exposure level for [^:]*: *\([0-9]*\)\.\([0-9]*\).*/\1\2/p' "$t/out")
[ -n "$figure" ] || fail "no figure"
[ "$figure" -le 15 ] || fail "exposure $figure tenths, more than 15"
echo "ok: exposure $figure tenths"
