# Two builds in different folders give the same bytes: same.sh, after `make packages`.  The
# committed tree is built again, in a folder made for it, without a compiler cache.
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
machine=$(uname -m)
[ -z "$(git -C "$source" status --porcelain)" ] || { echo "same.sh: commit first: only what is committed can be compared" >&2; exit 1; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
git clone -q "$source" "$scratch/another"
for tree in "$source"/dist/weir-*.tar.zst; do
	built=${tree##*-linux-}
	CCACHE_DISABLE=1 sh "$scratch/another/tools/dist.sh" "${built%%.*}" "$scratch" >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; exit 1; }
done
sh "$scratch/another/tools/packages.sh" "$machine" "$scratch" >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; exit 1; }
diff "$scratch/SHA256SUMS" "$source/dist/SHA256SUMS" || exit 1
echo "the same bytes twice, of $(grep -c . "$scratch/SHA256SUMS") files"
