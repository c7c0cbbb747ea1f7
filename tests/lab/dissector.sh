# SPDX-License-Identifier: BSD-2-Clause
# Wireshark's dissector on captures of the lab: each encapsulation and link udp, with super-frames, collective
# operations and messages.
# timeout: 180
# concurrent: yes
. "$(dirname "$0")/lib.sh"
need_lab
need tshark dumpcap
lua=$(dirname "$(command -v collnet)")/../lib/wireshark/plugins/collnet.lua
[ -f "$lua" ] || fail "the dissector is not installed"
host_commands await
export lua

# captured COMMAND...: runs it on the host, of which rank 0 captures. The last that is captured is
# that the endpoint of the last job is closed.
cat >captured <<'EOS'
#!/bin/sh
[ "$COLLNET_RANK" = 0 ] || exec "$@"
rm -f "$HERE/pcap"
dumpcap -q -i eth0 -w "$HERE/pcap" 2>"$HERE/dumpcap.err" &
await "$HERE/dumpcap.err" 20 File: || exit 1
"$@" || exit 1
n=60
until tshark -n -X "lua_script:$lua" -r "$HERE/pcap" -Y 'collnet.control == 20' 2>/dev/null | grep -q .; do
	[ $((n -= 1)) -gt 0 ] || exit 1
	sleep 0.05
done
kill -INT $!
wait $!
EOS
cat >jobs <<'EOS'
#!/bin/sh
collnet bench alltoall --sizes 64k --iterations 3 && collnet bench stream --sizes 100k --iterations 3
EOS
chmod +x captured jobs

# The fields of a line of ./read, of all frames of a packet: comma-separated values.
fields="frame.protocols frame.len collnet.type collnet.padding collnet.control collnet.control.ranks
	collnet.coll.operation collnet.coll.algorithm collnet.message.bytes _ws.expert.message"
for lab in "--encapsulation raw" "--encapsulation udp" "--encapsulation tcp" "--ip --daemon-arg=--link=udp"; do
	# shellcheck disable=SC2086 # a list of words
	collnet lab run --shape 2 --rate none --timeout 60 $lab -- ./captured ./jobs >out 2>&1 </dev/null ||
		{ cat out dumpcap.err; fail "$lab"; }
	# shellcheck disable=SC2046,SC2086 # lists of words
	tshark -n -X "lua_script:$lua" -r pcap -T fields -E separator='|' $(printf -- '-e %s ' $fields) \
		-Y 'eth.type == 0x88b5 || udp.port == 34997 || tcp.port == 34997' >read 2>err ||
		{ cat err; fail "$lab"; }
	lacks 'Lua:' err
	awk -F'|' -v lab="$lab" '
		function must(what, is) { if (!is) { print "not right: " what; bad = 1 } }
		{
			must("all are read: " $0, $1 ~ /:collnet/)
			must("none is cut: " $0, $NF !~ /Shorter|Another wire/)
			must("padding: " $0, $4 == "" || $2 <= 60 || $3 ~ /^2(,|$)/)
			if ($3 ~ /,/) together++
			n = split($5, kinds, ",")
			for (i = 1; i <= n; i++) control[kinds[i]]++
			if ($5 ~ /^1(,|$)/ && $6 == 2) joins++
			if ($7 ~ /^1(,|$)/ && $8 ~ /^1(,|$)/) operations++
			if ($9 ~ /102400/) messages++
		}
		END {
			must("super-frames", lab !~ /tcp/ || together > 0) # with udp only on Linux 6.2 and later
			must("JOIN", joins > 0)
			must("COMMIT, LEAVE, END, GRANT", control[2] && control[3] && control[4] && control[16])
			must("an all-to-all by the shuffle", operations > 0)
			must("messages", messages >= 3)
			exit bad
		}' read || fail "$lab"
	echo "ok: $lab: $(wc -l <read) packets"
done
