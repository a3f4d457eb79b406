/* Starts a program whose shared mappings of files fail with ENODEV, as on file systems that have
 * none: `no_shared_mmap PROGRAM [ARGUMENT...]`. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FIELD(x)          BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, x))
#define ARGUMENT(n)       FIELD(args[n])
#define SKIP_UNLESS(k, n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k, 0, n)
#define SKIP_IF(k, n)     BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k, n, 0)

int main(int argc, char **argv)
{
	struct sock_filter filter[] = {
		FIELD(nr),
		SKIP_UNLESS(SYS_mmap, 6),
		ARGUMENT(3),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, MAP_TYPE),
		SKIP_UNLESS(MAP_SHARED, 3),
		ARGUMENT(4),
		SKIP_IF(0xffffffffu, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENODEV),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof filter / sizeof filter[0], filter };

	if (argc < 2)
		return 2;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		perror("no_shared_mmap: seccomp");
		return 77;
	}
	execv(argv[1], argv + 1);
	return 127;
}
