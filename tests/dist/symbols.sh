# Each program and library of a portable tree needs glibc 2.28 at most, and nothing but glibc:
# symbols.sh FOLDER.
cd "$1" || exit 1
find . -type f | sort | while read -r file; do
	[ "$(head -c 4 "$file" | od -An -c | tr -d ' ')" = '177ELF' ] || continue
	echo "file $file"
	objdump -p "$file"
done | awk '
	$1 == "file" { file = $2; files++; references = 0 }
	$1 == "NEEDED" && $2 !~ /^(lib(c|m|dl|pthread|rt)\.so\.[0-9]+|ld-linux.*)$/ { print file " needs " $2; bad = 1 }
	/^Version References/ { references = 1 }
	/^Version definitions/ { references = 0 }
	references && $4 ~ /^GLIBC_/ && split(substr($4, 7), v, ".") && (v[1] > 2 || v[2] > 28) { print file " needs " $4; bad = 1 }
	END { print files + 0 " programs and libraries"; exit bad || !files }'
