# SPDX-License-Identifier: BSD-2-Clause
# The completion for bash offers what there is: each subcommand, and of each command the options of its
# manual page; zsh completes by the same function.
. "$(dirname "$0")/lib.sh"
dir=$PREFIX/share/bash-completion/completions
PATH=$PREFIX/bin:$PREFIX/sbin:$PATH
: >"$t/err"
command -v bash >/dev/null || {
	echo "skip: bash is not installed"
	exit 77
}

# offers WORD...: writes the completions of the last of these words to $t/out.
offers() {
	bash -uc '. "$1/${2##*/}" || exit 1
		shift
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		_collnet
		printf "%s\n" "${COMPREPLY[@]}" | sed "/^$/d" | sort' bash "$dir" "$@" >"$t/out" 2>"$t/err" ||
		fail "completion of $*"
	[ ! -s "$t/err" ] || fail "completion of $*"
	[ -z "$(uniq -d "$t/out")" ] || fail "twice in the completion of $*"
}
# is WORD... -> WORD...: exactly the second ones are offered.
is() {
	words=
	while [ "$1" != '->' ]; do
		words="$words '$1'"
		shift
	done
	shift
	eval "offers $words"
	[ "$(xargs <"$t/out")" = "$*" ] || fail "completion of$words"
}

# Each option of a page is offered after some words of its commands, and nothing else.
page() {
	grep -oE -- '(Fl|,) -[a-z][a-z-]*' "$1" | sed 's/.* /-/; /^--help$/d' | sort -u >"$t/page"
	sed '/^--help$/d' "$t/all" | sort -u | diff "$t/page" - >"$t/out" || fail "options offered for $1"
}
subcommands=$(ls man/collnet-*.1 | sed 's/.*collnet-\(.*\)\.1/\1/')
# shellcheck disable=SC2086 # a list of words
is collnet '' '->' $subcommands
for command in $subcommands; do
	offers collnet "$command" --
	cp "$t/out" "$t/all"
	case $command in
	topo | bench)
		offers collnet "$command" ''
		for part in $(cat "$t/out"); do
			offers collnet "$command" "$part" --
			cat "$t/out" >>"$t/all"
		done
		;;
	esac
	page "man/collnet-$command.1"
done
# Operations: those that the command names when it is given another word.
for command in bench sim; do
	known=$(collnet $command nothing 2>&1 | sed 's/.* one of //; s/.* there are //; s/; see.*//' | tr -d ,)
	# shellcheck disable=SC2086 # a list of words
	is collnet $command '' '->' $(printf '%s\n' $known | sort)
done
offers collnetd -
cp "$t/out" "$t/all"
page man/collnetd.8

# Each operation that is offered is one.
offers collnet schedule ''
operations=$(cat "$t/out")
[ "$(echo "$operations" | wc -l)" -ge 10 ] || fail "operations of collnet schedule"
for op in $operations; do
	ends schedule 0 "$op" --shape 2
done
is collnet topo '' '->' check draw random show tree window
is collnet topo show '' '->'
is collnet lab '' '->' run shell
is collnet compare alltoall ba '->' barrier
is collnet compare lo '->' loop
is collnet bench alltoall --w '->' --warmup --window
is collnet bench alltoall --window '' '->' auto off
is collnet bench alltoall --mode = d '->' daemon direct
is collnet bench alltoall --mode=d '->' --mode=daemon --mode=direct
is collnet bench alltoall --csv '' '->'
is collnet bench alltoall --permutation s '->' shift
is collnet lab run --encapsulation '' '->' raw tcp udp
is collnet topo draw --ring lr '->' lr1 lr2 lr3
is collnet schedule alltoall --check --explai '->' --explain
is collnetd --interface lo '->' lo
is collnet lab run --shape 2 -- collnet-no-such-comman '->'
is "$PREFIX/bin/collnet" lab run --shape 2 -- collnetd '->' collnetd
is collnet nothing '->'

command -v zsh >/dev/null || exit 0
cat >"$t/zsh" <<'EOS'
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "fpath=($1 \$fpath); autoload -U compinit; compinit -u -D"
zpty -w -n z $'collnet bench --mode=di\t\x0c' # ^L: the line is written again
zpty -r z line '*collnet bench --mode=direct*'
EOS
timeout 60 zsh -f "$t/zsh" "$PREFIX/share/zsh/site-functions" >"$t/out" 2>"$t/err" || fail "zsh"
exit 0
