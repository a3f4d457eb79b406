/* A child is forked while another thread looks through what CUPTI has handed back; the child calls
 * CUPTI as its parent did. */
#include "cu.h"

#include <pthread.h>
#include <sys/wait.h>

enum { KERNEL = 10 };

static void (*held_return)(void), (*held_wait)(void), (*held_go)(void);
static int (*register_callbacks)(void *request, void *complete);
static int (*enable)(int kind), (*disable)(int kind), (*flush_all)(uint32_t forced);

static void *hand_back(void *unused)
{
	held_return();
	return NULL;
}

static void request(uint8_t **buffer, size_t *bytes, size_t *records)
{
	*buffer = malloc(4096);
	*bytes = 4096;
	*records = 0;
}

static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
	free(buffer);
}

static void look_up(void)
{
	void *library = dlopen("libcupti.so.13", RTLD_NOW);
	cu_need(!library, "libcupti.so.13");
	*(void **)&held_return = dlsym(library, "held_return");
	*(void **)&held_wait = dlsym(library, "held_wait");
	*(void **)&held_go = dlsym(library, "held_go");
	*(void **)&register_callbacks = dlsym(library, "cuptiActivityRegisterCallbacks");
	*(void **)&enable = dlsym(library, "cuptiActivityEnable");
	*(void **)&disable = dlsym(library, "cuptiActivityDisable");
	*(void **)&flush_all = dlsym(library, "cuptiActivityFlushAll");
}

static void profile(void)
{
	cu_need(register_callbacks((void *)request, (void *)complete), "callbacks");
	cu_need(enable(KERNEL), "enable");
	cu_launch(10);
	cu_need(flush_all(0), "flush");
	cu_need(disable(KERNEL), "disable");
	cu_need(flush_all(0), "flush");
}

int main(void)
{
	pthread_t thread;
	int status = -1;
	look_up();
	cu_start();
	profile();
	pthread_create(&thread, NULL, hand_back, NULL);
	held_wait();
	const pid_t child = fork();
	if (!child) {
		profile();
		_exit(3);
	}
	waitpid(child, &status, 0);
	printf("child: %x\n", (unsigned)status);
	held_go();
	pthread_join(thread, NULL);
	counts("cuLaunchKernel", 20);
	return 0;
}
