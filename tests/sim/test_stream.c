/* Streams, events, host functions, virtual and real time, captures and graphs. */
#include "sim_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

static void *new_stream(unsigned flags)
{
	void *stream;

	test_context();
	OK(cuStreamCreate(&stream, flags));
	return stream;
}

static void *new_event(void)
{
	void *event;

	test_context();
	OK(cuEventCreate(&event, 0));
	return event;
}

static float elapsed_ms(void *start, void *end)
{
	float ms;

	OK(cuEventElapsedTime_v2(&ms, start, end));
	return ms;
}

static void events_measure_the_latency_law(void **state)
{
	void *f = test_function("empty"), *s = new_stream(1), *a = new_event(), *b = new_event();

	OK(cuEventRecord(a, s));
	OK(test_launch(f, 1, 32, s));
	OK(cuEventRecord(b, s));
	OK(cuStreamSynchronize(s));
	assert_float_equal(elapsed_ms(a, b), 0.005, 1e-6); /* 2 us launch, one wave of 3 us */
	OK(cuEventRecord(a, s));
	OK(test_launch(f, 132 * 32 * 2, 32, s)); /* two waves of 32 warps an SM */
	OK(cuEventRecord(b, s));
	assert_float_equal(elapsed_ms(a, b), 0.014, 1e-6);
	OK(cuStreamDestroy_v2(s));
}

static void streams_run_beside_each_other_in_virtual_time(void **state)
{
	void *f = test_function("empty"), *s = new_stream(1), *t = new_stream(1);
	void *a = new_event(), *b = new_event();

	OK(cuCtxSynchronize());
	OK(cuEventRecord(a, s));
	OK(test_launch(f, 1, 32, s));
	OK(test_launch(f, 1, 32, t));
	OK(cuEventRecord(b, t));
	assert_float_equal(elapsed_ms(a, b), 0.005, 1e-6);
	OK(cuStreamWaitEvent(s, b, 0));
	OK(test_launch(f, 1, 32, s));
	OK(cuEventRecord(b, s));
	assert_float_equal(elapsed_ms(a, b), 0.010, 1e-6);
	OK(cuStreamDestroy_v2(s));
	OK(cuStreamDestroy_v2(t));
}

static void an_event_of_the_context_is_behind_all_its_streams(void **state)
{
	void *f = test_function("empty"), *s = new_stream(1), *t = new_stream(1);
	void *a = new_event(), *b = new_event(), *graph;

	OK(cuCtxSynchronize());
	OK(cuEventRecord(a, s));
	OK(test_launch(f, 1, 32, s));
	OK(test_launch(f, 132 * 32 * 2, 32, t));
	OK(cuCtxRecordEvent(NULL, b));
	assert_float_equal(elapsed_ms(a, b), 0.014, 1e-6);
	OK(cuStreamBeginCapture_v2(s, 2));
	FAILS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuCtxRecordEvent(NULL, b));
	FAILS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &graph));
	OK(cuStreamDestroy_v2(s));
	OK(cuStreamDestroy_v2(t));
}

static void the_legacy_stream_waits_for_blocking_streams(void **state)
{
	void *f = test_function("empty"), *s = new_stream(0), *a = new_event(), *b = new_event();

	OK(cuCtxSynchronize());
	OK(cuEventRecord(a, s));
	OK(test_launch(f, 1, 32, s));
	OK(test_launch(f, 1, 32, NULL));
	OK(test_launch(f, 1, 32, s));
	OK(cuEventRecord(b, s));
	assert_float_equal(elapsed_ms(a, b), 0.015, 1e-6);
	OK(cuStreamDestroy_v2(s));
}

static void events_without_timing_do_not_tell_time(void **state)
{
	void *e, *f = new_event(), *never = new_event();
	float ms;

	OK(cuEventCreate(&e, 2));
	OK(cuEventRecord(e, NULL));
	OK(cuEventRecord(f, NULL));
	FAILS(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime_v2(&ms, e, f));
	FAILS(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime_v2(&ms, f, never));
	OK(cuEventQuery(never));
	OK(cuEventSynchronize(never));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuEventCreate(&e, 4));
}

static void streams_tell_their_properties(void **state)
{
	void *s, *ctx;
	int least, greatest, priority;
	unsigned flags;
	unsigned long long id, other;

	void *expected = test_context();
	OK(cuCtxGetStreamPriorityRange(&least, &greatest));
	OK(cuStreamCreateWithPriority(&s, 1, greatest - 10));
	OK(cuStreamGetPriority(s, &priority));
	assert_int_equal(priority, greatest);
	OK(cuStreamGetFlags(s, &flags));
	assert_int_equal(flags, 1);
	OK(cuStreamGetCtx(s, &ctx));
	assert_ptr_equal(ctx, expected);
	OK(cuStreamGetId(s, &id));
	OK(cuStreamGetId_ptsz(NULL, &other));
	assert_true(id != other);
	OK(cuStreamQuery(s));
	OK(cuStreamDestroy_v2(s));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuStreamCreate(&s, 8));
}

static atomic_int order;

static void expect_first(void *arg)
{
	*(int *)arg = atomic_fetch_add(&order, 1);
	if (cuCtxSynchronize() != CUDA_ERROR_NOT_PERMITTED)
		*(int *)arg = 100;
}

static void legacy_callback(void *stream, int status, void *arg)
{
	*(int *)arg = status ? 100 : atomic_fetch_add(&order, 1);
}

static void host_functions_run_in_stream_order_on_another_thread(void **state)
{
	void *s = new_stream(1);
	int first = -1, second = -1;

	atomic_store(&order, 0);
	OK(cuLaunchHostFunc(s, (void *)expect_first, &first));
	OK(cuStreamAddCallback(s, (void *)legacy_callback, &second, 0));
	OK(cuStreamSynchronize(s));
	assert_int_equal(first, 0);
	assert_int_equal(second, 1);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuLaunchHostFunc(s, NULL, NULL));
	OK(cuStreamDestroy_v2(s));
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void write_late(void *arg)
{
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	strcpy(arg, "late");
}

static void a_copy_waits_for_the_host_function_before_it(void **state)
{
	void *s = new_stream(1), *e = new_event(), *pinned;
	unsigned long long device;
	char back[16];

	OK(cuMemHostAlloc(&pinned, 16, 0));
	OK(cuMemAlloc_v2(&device, 16));
	strcpy(pinned, "early");
	pthread_mutex_lock(&gate);
	OK(cuLaunchHostFunc(s, (void *)write_late, pinned));
	OK(cuMemcpyHtoDAsync_v2(device, pinned, 16, s));
	OK(cuEventRecord(e, s));
	FAILS(CUDA_ERROR_NOT_READY, cuEventQuery(e));
	FAILS(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
	pthread_mutex_unlock(&gate);
	OK(cuEventSynchronize(e));
	OK(cuMemcpyDtoH_v2(back, device, 16));
	assert_string_equal(back, "late");
	OK(cuMemFreeHost(pinned));
	OK(cuMemFree_v2(device));
	OK(cuStreamDestroy_v2(s));
}

static uint64_t real_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void real_launches(void)
{
	void *ctx, *module, *f, *a, *b;
	float ms;

	CHILD_EXPECT(!cuInit(0) && !cuDevicePrimaryCtxRetain(&ctx, 0) && !cuCtxSetCurrent(ctx));
	CHILD_EXPECT(!cuModuleLoadData(&module, (void *)test_ptx));
	CHILD_EXPECT(!cuModuleGetFunction(&f, module, "empty"));
	CHILD_EXPECT(!cuEventCreate(&a, 0) && !cuEventCreate(&b, 0));
	uint64_t start = real_ns();
	CHILD_EXPECT(!cuEventRecord(a, NULL));
	for (int i = 0; i < 5; i++)
		CHILD_EXPECT(!test_launch(f, 1, 32, NULL));
	CHILD_EXPECT(!cuEventRecord(b, NULL));
	CHILD_EXPECT(cuEventQuery(b) == CUDA_ERROR_NOT_READY);
	CHILD_EXPECT(!cuEventSynchronize(b));
	CHILD_EXPECT(real_ns() - start >= 50000000);
	CHILD_EXPECT(!cuEventElapsedTime_v2(&ms, a, b));
	CHILD_EXPECT(ms > 49.9 && ms < 500);
}

static void in_real_time_a_sync_really_waits(void **state)
{
	SCRIPTED("time=real,launch=0,wave=10ms", real_launches);
}

static void full_queue(void)
{
	void *ctx, *module, *f;

	CHILD_EXPECT(!cuInit(0) && !cuDevicePrimaryCtxRetain(&ctx, 0) && !cuCtxSetCurrent(ctx));
	CHILD_EXPECT(!cuModuleLoadData(&module, (void *)test_ptx));
	CHILD_EXPECT(!cuModuleGetFunction(&f, module, "empty"));
	uint64_t start = real_ns();
	for (int i = 0; i < 8; i++)
		CHILD_EXPECT(!test_launch(f, 1, 32, NULL));
	CHILD_EXPECT(real_ns() - start >= 20000000);
	CHILD_EXPECT(!cuCtxSynchronize());
}

static void a_full_queue_makes_the_host_wait(void **state)
{
	SCRIPTED("time=real,launch=0,wave=5ms,queue=4", full_queue);
}

/* Captures. */

static void *captured(void *f, void *s, void *t)
{
	void *e = new_event(), *back = new_event(), *graph;

	OK(cuStreamBeginCapture_v2(s, 0));
	OK(test_launch(f, 1, 32, s));
	OK(cuEventRecord(e, s));
	OK(cuStreamWaitEvent(t, e, 0));
	OK(test_launch(f, 1, 32, t));
	OK(test_launch(f, 1, 32, s));
	OK(cuEventRecord(back, t));
	OK(cuStreamWaitEvent(s, back, 0));
	OK(test_launch(f, 1, 32, s));
	OK(cuStreamEndCapture(s, &graph));
	return graph;
}

static void a_capture_forks_and_joins_through_events(void **state)
{
	void *f = test_function("empty"), *s = new_stream(1), *t = new_stream(1);
	void *graph = captured(f, s, t), *exec, *a = new_event(), *b = new_event();
	size_t nodes = 0, edges = 0, roots = 0;
	int status;

	OK(cuGraphGetNodes(graph, NULL, &nodes));
	OK(cuGraphGetEdges(graph, NULL, NULL, &edges));
	OK(cuGraphGetRootNodes(graph, NULL, &roots));
	assert_int_equal(nodes, 4);
	assert_int_equal(edges, 4);
	assert_int_equal(roots, 1);
	OK(cuStreamIsCapturing(t, &status));
	assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuEventRecord(a, s));
	OK(cuGraphLaunch(exec, s));
	OK(cuEventRecord(b, s));
	assert_float_equal(elapsed_ms(a, b), 0.015, 1e-6); /* the branches are beside each other */
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(graph));
	OK(cuStreamDestroy_v2(s));
	OK(cuStreamDestroy_v2(t));
}

static void a_capture_keeps_every_kind_of_operation(void **state)
{
	void *f = test_function("add"), *s = new_stream(1), *graph, *nodes[8], *exec;
	unsigned long long device;
	char host[16] = "captured", back[16] = "";
	unsigned n = 3;
	int kind, ran = -1;
	size_t count = 8;
	struct cu_kernel_node_params p;

	OK(cuMemAlloc_v2(&device, 16));
	void *params[] = { &device, &device, &n };
	OK(cuStreamBeginCapture_v2(s, 1));
	OK(cuMemcpyHtoDAsync_v2(device, host, 16, s));
	OK(cuLaunchKernel(f, 2, 1, 1, 64, 1, 1, 0, s, params, NULL));
	OK(cuMemsetD8Async(device, 'C', 1, s));
	OK(cuLaunchHostFunc(s, (void *)expect_first, &ran));
	OK(cuMemcpyDtoHAsync_v2(back, device, 16, s));
	OK(cuStreamEndCapture(s, &graph));
	n = 99;
	OK(cuGraphGetNodes(graph, nodes, &count));
	assert_int_equal(count, 5);
	const int kinds[] = { 1, 0, 2, 3, 1 };
	for (int i = 0; i < 5; i++) {
		OK(cuGraphNodeGetType(nodes[i], &kind));
		assert_int_equal(kind, kinds[i]);
	}
	OK(cuGraphKernelNodeGetParams_v2(nodes[1], &p));
	assert_int_equal(p.block_x, 64);
	assert_int_equal(*(unsigned *)p.params[2], 3); /* as it was at the capture */
	assert_string_equal(back, "");
	OK(cuGraphInstantiate_v2(&exec, graph, NULL, NULL, 0));
	atomic_store(&order, 0);
	OK(cuGraphLaunch(exec, s));
	OK(cuStreamSynchronize(s));
	assert_string_equal(back, "Captured");
	assert_int_equal(ran, 0);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuMemFree_v2(device));
	OK(cuStreamDestroy_v2(s));
}

static void a_call_that_cannot_be_captured_spoils_the_capture(void **state)
{
	void *s = new_stream(1), *graph = &graph;
	unsigned long long address;
	int status;

	OK(cuStreamBeginCapture_v2(s, 0));
	FAILS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc_v2(&address, 16));
	OK(cuStreamIsCapturing(s, &status));
	assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
	FAILS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &graph));
	assert_null(graph);
	OK(cuStreamBeginCapture_v2(s, 2));
	OK(cuMemAlloc_v2(&address, 16)); /* relaxed: nothing is forbidden */
	OK(cuMemFree_v2(address));
	FAILS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(s));
	FAILS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &graph));
	FAILS(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(s, &graph));
	OK(cuStreamDestroy_v2(s));
}

static void the_legacy_stream_is_not_captured(void **state)
{
	void *f = test_function("empty"), *s = new_stream(0), *graph;

	FAILS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture_v2(NULL, 0));
	OK(cuStreamBeginCapture_v2(s, 0));
	FAILS(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, test_launch(f, 1, 1, NULL));
	FAILS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &graph));
	OK(cuStreamDestroy_v2(s));
}

static void a_fork_that_is_not_joined_is_an_error(void **state)
{
	void *f = test_function("empty"), *s = new_stream(1), *t = new_stream(1);
	void *e = new_event(), *graph;

	OK(cuStreamBeginCapture_v2(s, 0));
	OK(test_launch(f, 1, 1, s));
	OK(cuEventRecord(e, s));
	FAILS(CUDA_ERROR_CAPTURED_EVENT, cuEventQuery(e));
	OK(cuStreamWaitEvent(t, e, 0));
	OK(test_launch(f, 1, 1, t));
	FAILS(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, cuStreamEndCapture(t, &graph));
	FAILS(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(s, &graph));
	assert_null(graph);
	OK(cuStreamDestroy_v2(s));
	OK(cuStreamDestroy_v2(t));
}

static void an_outside_event_does_not_enter_a_capture(void **state)
{
	void *s = new_stream(1), *e = new_event(), *graph;

	OK(cuEventRecord(e, NULL));
	OK(cuStreamBeginCapture_v2(s, 0));
	FAILS(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, cuStreamWaitEvent(s, e, 0));
	FAILS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &graph));
	OK(cuStreamDestroy_v2(s));
}

static void capture_info_tells_the_heads(void **state)
{
	void *f = test_function("empty"), *s = new_stream(1), *graph, *live, **deps;
	unsigned long long id;
	int status, kind;
	size_t count;

	OK(cuStreamBeginCapture_v2(s, 0));
	OK(test_launch(f, 1, 1, s));
	OK(cuStreamGetCaptureInfo_v2(s, &status, &id, &live, &deps, &count));
	assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
	assert_int_equal(count, 1);
	OK(cuGraphNodeGetType(deps[0], &kind));
	OK(cuStreamEndCapture(s, &graph));
	assert_ptr_equal(graph, live);
	OK(cuGraphDestroy(graph));
	OK(cuStreamDestroy_v2(s));
}

/* Graphs made by hand. */

static void *kernel_node(void *graph, void *f, void **deps, size_t count)
{
	struct cu_kernel_node_params p = { .func = f,
		.grid_x = 1,
		.grid_y = 1,
		.grid_z = 1,
		.block_x = 32,
		.block_y = 1,
		.block_z = 1 };
	void *node;

	OK(cuGraphAddKernelNode_v2(&node, graph, deps, count, &p));
	return node;
}

static void clones_and_children_are_copies(void **state)
{
	void *f = test_function("empty"), *graph, *clone, *parent, *child, *node, *inner, *copy;
	size_t count = 0;

	OK(cuGraphCreate(&graph, 0));
	node = kernel_node(graph, f, NULL, 0);
	kernel_node(graph, f, &node, 1);
	OK(cuGraphClone(&clone, graph));
	OK(cuGraphNodeFindInClone(&copy, node, clone));
	assert_ptr_not_equal(copy, node);
	OK(cuGraphCreate(&parent, 0));
	OK(cuGraphAddChildGraphNode(&child, parent, NULL, 0, graph));
	OK(cuGraphDestroy(graph));
	OK(cuGraphChildGraphNodeGetGraph(child, &inner));
	OK(cuGraphGetNodes(inner, NULL, &count));
	assert_int_equal(count, 2);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(inner));
	OK(cuGraphDestroy(parent));
	OK(cuGraphDestroy(clone));
}

static void an_executable_graph_is_updated_where_the_shape_is_the_same(void **state)
{
	void *f = test_function("empty"), *graph, *other, *exec, *a, *s = new_stream(1);
	struct cu_graph_update_info info;
	struct cu_kernel_node_params p = { .func = f,
		.grid_x = 7,
		.grid_y = 1,
		.grid_z = 1,
		.block_x = 64,
		.block_y = 1,
		.block_z = 1 };

	OK(cuGraphCreate(&graph, 0));
	a = kernel_node(graph, f, NULL, 0);
	kernel_node(graph, f, &a, 1);
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphExecKernelNodeSetParams_v2(exec, a, &p));
	OK(cuGraphClone(&other, graph));
	OK(cuGraphExecUpdate_v2(exec, other, &info));
	assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
	kernel_node(other, f, NULL, 0);
	FAILS(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate_v2(exec, other, &info));
	assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
	OK(cuGraphNodeSetEnabled(exec, a, 0));
	OK(cuGraphLaunch(exec, s));
	OK(cuGraphExecDestroy(exec));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(exec, s));
	OK(cuGraphDestroy(graph));
	OK(cuGraphDestroy(other));
	OK(cuStreamDestroy_v2(s));
}

static void a_circle_is_not_instantiated(void **state)
{
	void *f = test_function("empty"), *graph, *exec, *a, *b;

	OK(cuGraphCreate(&graph, 0));
	a = kernel_node(graph, f, NULL, 0);
	b = kernel_node(graph, f, &a, 1);
	OK(cuGraphAddDependencies(graph, &b, &a, 1));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphRemoveDependencies(graph, &b, &a, 1));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphDestroyNode(a));
	OK(cuGraphDestroy(graph));
	OK(cuGraphExecDestroy(exec));
}

static void a_graph_whose_memory_or_kernel_is_gone_is_not_run(void **state)
{
	void *s = new_stream(1), *e = new_event(), *module, *f, *graph, *exec, *node;
	unsigned long long device;

	OK(cuMemAlloc_v2(&device, 64));
	OK(cuStreamBeginCapture_v2(s, 0));
	OK(cuMemsetD8Async(device, 0, 64, s));
	OK(cuStreamEndCapture(s, &graph));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuMemFree_v2(device));
	FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, cuGraphLaunch(exec, s));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuModuleLoadData(&module, (void *)test_ptx));
	OK(cuModuleGetFunction(&f, module, "empty"));
	OK(cuGraphCreate(&graph, 0));
	kernel_node(graph, f, NULL, 0);
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuModuleUnload(module));
	FAILS(CUDA_ERROR_INVALID_HANDLE, cuGraphLaunch(exec, s));
	OK(cuGraphAddEventRecordNode(&node, graph, NULL, 0, e));
	OK(cuEventDestroy_v2(e));
	OK(cuGraphDestroy(graph));
	OK(cuGraphExecDestroy(exec));
	OK(cuStreamDestroy_v2(s));
}

static void a_graph_in_a_capture_cannot_be_destroyed(void **state)
{
	void *f = test_function("empty"), *s = new_stream(1), *graph, *live, **deps;
	size_t count;
	int status;

	OK(cuStreamBeginCapture_v2(s, 0));
	OK(test_launch(f, 1, 1, s));
	OK(cuStreamGetCaptureInfo_v2(s, &status, NULL, &live, &deps, &count));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphDestroyNode(deps[0]));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(live));
	OK(cuStreamEndCapture(s, &graph));
	OK(cuGraphDestroy(graph));
	OK(cuStreamDestroy_v2(s));
}

static void count_up(void *arg)
{
	atomic_fetch_add((atomic_int *)arg, 1);
}

static void user_objects_end_with_their_graph(void **state)
{
	static atomic_int ended;
	void *graph, *user, *s = new_stream(1);

	OK(cuUserObjectCreate(&user, &ended, (void *)count_up, 1, 1));
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphRetainUserObject(graph, user, 1, 1));
	OK(cuGraphDestroy(graph));
	OK(cuLaunchHostFunc(s, (void *)count_up, &order));
	OK(cuStreamSynchronize(s)); /* host functions run in order: the destructor was before */
	assert_int_equal(atomic_load(&ended), 1);
	OK(cuStreamDestroy_v2(s));
}

static void a_graph_is_drawn_with_its_kernels_names(void **state)
{
	void *f = test_function("empty"), *graph;
	char path[] = "/tmp/weir-sim-dot-XXXXXX", line[256] = "";
	bool named = false;
	int fd = mkstemp(path);

	close(fd);
	OK(cuGraphCreate(&graph, 0));
	kernel_node(graph, f, NULL, 0);
	OK(cuGraphDebugDotPrint(graph, path, 0));
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof line, file))
		named |= strstr(line, "KERNEL empty") != NULL;
	fclose(file);
	unlink(path);
	assert_true(named);
	OK(cuGraphDestroy(graph));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_real_time_a_sync_really_waits),
		cmocka_unit_test(a_full_queue_makes_the_host_wait),
		cmocka_unit_test(events_measure_the_latency_law),
		cmocka_unit_test(streams_run_beside_each_other_in_virtual_time),
		cmocka_unit_test(an_event_of_the_context_is_behind_all_its_streams),
		cmocka_unit_test(the_legacy_stream_waits_for_blocking_streams),
		cmocka_unit_test(events_without_timing_do_not_tell_time),
		cmocka_unit_test(streams_tell_their_properties),
		cmocka_unit_test(host_functions_run_in_stream_order_on_another_thread),
		cmocka_unit_test(a_copy_waits_for_the_host_function_before_it),
		cmocka_unit_test(a_capture_forks_and_joins_through_events),
		cmocka_unit_test(a_capture_keeps_every_kind_of_operation),
		cmocka_unit_test(a_call_that_cannot_be_captured_spoils_the_capture),
		cmocka_unit_test(the_legacy_stream_is_not_captured),
		cmocka_unit_test(a_fork_that_is_not_joined_is_an_error),
		cmocka_unit_test(an_outside_event_does_not_enter_a_capture),
		cmocka_unit_test(capture_info_tells_the_heads),
		cmocka_unit_test(clones_and_children_are_copies),
		cmocka_unit_test(an_executable_graph_is_updated_where_the_shape_is_the_same),
		cmocka_unit_test(a_circle_is_not_instantiated),
		cmocka_unit_test(a_graph_whose_memory_or_kernel_is_gone_is_not_run),
		cmocka_unit_test(a_graph_in_a_capture_cannot_be_destroyed),
		cmocka_unit_test(user_objects_end_with_their_graph),
		cmocka_unit_test(a_graph_is_drawn_with_its_kernels_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
