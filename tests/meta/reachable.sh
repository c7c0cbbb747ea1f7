# SPDX-License-Identifier: BSD-2-Clause
# libcollnet contains only code that the public interface or collnetd reaches. The test follows undefined
# symbols from the exported functions and from the daemon's objects through the objects of the
# library's archives; an object that is never reached fails it.
set -u
export LC_ALL=C
cd "$(dirname "$0")/../.." || exit 1
t=$(mktemp -d) || exit 1
trap 'rm -rf "$t"' EXIT

# Archive members are not unique by name, so an object is "module/member".
modules="util proto topo sched link coll node ipc client"
for m in $modules; do
	nm -A -g "$BUILD/lib/.libs/libcn_$m.a" 2>/dev/null |
		sed -n "s|^[^:]*:\([^:]*\):[0-9a-f ]*\([A-Za-z]\) \(.*\)$|$m/\1 \2 \3|p"
done >"$t/objects"
{
	sed -n 's/^[[:space:]]*\(collnet_[a-z_]*\);.*/\1/p' lib/collnet.map
	nm -u -g "$BUILD"/daemon/.libs/libcn_daemon.a 2>/dev/null | awk '$1 == "U" { print $2 }'
} | sort -u >"$t/roots"
[ -s "$t/roots" ] && [ -s "$t/objects" ] || {
	echo "no symbols were found in $BUILD"
	exit 1
}
awk -v roots="$t/roots" '
	{ objects[$1] = 1 }
	$2 == "U" { wants[$1] = wants[$1] " " $3; next }
	$2 ~ /[TDBRVWC]/ { defines[$3] = $1 }
	END {
		while ((getline symbol <roots) > 0) {
			queue[n++] = symbol
		}
		for (i = 0; i < n; i++) {
			object = defines[queue[i]]
			if (object == "" || object in reached) {
				continue
			}
			reached[object] = 1
			count = split(wants[object], more, " ")
			for (k = 1; k <= count; k++) {
				queue[n++] = more[k]
			}
		}
		for (object in objects) {
			if (!(object in reached)) {
				print "nothing reaches " object
				bad = 1
			}
		}
		exit bad
	}' "$t/objects"
