/*
 * Ranges of NVTX that are requests: `weir run --request range:answer -- said_by_ranges DIRECTORY`
 * looks at its own slot of the shared file there, and prints what is not as it should be.
 */
#include <pthread.h>

#include "../../hostile/programs/nvtx.h"
#include "own_slot.h"

static void pushed_and_popped(void)
{
	const uint64_t before = counted();
	NVTX(push, "answer");
	EXPECT(is_inside());
	work();
	EXPECT(is_inside());
	NVTX(push, "part of it");
	NVTX(pop);
	EXPECT(is_inside());
	NVTX(pop);
	EXPECT(!is_inside());
	EXPECT(counted() == before + 1);
	NVTX(pop); /* one too many */
	EXPECT(!is_inside());
}

static void others_are_none(void)
{
	const uint64_t before = counted();
	NVTX(push, "answers");
	cu_launch(1);
	EXPECT(!is_inside());
	cuCtxSynchronize();
	NVTX(pop);
	EXPECT(counted() == before);
}

static void of_all_kinds(void)
{
	void *domain = nvtx_domain ? nvtx_domain("service") : NULL;
	void *name = nvtx_register ? nvtx_register(domain, "answer") : NULL;
	NVTX(push_wide, L"answer");
	EXPECT(is_inside());
	NVTX(pop);
	NVTX(push_event, NVTX_EVENT(.message_type = 1, .message = "answer"));
	EXPECT(is_inside());
	NVTX(pop);
	EXPECT(!is_inside());
	NVTX(domain_push, domain, NVTX_EVENT(.message_type = 3, .message = name));
	EXPECT(is_inside());
	NVTX(push, "of another domain");
	NVTX(pop);
	EXPECT(is_inside());
	NVTX(domain_pop, domain);
	EXPECT(!is_inside());
	NVTX(push_event, NVTX_EVENT(.message_type = 3, .message = "no handle"));
	EXPECT(!is_inside());
	NVTX(pop);
}

static void a_pop_is_left_out(void)
{
	const uint64_t before = counted();
	NVTX(push, "answer");
	NVTX(push, "answer");
	EXPECT(is_inside());
	NVTX(pop);
	EXPECT(!is_inside());
	EXPECT(counted() == before + 2);
	NVTX(pop);
}

static void *end_range(void *id)
{
	NVTX_VOID(end, *(uint64_t *)id);
	return NULL;
}

static void started_and_ended_elsewhere(void)
{
	pthread_t t;
	uint64_t one = nvtx_start("answer"), two = nvtx_start("answer"), other = nvtx_start("else");
	EXPECT(one != two && is_inside());
	NVTX_VOID(end, other);
	NVTX_VOID(end, one);
	EXPECT(is_inside());
	cu_need(pthread_create(&t, NULL, end_range, &two), "pthread_create");
	pthread_join(t, NULL);
	EXPECT(!is_inside());
	NVTX_VOID(end, two);
	NVTX_VOID(end, UINT64_MAX);
	EXPECT(!is_inside());
}

int main(int count, char **arguments)
{
	cu_start();
	nvtx_load();
	cu_need(!nvtx_start, "NVTX");
	work(); /* joins */
	find_slot(count > 1 ? arguments[1] : "");
	EXPECT(!counted());
	pushed_and_popped();
	others_are_none();
	of_all_kinds();
	a_pop_is_left_out();
	started_and_ended_elsewhere();
	return result();
}
