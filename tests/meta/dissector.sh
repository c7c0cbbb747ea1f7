# SPDX-License-Identifier: BSD-2-Clause
# Wireshark's dissector: its numbers and names are those of the headers and the registry, and where
# tshark is installed, it reads a capture of collnet sim as the simulator's trace does.
. "$(dirname "$0")/lib.sh"
lua=packaging/collnet.lua
: >"$t/err"

# ---- numbers and names ------------------------------------------------------------------
# "NAME number" of the C names: constants; tables below "-- enum NAME PREFIX", "-- define PREFIX".
awk '
	/^local CN_[A-Z_]* = / { print $2, $4 }
	/-- (enum|define) / { prefix = $NF; next }
	/^}/ { prefix = "" }
	prefix != "" && / = / {
		gsub(/[][",]/, "")
		name = toupper($1 ~ /^[0-9]/ ? $3 : $1)
		gsub("-", "_", name)
		print prefix name, $1 ~ /^[0-9]/ ? $1 : $3
	}' $lua >"$t/names"
{
	for header in coll/control coll/endpoint collnet/collnet proto/node proto/peer proto/wire \
		sched/permutation sched/sched; do
		echo "#include \"$header.h\""
	done
	sed 's/\(.*\) \(.*\)/_Static_assert((\1) == \2, "\1");/' "$t/names"
} >"$t/names.c"
${CC:-cc} -std=gnu11 -fsyntax-only -Ilib -Ilib/include "$t/names.c" 2>"$t/err" >"$t/out" ||
	fail "$lua and the headers differ"

# All that the headers have. CN_CONTROL_ENDPOINT is where those of endpoints begin.
headers=$(ls lib/coll/*.h lib/proto/*.h lib/sched/*.h lib/include/collnet/*.h)
grep -- '-- \(enum\|define\) ' $lua | sed 's/.*-- //' | while read -r kind name prefix; do
	# shellcheck disable=SC2086 # a list of files
	case $kind in
	enum) sed -n "/^enum $name {/,/^};/p" $headers | grep -oE "^	$(echo "${prefix#-}" | tr -d -)[A-Z0-9_]+" ;;
	define) grep -ohE "^#define $name[A-Z_]+" $headers ;;
	esac | sed 's/.*[ 	]//' | grep -vxE 'CN_CONTROL_ENDPOINT|COLLNET_(OK|INPROGRESS)' |
		sed "s/^/$(echo "$prefix" | grep -o '^-')/"
done | sort -u >"$t/all"
[ "$(wc -l <"$t/all")" -gt 80 ] || fail "the headers' names are not found"
cut -d' ' -f1 "$t/names" | sort >"$t/known"
comm -23 "$t/all" "$t/known" >"$t/out"
[ ! -s "$t/out" ] || fail "missing in $lua"

awk -F '[ ,"]+' '
	/^\t\t\.id = / { id = $3 }
	/^\t\t\.op = / { op = tolower(substr($3, 7)) }
	/^\t\t\.name = / { print op, id, $3 }' lib/sched/registry.c | sort >"$t/rows"
sed -n '/^local algorithms/,/^}/s/^	\([a-z_]*\) = {\(.*\)},/\1\2/p' $lua |
	awk -F '[][ =",]+' '{ for (i = 2; i + 1 < NF; i += 2) print $1, $i, $(i + 1) }' | sort >"$t/algorithms"
[ -s "$t/rows" ] && diff "$t/rows" "$t/algorithms" >"$t/out" || fail "$lua and the registry differ"

# ---- frames -----------------------------------------------------------------------------
command -v tshark >/dev/null || {
	echo "skip: tshark is not installed, which reads captures; the dissector's numbers are right"
	exit 77
}
# fields FIELD...: of the frames of $t/pcap, an empty one as -.
fields() {
	for f; do
		set -- "$@" -e "$f"
		shift
	done
	HOME=$t tshark -n -X "lua_script:$lua" -r "$t/pcap" -T fields -E separator=' ' -E occurrence=a \
		"$@" 2>"$t/err" >"$t/fields" || fail "tshark"
	! grep -i 'lua:' "$t/err" || fail "the dissector"
	sed ':a; s/^ /- /; s/  / - /; ta; s/ $/ -/' "$t/fields"
}

# The frames of the trace, which begins with the measurement, on the captured link, which is the first.
ends sim 0 alltoall --sizes 20k --loss 50000 --shape 2 --algorithm pairwise --permutation shift \
	--iterations 2 --warmup 0 --pcap "$t/pcap" --port s1-h0 --trace "$t/trace"
tr -d '",{}:][' <"$t/trace" | awk '
	/ ph X / {
		for (i = 1; i < NF; i++) v[$i] = $(i + 1)
		if (v["tid"] <= 2) print v["bytes"], v["cat"], v["seq"], v["ack"]
	}' >"$t/traced"
fields frame.len collnet.type collnet.flags.nak collnet.seq collnet.ack |
	awk '{ print $1, $2 == 2 ? $3 == 1 ? "nak" : "ack" : $2 == 3 ? "control" : $2 == 4 ? "data" : "?", $4, $5 }' |
	tail -n "$(wc -l <"$t/traced")" >"$t/read"
[ "$(grep -c nak "$t/traced")" -gt 0 ] && diff "$t/traced" "$t/read" >"$t/out" || fail "seq and ack"

# Sacked frames went by before; those that a NAK wants did, too, or were lost before this link.
fields eth.src collnet.type collnet.seq collnet.ack collnet.sack.valid collnet.sack.bitmap | awk '
	$2 >= 3 { sent[$1, $3] = 1; from[$1] = 1 }
	$5 == 1 {
		for (i = 0; i < 8; i++) {
			digit = index("0123456789abcdef", substr($6, 10 - int(i / 4), 1)) - 1
			if (int(digit / 2 ^ (i % 4)) % 2 == 0) continue
			sacked++
			for (peer in from) if (peer != $1 && !((peer, $4 + 1 + i) in sent)) wrong++
		}
	}
	END { print sacked + 0, wrong + 0 }' >"$t/out"
grep -q '^[1-9][0-9]* 0$' "$t/out" || fail "SACK"

# values FIELD...: sorted and without repetitions.
values() {
	fields "$@" | sort -u >"$t/out"
}
values collnet.hello.name collnet.hello.mtu collnet.hello.cluster
printf '%s\n' '- - -' 'h0 1500 0' 'h1 1500 0' | cmp -s - "$t/out" || fail "hellos"
fields collnet.hello.nonce collnet.hello.echo >"$t/out"
awk '$1 != "-" { sent[$1] = 1 } $2 ~ /[1-9a-f]$/ { echoes++; if (!($2 in sent)) exit 1 } END { exit !echoes }' \
	"$t/out" || fail "nonces"
values collnet.control collnet.control.ranks collnet.control.range collnet.control.job
sed -i '/^[^1] /d; /^-/d' "$t/out"
awk '$1 == 1 && $2 == 2 && $3 ~ /^[01]$/ { n++ } END { exit n != 2 }' "$t/out" || fail "JOIN"
fields eth.src collnet.control collnet.control.team collnet.control.your_team >"$t/out"
awk '$2 == 1 { team[$1] = $3 } $2 == 2 { for (h in team) if (h != $1 && team[h] != $4) exit 1; n++ }
	END { exit n < 2 }' "$t/out" || fail "COMMIT"
values collnet.coll.operation collnet.coll.number collnet.coll.algorithm collnet.coll.permutation
printf '%s\n' '- - - -' '1 0 2 1' '1 1 2 1' | cmp -s - "$t/out" || fail "operations"
ends sim 0 reduce --sizes 8 --shape 2 --warmup 0 --pcap "$t/pcap" --port s1-h0 --algorithm binomial
values collnet.coll.operation collnet.coll.algorithm collnet.coll.element collnet.coll.ordered collnet.coll.root
has '^12 21 [0-9]* [01] [0-7]$'

# Frames that the simulator has not: hex of what follows the Ethernet header.
# is VALUES FIELD...: the only packet begins with these.
is() {
	expected=$1
	shift
	fields "$@" >"$t/out"
	grep -q "^$expected" "$t/out" || fail "not $expected"
}
# packet OPTION HEX...: text2pcap with that option.
packet() {
	option=$1
	shift
	printf '0 %s\n' "$(echo "$*" | tr -d ' ' | sed 's/../& /g')" |
		text2pcap "$option" - "$t/pcap" >"$t/err" 2>&1 || fail "text2pcap"
}
raw="-e 0x88b5"
packet "$raw" c0112502 0000 1001 aabbccdd 00000001 00000002 80000005
is "2 - Another" collnet.version collnet.type _ws.expert.message
packet "$raw" c0113c20 0002 1001 aabbccdd 00000001 00000002 00100312 0000000000000007 \
	000102030405060708090a0b0c0d0e0f 4142
is "7 000102030405060708090a0b0c0d0e0f 4142" collnet.counter collnet.tag collnet.data
packet "$raw" c0113202 0000 1001 aabbccdd 00000001 00000002 80000005 00000000000000000000000000000000000000000000
is "0x00000005 00000000000000000000000000000000000000000000" collnet.sack.bitmap collnet.padding
packet "$raw" c0113400 0100 1001 aabbccdd 00000001 00000002 00100312 41
is "4 Shorter" collnet.type _ws.expert.message
packet "$raw" c0123202
is "- c0123202" collnet.magic data.data
# A super-frame of link udp: a probe with padding, a message, and FAIL with a text.
packet "-u 40000,34997" c0113210 0000 0000 aabbccdd 00000001 00000002 00010000 000000 c0113530 0011 0000 aabbccdd 00000001 00000002 00070009 80000001 00000003 \
	00000000000003e8 41 \
	c0113300 000a 1001 aabbccdd 00000002 00000002 00000000 05 00000063 84 03 626164
is "1 7 9 1 1 3 5 4 1 bad" collnet.probe.try collnet.message.to collnet.message.from collnet.message.grantreq collnet.message.bytes \
	collnet.message.number collnet.control collnet.control.error collnet.control.forming collnet.control.text
exit 0
