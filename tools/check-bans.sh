# Functions that nobody may call, and those that the hook may not: check-bans.sh ROOT.
cd "$1" || exit 1
all='strcpy|strcat|sprintf|vsprintf|strtok|gets|atoi|localtime|system|alloca'
hook='malloc|calloc|realloc|free|strdup|f?printf|vf?printf|puts|fopen|getenv|setenv|exit|abort'
hook="$hook|pthread_mutex_lock|pthread_rwlock_[a-z]*lock|sem_wait|signal|sigaction|syslog"

banned() {
	names=$1 what=$2
	shift 2
	grep -nE "(^|[^A-Za-z0-9_.>])($names) ?\(" "$@" /dev/null 2>/dev/null |
		grep -vE ':[0-9]+:[[:space:]]*(/?\*|//)|^src/base/banned.h|^[^:]*:[0-9]+:#' |
		sed "s/^/  $what: /"
}

found=$(
	banned "$all" "banned" $(find src sim -name '*.[ch]')
	banned "$hook" "banned in the hook" $(find src/hook -name '*.c') src/record/writer.c src/record/clock_readings.c
)
[ -z "$found" ] || printf '%s\n' "$found"
[ -z "$found" ]
