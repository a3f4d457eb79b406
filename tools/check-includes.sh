# Rooms include only the rooms below them, as tools/rooms.tbl says: check-includes.sh ROOT.
cd "$1" || exit 1
table=$(cd "$(dirname "$0")" && pwd)/rooms.tbl
[ -f tools/rooms.tbl ] && table=tools/rooms.tbl
find src -mindepth 2 -name '*.[chS]' | xargs awk '
	FILENAME ~ /rooms\.tbl$/ {
		if (!/^#/ && NF) {
			known[$1] = 1
			for (i = 1; i <= NF; i++)
				may[$1, $i] = 1
		}
		next
	}
	FNR == 1 { split(FILENAME, part, "/"); room = part[2] }
	FNR == 1 && !(room in known) {
		print "  " FILENAME ": room " room " is not in tools/rooms.tbl"
		bad = 1
	}
	/^#[ \t]*include "[^"]*\// {
		split($0, quoted, "\"")
		split(quoted[2], part, "/")
		if ((part[1] in known) && !((room, part[1]) in may)) {
			print "  " FILENAME ":" FNR ": " room " may not include " quoted[2]
			bad = 1
		}
		if (part[1] == "..") {
			print "  " FILENAME ":" FNR ": name the room, not a way to it"
			bad = 1
		}
	}
	END { exit bad }' "$table"
