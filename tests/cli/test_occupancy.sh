# Occupancy: the answer in words, in JSON and in rows, and what is said of questions that make no
# sense.
weir=$1 source=$2
. "$(dirname "$0")/expect.sh"
ask="$weir occupancy --cc 9.0 --regs 64"

expect 0 '4 blocks on each SM: 32 of 64 warps, 50 %' $ask --smem 16K --block 256
expect 0 '4 blocks +registers +<- the limit' $ask --block 256
expect 0 'registers +64 +48: 5 blocks, 62.5 % +65: 3 blocks, 37.5 %' $ask --block 256
expect 0 '1 block on each SM' $ask --block 1024 --dynamic 227K
expect 0 '4 blocks +barriers +<- the limit' "$weir" occupancy --cc 90 -r 32 -b 128 --barriers 16
expect 0 '"occupancy": 0.5,' $ask --block 256 --json
expect 0 '"occupancy": 0.96875,' "$weir" occupancy --cc sm_90a --regs 32 --block 992 --json
expect 0 '"shared": \{"more": null, "fewer": \{"value": 57345,' $ask --block 256 --json
expect 0 '^ +1024 +1 +32 +50 % +registers   best' $ask --scan
expect 0 '^ +256 .*<- asked for' $ask --scan --block 250
expect 0 '"threads_per_block": 1024' $ask --scan --json
# A smaller carveout leaves the block as it is while one fits.
expect 0 '3 blocks +shared memory +<- the limit' $ask --block 64 --smem 20K --carveout 28

expect 1 'the launch is refused: 1024 threads with 65 registers' \
	"$weir" occupancy --cc 9.0 --regs 65 --block 1024
expect 1 'refused: a block has at most 1,?024 threads, not 1,?025' $ask --block 1025
expect 1 'refused: a block has at least one thread' $ask --block 0
expect 1 'at most 232,?448 bytes of shared memory, not 232,?449' $ask --block 32 --smem 232449
expect 1 'an SM has 64 barriers, and a block wants 65' $ask --block 32 --barriers 65
expect 1 'a thread has at most 255 registers' "$weir" occupancy --cc 9.0 --block 32 --regs 99999999999
expect 1 '"refusal": "a block has at most' $ask --block 2000 --json

expect 2 '--cc is missing: .*9\.0' "$weir" occupancy --regs 32 --block 32
expect 2 "compute capability '6.1' is not known. The known ones are 7.0, .* 12.1" "$weir" occupancy --cc 6.1
expect 2 '--block is missing' $ask
expect 2 '--regs is missing' "$weir" occupancy --cc 9.0 --block 32
expect 2 '--smem=x: give a size' $ask --block 32 --smem x
expect 2 '--carveout=101: give a whole number from 0 to 100' $ask --block 32 --carveout 101
expect 2 '--json does not go with --csv' "$weir" occupancy --csv --json

header=cc,threads_per_block,regs_per_thread,smem_static_bytes,smem_dynamic_bytes
# rows INPUT OUTPUT CODE PATTERN: the pattern is of the errors; without one there are none.
rows() {
	printf "$1" >"$scratch/in.csv"
	printf "$2" >"$scratch/want.csv"
	"$weir" occupancy --csv <"$scratch/in.csv" >"$scratch/out.csv" 2>"$scratch/err"
	code=$?
	echo "exit $code" >>"$scratch/err"
	if [ $code != "$3" ] || ! cmp -s "$scratch/want.csv" "$scratch/out.csv" ||
		! head -n 1 "$scratch/err" | grep -Eq -- "${4:-^exit}"; then
		printf 'FAILED: rows %s\n  exit %s, expected %s and /%s/\n' "$1" $code "$3" "$4"
		diff "$scratch/want.csv" "$scratch/out.csv"
		cat "$scratch/err"
		failures=$((failures + 1))
	fi
}
silent() {
	rows "$1" "$2" 0 ''
}
more=,blocks_per_sm,occupancy,limiter
silent "$header\n9.0,256,64,16384,0\n" "$header$more\n9.0,256,64,16384,0,4,0.5,registers\n"
silent "$header\n8.6,768,32,0,0\n8.6,32,32,0,0" \
	"$header$more\n8.6,768,32,0,0,2,1,warps\n8.6,32,32,0,0,16,0.333333,blocks\n"
silent "$header\n" "$header$more\n"
# A refused launch is an answer.
silent "$header\n9.0,1025,1,0,0\n9.0,99999999999999999999,1,0,0\n" \
	"$header$more\n9.0,1025,1,0,0,0,0,invalid\n9.0,99999999999999999999,1,0,0,0,0,invalid\n"
# Any order, quotes, a mark of UTF-8, CRLF, blank lines, columns of others.
silent '\357\273\277"name",regs_per_thread, CC,threads_per_block,smem_static_bytes,smem_dynamic_bytes\r\n\r\n"k<int, ""x"">",32,sm_90,"256",1024.0, 0 \r\n' \
	'\357\273\277"name",regs_per_thread, CC,threads_per_block,smem_static_bytes,smem_dynamic_bytes,blocks_per_sm,occupancy,limiter\r\n\r\n"k<int, ""x"">",32,sm_90,"256",1024.0, 0 ,8,1,warps\r\n'
# Bad rows come back empty, and the others are answered.
rows "$header\n9.0,x,1,0,0\n9.0,32\n9.0,64,16,0,0\n" \
	"$header$more\n9.0,x,1,0,0,,,\n9.0,32,,,,,,\n9.0,64,16,0,0,32,1,warps\n" 2 \
	"line 2: threads_per_block is 'x', not a whole number"
rows "$header\n\n6.1,32,1,0,0\n" "$header$more\n\n6.1,32,1,0,0,,,\n" 2 "line 3: cc is '6.1'. The known"
rows "$header\n9.0,-1,1,0,0\n" "$header$more\n9.0,-1,1,0,0,,,\n" 2 "'-1', not a whole number"
rows "$header\n9.0,,1,0,0\n" "$header$more\n9.0,,1,0,0,,,\n" 2 "'', not a whole number"
rows "$header\n9.0,1,1,0,0,7\n" "$header$more\n9.0,1,1,0,0,7,,,\n" 2 'are 6 fields, but the header has 5'
rows "$header\n\"9.0,1,1,0,0\n9.0,32,16,0,0\n" \
	"$header$more\n\"9.0,1,1,0,0,,,\n9.0,32,16,0,0,32,0.5,blocks\n" 2 'line 2: a quote is not closed'
rows 'a,b\n' '' 2 "the header has no column 'cc'"
rows "$header,cc\n" '' 2 'the column cc is there twice'
rows '' '' 2 'nothing on standard input'

# A flood of bad rows is counted.
{
	echo $header
	yes x | head -n 1000
} >"$scratch/flood.csv"
expect 2 '990 rows more could not be read' sh -c "$weir occupancy --csv <$scratch/flood.csv"

# NVIDIA's answers, as far as a row can ask for them.
sed 's/[{},]/ /g' "$source/tests/unit/occupancy_known.inc" | awk -v header=$header '
	BEGIN { print header ",expected" }
	!$8 && !$10 && !$12 && ($7 < 2 || $1 < 9) {
		printf "%s.%s,%s,%s,%s,%s,%s\n", $1, $2, $3, $4, $5, $6, $13
	}' >"$scratch/known.csv"
"$weir" occupancy --csv <"$scratch/known.csv" |
	awk -F, 'NR > 1 { n++; bad += $6 != $7 } END { exit n < 200 || bad }' || {
	echo "FAILED: rows of known answers"
	failures=$((failures + 1))
}
finish
