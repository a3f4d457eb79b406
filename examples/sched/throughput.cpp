/*
 * A program that is there for throughput: it steps back behind latency programs, and says how long
 * its launches waited for them.  Handles, streams and requests are objects.
 *
 *	c++ throughput.cpp -o throughput $(pkg-config --cflags --libs weirapi) -ldl
 *	weir run -- ./throughput
 */
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <stdexcept>
#include <weir/sched.h>

namespace {

void check(int status)
{
	if (status)
		throw std::runtime_error(weir_sched_strerror(status));
}

class Scheduler {
public:
	Scheduler() { check(weir_sched_open(nullptr, &handle)); }
	~Scheduler() { weir_sched_close(handle); }
	Scheduler(const Scheduler &) = delete;
	Scheduler &operator=(const Scheduler &) = delete;

	void for_throughput() const
	{
		weir_sched_config config{};
		config.size = sizeof config;
		config.set = WEIR_SET_THROUGHPUT;
		config.throughput = 1;
		check(weir_sched_configure(handle, &config));
	}

	void print_metrics() const
	{
		weir_sched_metrics m{};
		m.size = sizeof m;
		check(weir_sched_get_metrics(handle, 0, &m));
		std::printf("class %s, %llu launches waited\n",
			m.sched_class == WEIR_CLASS_BEST_EFFORT ? "best-effort" : "latency",
			static_cast<unsigned long long>(m.queue_wait_count));
	}

	weir_sched handle = 0;
};

class Stream {
public:
	Stream(const Scheduler &s, weir_class c) : scheduler(s)
	{
		check(weir_sched_stream_get(s.handle, c, &stream));
	}
	~Stream() { weir_sched_stream_return(scheduler.handle, stream); }
	Stream(const Stream &) = delete;
	Stream &operator=(const Stream &) = delete;

	const Scheduler &scheduler;
	void *stream = nullptr;
};

template <typename F> F find(void *library, const char *name)
{
	void *function = library ? dlsym(library, name) : nullptr;
	if (!function)
		throw std::runtime_error("there is no CUDA driver");
	return reinterpret_cast<F>(function);
}

/* If a setting can't be had, the program says so and goes on. */
template <typename F> void asked(F f)
{
	try {
		f();
	} catch (const std::exception &e) {
		std::fprintf(stderr, "throughput: %s\n", e.what());
	}
}

void work()
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *context;
	unsigned long long memory;
	if (find<int (*)(unsigned)>(library, "cuInit")(0) ||
		find<int (*)(void **, int)>(library, "cuDevicePrimaryCtxRetain")(&context, 0) ||
		find<int (*)(void *)>(library, "cuCtxSetCurrent")(context) ||
		find<int (*)(unsigned long long *, size_t)>(library, "cuMemAlloc_v2")(
			&memory, 1 << 20))
		throw std::runtime_error("CUDA can't be started");
	const Scheduler scheduler;
	asked([&] { scheduler.for_throughput(); });
	const Stream stream(scheduler, WEIR_CLASS_BEST_EFFORT);
	const auto set = find<int (*)(unsigned long long, unsigned char, size_t, void *)>(
		library, "cuMemsetD8Async");
	for (int i = 0; i < 100; i++)
		if (set(memory, 1, 1 << 20, stream.stream))
			throw std::runtime_error("cuMemsetD8Async failed");
	find<int (*)(void *)>(library, "cuStreamSynchronize")(stream.stream);
	asked([&] { scheduler.print_metrics(); });
}

} // namespace

int main()
{
	try {
		work();
	} catch (const std::exception &e) {
		std::fprintf(stderr, "throughput: %s\n", e.what());
		return 1;
	}
}
