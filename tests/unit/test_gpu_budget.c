/* Models of kernels that have less memory together than all of them need, on the simulated driver:
 * who leaves, what comes back, and two threads that take it from each other. */
#include "unit.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/shared_library.h"
#include "engine/gpu_model.h"
#include "engines.h"

#define FOLDER "budget-models"
#define WEIGHT (1u << 20) /* bytes of each model, of which the first 4 say which model it is */
#define EACH   (2u << 20) /* what it has on the device */
#define MODELS 4

static struct gpu_model *model[MODELS];

static void put(const char *name, const void *data, size_t bytes, size_t length)
{
	FILE *f = fopen(name, "w");
	assert_int_equal(fwrite(data, 1, bytes, f), bytes);
	assert_int_equal(ftruncate(fileno(f), (off_t)length), 0);
	fclose(f);
}

#define OUT(name) "{\"name\":\"" name "\",\"datatype\":\"INT32\",\"shape\":[-1,1]}"

static int try_load(uint32_t i, uint64_t memory, struct gpu_model **ret)
{
	static const struct engine_config config = { .name = "m", .max_batch_size = 1 };
	char path[64], json[1000];
	snprintf(path, sizeof path, FOLDER "/%u.bin", i);
	put(path, &(uint32_t){ 0x01010101 * (i + 1) }, 4, WEIGHT);
	snprintf(json, sizeof json,
		"{\"image\":\"model.ptx\",\"inputs\":[{\"name\":\"X\",\"datatype\":\"INT32\","
		"\"shape\":[-1,1]}],\"outputs\":[" OUT("Y") "," OUT(
			"W") "],\"buffers\":[{\"name\":\"w\",\"bytes\":%u,\"file\":\"%u.bin\"}],"
			     "\"launches\":[{\"copy\":{\"from\":\"w\",\"to\":\"W\",\"bytes\":4}},"
			     "{\"copy\":{\"from\":\"X\",\"to\":\"Y\",\"bytes\":4}}]}",
		WEIGHT, i);
	put(FOLDER "/kernels.json", json, strlen(json), strlen(json));
	options.memory = memory;
	struct engine_model *m = NULL;
	const int e = load_config("kernels", FOLDER "/kernels.json", &config, &m);
	*ret = (struct gpu_model *)m;
	return e;
}

static void load_all(uint64_t memory)
{
	for (uint32_t i = 0; i < MODELS; i++)
		if (try_load(i, memory, &model[i]))
			fail_msg("%s", err.text);
}

static void unload_all(void)
{
	for (uint32_t i = 0; i < MODELS; i++)
		engine_unload(&model[i]->base);
}

/* Whether its answer is right; -1: it failed.  For any thread. */
static int ask(struct gpu_model *m, uint32_t i, int32_t x, struct engine_run *r)
{
	struct error why;
	const struct engine_piece p = { &x, 4, 1, false };
	*r = (struct engine_run){ .out = { { .wanted = true }, { .wanted = true } } };
	r->in[0] = (struct engine_input){ true, DTYPE_INT32, { 2, { 1, 1 } }, &p, 1 };
	if (engine_run(&m->base, r, &why))
		return -1;
	int32_t y, w;
	memcpy(&y, r->out[0].data, 4);
	memcpy(&w, r->out[1].data, 4);
	engine_run_end(&m->base, r);
	return y == x && (uint32_t)w == 0x01010101 * (i + 1);
}

static uint64_t there(void)
{
	uint64_t all = 0;
	for (uint32_t i = 0; i < MODELS; i++)
		all += engine_memory(&model[i]->base).there;
	return all;
}

static void models_of_twice_the_memory_answer_all(void **state)
{
	static struct engine_run r;
	const uint64_t budget = 2 * EACH;
	const unsigned before = engine_memory_moves();
	load_all(budget);
	assert_true(engine_memory_moves() > before);
	unsigned returns = 0;
	for (int32_t turn = 0; turn < 5; turn++)
		for (uint32_t i = 0; i < MODELS; i++) {
			const uint64_t away = engine_memory(&model[i]->base).away_ns;
			assert_int_equal(ask(model[i], i, 10 * turn + (int32_t)i, &r), 1);
			assert_int_equal(away > 0, r.returned_ns > 0);
			assert_true(there() <= budget);
			assert_int_equal(engine_memory(&model[i]->base).away_ns, 0);
			returns += r.returned_ns > 0;
			/* Graphs survive. */
			assert_int_equal(r.replayed, turn > 1);
		}
	/* Each has left when its turn comes again. */
	assert_true(returns >= 4 * MODELS);
	unload_all();
}

static int (*free_host)(void *at);
static unsigned freed;

static int count_free(void *at)
{
	freed++;
	return free_host(at);
}

/* A burst that once was large is not kept for ever, and a steady load allocates nothing anew. */
static void pinned_memory_that_nobody_uses_goes_back(void **state)
{
	enum { BURST = 10 };
	struct gpu_pinned *p[BURST];
	load_all(0);
	struct gpu *g = model[0]->gpu;
	for (int i = 0; i < 3; i++)
		engine_trim(); /* what loading left */
	free_host = g->cu.cuMemFreeHost;
	g->cu.cuMemFreeHost = count_free;
	for (int i = 0; i < BURST; i++)
		assert_int_equal(gpu_pinned_take(g, WEIGHT, &p[i], NULL), 0);
	engine_trim();
	for (int i = 0; i < BURST; i++)
		gpu_pinned_give(g, p[i]);
	void *const steady = p[BURST - 1]->data;
	for (int i = 0; i < 5; i++) {
		engine_trim();
		assert_int_equal(freed, i ? BURST - 1 : 0);
		assert_int_equal(gpu_pinned_take(g, WEIGHT, &p[0], NULL), 0);
		assert_ptr_equal(p[0]->data, steady);
		gpu_pinned_give(g, p[0]);
	}
	engine_trim();
	assert_int_equal(freed, BURST - 1);
	engine_trim();
	assert_int_equal(freed, BURST);
	g->cu.cuMemFreeHost = free_host;
	unload_all();
}

static void who_is_asked_rarely_leaves(void **state)
{
	static struct engine_run r;
	load_all(3 * EACH);
	unsigned returns[MODELS] = { 0 };
	for (int32_t turn = 0; turn < 40; turn++)
		for (uint32_t i = 0; i < MODELS; i++) {
			if (i > 1 && turn % 8)
				continue; /* two are asked often, and two rarely */
			assert_int_equal(ask(model[i], i, turn, &r), 1);
			returns[i] += turn > 8 && r.returned_ns > 0;
		}
	assert_int_equal(returns[0] + returns[1], 0);
	assert_true(returns[2] + returns[3] > 0);
	unload_all();
}

static void a_model_larger_than_the_budget_says_so(void **state)
{
	struct gpu_model *m = NULL;
	assert_true(try_load(0, WEIGHT / 2, &m) < 0);
	assert_non_null(strstr(err.text, "more than the budget of"));
	assert_null(m);
}

/* Another program took the memory: the driver refuses, and a model leaves for it. */
static void memory_that_the_driver_refuses_is_made_room_for(void **state)
{
	static struct engine_run r;
	load_all(0);
	int (*create)(uint64_t *, size_t, const struct cu_mem_allocation_prop *, uint64_t) =
		model[0]->gpu->cu.cuMemCreate;
	const struct cu_mem_allocation_prop on_device = { .type = 1, .location = { .type = 1 } };
	uint64_t taken[64];
	unsigned n = 0;
	for (size_t bytes = (size_t)32 << 30; bytes >= 2 << 20; bytes /= 2)
		while (n < 64 && !create(&taken[n], bytes, &on_device, 0))
			n++;
	const uint64_t all = there();
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(gpu_budget_make_room(model[0]->gpu, NULL, &err), 0);
	while (n < 64 && !create(&taken[n], 2 << 20, &on_device, 0))
		n++;
	for (int32_t turn = 0; turn < 3; turn++)
		for (uint32_t i = 0; i < MODELS; i++)
			assert_int_equal(ask(model[i], i, turn, &r), 1);
	assert_true(there() < all);
	while (n--)
		model[0]->gpu->cu.cuMemRelease(taken[n]);
	unload_all();
}

struct client {
	pthread_t thread;
	uint32_t first;
	int wrong;
};

static void *ask_two(void *data)
{
	struct client *c = data;
	struct engine_run *r = calloc(1, sizeof *r);
	for (int32_t turn = 0; turn < 60; turn++)
		for (uint32_t i = c->first; i < c->first + 2; i++)
			c->wrong += ask(model[i], i, turn, r) != 1;
	free(r);
	return NULL;
}

static void threads_take_memory_from_each_other(void **state)
{
	struct client c[2] = { { .first = 0 }, { .first = 2 } };
	load_all(3 * EACH);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&c[i].thread, NULL, ask_two, &c[i]), 0);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(c[i].thread, NULL);
	assert_int_equal(c[0].wrong + c[1].wrong, 0);
	unload_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(models_of_twice_the_memory_answer_all),
		cmocka_unit_test(pinned_memory_that_nobody_uses_goes_back),
		cmocka_unit_test(who_is_asked_rarely_leaves),
		cmocka_unit_test(a_model_larger_than_the_budget_says_so),
		cmocka_unit_test(memory_that_the_driver_refuses_is_made_room_for),
		cmocka_unit_test(threads_take_memory_from_each_other),
	};
	static const char image[] = ".version 7.0\n.target sm_50\n.address_size 64\n";
	mkdir(FOLDER, 0700);
	put(FOLDER "/model.ptx", image, sizeof image - 1, sizeof image - 1);
	if (!find_simulated_driver(SIMULATED_DRIVER))
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
