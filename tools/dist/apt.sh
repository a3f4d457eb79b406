# Sourced: apt for other suites and machines than this system's, without root and without an installation.
# `begin_apt FOLDER ARCH SUITE...` keeps its files in FOLDER/apt, an absolute path, and `apt WORD...` is apt-get there.
# The caller sets tools, the path of this repository's tools/.
begin_apt() {
	apt_folder=$1 apt_arch=$2
	shift 2
	command -v apt-get >/dev/null || { echo "$0: this is not a Debian system: there is no apt-get" >&2; exit 3; }
	mirror=$(sh "$tools/mirror.sh") security=$(sh "$tools/mirror.sh" -security)
	[ -n "$mirror" ] || { echo "$0: apt knows no mirror of Debian; run: apt-get update" >&2; exit 3; }
	mkdir -p "$apt_folder/apt/lists/partial" "$apt_folder/apt/archives/partial"
	: >"$apt_folder/apt/status"
	for suite; do
		echo "deb [arch=$apt_arch] $mirror $suite main"
	done >"$apt_folder/apt/sources.list"
	[ -z "$security" ] || echo "deb [arch=$apt_arch] $security $suite-security main" >>"$apt_folder/apt/sources.list"
	apt update
}

apt() {
	apt-get -q -o Dir::Etc::sourcelist="$apt_folder/apt/sources.list" -o Dir::Etc::sourceparts=- \
		-o Dir::State="$apt_folder/apt" -o Dir::State::status="$apt_folder/apt/status" -o Dir::Cache="$apt_folder/apt" \
		-o APT::Architecture="$apt_arch" -o APT::Architectures::="$apt_arch" -o APT::Sandbox::User= "$@" \
		>"$apt_folder/log" 2>&1 || {
		cat "$apt_folder/log" >&2
		echo "$0: apt-get $1 failed" >&2
		exit 3
	}
}
