/* A program that never hears of CUDA: nothing may change, and no file may appear. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *thread_main(void *x)
{
	return x;
}

/* Descriptors beyond the standard three. */
static int descriptors(void)
{
	int count = 0;

	for (int fd = 3; fd < 64; fd++)
		count += lseek(fd, 0, SEEK_CUR) >= 0;
	return count;
}

int main(void)
{
	pthread_t thread;
	pid_t child;

	printf("default cuInit: %s\n", dlsym(RTLD_DEFAULT, "cuInit") ? "found" : "absent");
	printf("default cuLaunchKernel: %s\n",
		dlsym(RTLD_DEFAULT, "cuLaunchKernel") ? "found" : "absent");
	printf("default cudaMalloc: %s\n", dlsym(RTLD_DEFAULT, "cudaMalloc") ? "found" : "absent");
	printf("dlsym for nothing: %p %s\n", dlsym(RTLD_DEFAULT, "no_such_symbol"),
		dlerror() ? "with a reason" : "without a reason");
	printf("descriptors: %d\n", descriptors());
	pthread_create(&thread, NULL, thread_main, NULL);
	pthread_join(thread, NULL);
	fflush(stdout);
	child = fork();
	if (child == 0)
		_exit(0);
	waitpid(child, NULL, 0);
	printf("main %d\n", getenv("HOME") != NULL);
	return 17;
}
