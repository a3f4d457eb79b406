# Completion in bash, and in fish and zsh where they are; and the values that complete are those that the program takes.
weir=$1
. "$(dirname "$0")/expect.sh"
source=$(cd "$2" && pwd)
build=$(cd "$(dirname "$weir")/.." && pwd)
weir=$build/bin/weir
cd "$scratch" || exit 1
mkdir folder && : >some.weir

# The words of the line, split at = as bash splits them; what completes the last.
cat >complete.bash <<END
source "$build/gen/weir.bash"
COMP_WORDS=("\$@") COMP_CWORD=\$((\$# - 1)) COMPREPLY=()
compopt() { :; }
_weir
echo "\${COMPREPLY[*]}"
END
complete() {
	want=$1
	shift
	expect 0 "^$want\$" bash complete.bash weir "$@"
}
complete record rec
complete 'off stat work full all' record --level = ''
complete full record --level = f
complete 'stat' record -l s
complete 'profiler range: step:' run --capture ''
complete 'latency best-effort' run --class = ''
complete '' run --weight = ''
complete 'folder' run --share = f
complete 'some.weir' report s
complete 'some.weir' predict -m s
complete 'stat stop status' ctl 17 st
complete 'stat' help st
complete '--steps= --steady' report --st
complete 'chrome csv columns' export -f c
complete '.*some.weir.*' record --level = full -- cat s
complete '.*gzip.*' record -o some.weir gzi
complete '' trace --longer = ''
complete 'device' flame --by = d
complete 'launch launches' diff --fail-on = lau
complete 'phase p50 p95 p99 peak_bytes path_host path_launch path_waiting path_overlapped path_unknown path_computing path_queue' diff -f p

if command -v fish >/dev/null; then
	in_fish() {
		fish -c "source $build/gen/weir.fish; complete -C '$1'" | cut -f 1 | tr '\n' ' '
	}
	expect 0 '^record $' in_fish 'weir rec'
	expect 0 '^--level=all --level=full --level=off --level=stat --level=work $' in_fish 'weir record --level='
	expect 0 '^work $' in_fish 'weir record -l w'
	expect 0 '^--steady --steps $' in_fish 'weir report --st'
	expect 0 'some.weir' in_fish 'weir report so'
	expect 0 'gzip' in_fish 'weir record -o some.weir gzi'
fi
if command -v zsh >/dev/null; then
	expect 0 '^$' zsh -n "$build/gen/_weir"
fi

# Each value of the table stands in what the command says of a wrong one, or is taken.
says() {
	"$weir" "$@" 2>&1 </dev/null || :
}
check() { # COMMAND OPTION TEXT
	for value in $(awk -F ' [|] ' -v c="$1" -v o="$2" '{ for (i = 1; i <= 3; i++) gsub(/^[ \t]+|[ \t]+$/, "", $i) }
			$1 ~ "(^|[+])" c "([+]|$)" && $2 == o { print $3 }' "$source/api/value.tbl"); do
		printf '%s\n' "$3" | grep -qF -- "${value%:}" && continue
		echo "FAILED: weir $1 --$2 does not know $value: $3"
		failures=$((failures + 1))
	done
}
check record level "$(says record --level=nonsense -- true)"
check record gpu "$(says record --gpu=nonsense -- true)"
check record python "$(says record --python=nonsense -- true)"
check record capture "$(says record --capture=nonsense -- true)"
check run class "$(says run --sim --share "$scratch/share" --class=nonsense -- true)"
check run request "$(says run --sim --share "$scratch/share" --request=nonsense -- true)"
check whatif class "$(says whatif --class=nonsense some.weir)"
check whatif policy "$(says whatif --policy=nonsense some.weir)"
check whatif arrivals "$(says whatif --arrivals=nonsense some.weir)"
check ctl - "$(says ctl some.weir nonsense; "$weir" help ctl; "$weir" help record)"
check sched - "$(says sched nonsense)"
check export format "$(says export -f nonsense some.weir)"
check flame format "$(says flame -f nonsense some.weir)"
check flame by "$(says flame --by nonsense some.weir)"
# Metrics come from a table of their own: all of them are in the help, and complete.
said=$(says diff -f help some.weir some.weir)
for metric in $(awk -F ' [|] ' '!/^#/ && NF { sub(/ +$/, "", $1); print $1 }' "$source/api/metric.tbl"); do
	printf '%s\n' "$said" | grep -q "^ *$metric " && continue
	echo "FAILED: weir diff --fail-on does not know $metric: $said"
	failures=$((failures + 1))
done
check eval split "$(says eval --split=nonsense some.weir some.weir)"
for class in $(awk -F ' [|] ' '$1 ~ /^trace/ && $2 ~ /expression/ { print $3 }' "$source/api/value.tbl"); do
	! "$weir" trace -e "$class" -o /dev/null -- true 2>&1 | grep 'fits no CUDA call' || failures=$((failures + 1))
done
finish
