# A program of musl, another libc, which takes LD_PRELOAD as glibc does: it behaves as it would alone, also where
# glibc's programs are its parents, and `weir record` says why it sees nothing.
. "$(dirname "$0")/paths.sh"
need_hook
command -v musl-gcc >/dev/null || { echo "musl-gcc is not installed"; exit 77; }
make_work musl
cd "$work" || exit 1
cat >program.c <<'EOF'
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *thread(void *errno_of_thread)
{
	errno = 7;
	return dlopen("none.so", RTLD_NOW) ? NULL : errno_of_thread;
}

int main(int argc, char **argv)
{
	char *(*find)(const char *, int) = (char *(*)(const char *, int))dlsym(RTLD_DEFAULT, "strchr");
	char *(*next)(const char *, int) = (char *(*)(const char *, int))dlsym(RTLD_NEXT, "strchr");
	pthread_t t;
	void *came = NULL;
	int status = 1;
	printf("%s %d\n", find("ab", 'b'), find == next);
	printf("%d\n", dlsym(RTLD_DEFAULT, "cuInit") != NULL);
	printf("%s\n", dlerror() ? "an error" : "no error");
	printf("%d\n", pthread_create(&t, NULL, thread, &came) || pthread_join(t, &came) || !came);
	fflush(stdout);
	const pid_t pid = fork();
	if (!pid)
		_exit(dlsym(RTLD_DEFAULT, "malloc") ? 5 : 6);
	waitpid(pid, &status, 0);
	printf("%d %d\n", WEXITSTATUS(status), argc);
	return 3;
}
EOF
musl-gcc -o program program.c || exit 1
env -i PATH="$PATH" ./program one >alone 2>&1
bad=0
same() {
	[ "$1" = 3 ] && cmp -s alone out && ! grep -v '^weir: ' err && return
	echo "$2: status $1, alone 3:"
	cat out err
	bad=1
}
env -i PATH="$PATH" LD_PRELOAD="$hook" WEIR="record:$work/t.weir" ./program one >out 2>err
same $? preloaded
[ ! -e t.weir ] || { echo "preloaded: there is a trace"; bad=1; }
"$weir" record --sim -q -o r.weir -- sh -c './program one; exit $?' >out 2>err
same $? "below a shell"
"$weir" record --sim -o r.weir -- ./program one >out 2>err
code=$?
grep -q 'program is linked to musl: the injected library needs glibc, so' err || { echo "weir record does not say why:"; cat err; bad=1; }
same $code "weir record"
[ $bad = 0 ] && rm -rf "$work"
exit $bad
