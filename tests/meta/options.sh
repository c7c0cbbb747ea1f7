# SPDX-License-Identifier: BSD-2-Clause
# The options in --help are the options in the manual, and the keys of collnetd.conf(5) are the long
# options of collnetd(8) that a file can contain.
set -u
export LC_ALL=C
cd "$(dirname "$0")/../.." || exit 1
t=$(mktemp -d) || exit 1
trap 'rm -rf "$t"' EXIT
status=0

# same A B TEXT: fails with the lines that are in only one of two sorted lists.
same() {
	comm -3 "$t/$1" "$t/$2" >"$t/wrong"
	[ -s "$t/wrong" ] || return 0
	echo "$3:" $(cat "$t/wrong")
	status=1
}
help_options() {
	grep -oE -- '(^|[^a-z-])--[a-z][a-z-]*' | sed 's/^[^-]*--/--/' | grep -vx -- --help | sort -u
}
page_options() {
	grep -oE -- '(Fl|,) -[a-z][a-z-]*' "$1" | sed 's/.* /-/' | grep -vx -- --help | sort -u
}

commands=$("$BUILD/tools/collnet" --help | sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p')
[ "$(echo "$commands" | grep -cx 'bench\|status')" = 2 ] || {
	echo "collnet --help lists no subcommands: $commands"
	status=1
}
for command in $commands; do
	[ -f "man/collnet-$command.1" ] || {
		echo "collnet-$command(1) does not exist"
		status=1
		continue
	}
	parts=
	[ $command = topo ] && parts="show check draw random tree window"
	[ $command = bench ] && parts=plan
	for part in "" $parts; do
		# shellcheck disable=SC2086 # no word when there is no part
		"$BUILD/tools/collnet" $command $part --help </dev/null || status=1
	done >"$t/text"
	help_options <"$t/text" >"$t/help"
	page_options "man/collnet-$command.1" >"$t/page"
	same help page "collnet $command --help and collnet-$command(1) differ in"
done

"$BUILD/daemon/collnetd" --help </dev/null | help_options >"$t/help"
page_options man/collnetd.8 >"$t/page"
same help page "collnetd --help and collnetd(8) differ in"
sed -n 's/^\.It Ic \([a-z-]*\) Ta.*/--\1/p' man/collnetd.conf.5 | sort -u >"$t/keys"
grep -vxE -- '--(config|ready-fd|version)' "$t/page" >"$t/options"
same options keys "collnetd(8) and collnetd.conf(5) differ in"
sed -n 's/^#\{0,1\}\([a-z][a-z-]*\) [^ ]*$/--\1/p' daemon/collnetd.conf | sort -u >"$t/example"
same keys example "collnetd.conf(5) and daemon/collnetd.conf differ in"
exit $status
