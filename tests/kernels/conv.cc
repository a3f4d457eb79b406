/* The device sources of convolutions, run on the host by the emulator, against the definition.  Inputs are small integers,
 * so that sums are exact, and what lies around the result must stay as it is. */
#include "sm90.hh"

#include "conv.cu"
#include "conv_sm90.cu"

enum { GUARD = 64 }; /* elements before and behind */

static int draw(int below)
{
	return (int)emulate_random((unsigned)below);
}

template <typename T> struct tensor {
	std::vector<T> all;
	tensor(long n) : all((size_t)(n + 2 * GUARD))
	{
		for (T &e : all)
			e = T::make((float)(draw(5) - 2));
	}
	T *data(void)
	{
		return &all[GUARD];
	}
	float get(long i)
	{
		return T::get(data()[i]);
	}
};

enum pass { FORWARD, DGRAD, WGRAD };

struct geometry {
	int n, h, w, c, k, r, s, stride_y, stride_x, pad_y, pad_x, dilation_y, dilation_x, groups;
	int p(void) const
	{
		return (h + 2 * pad_y - dilation_y * (r - 1) - 1) / stride_y + 1;
	}
	int q(void) const
	{
		return (w + 2 * pad_x - dilation_x * (s - 1) - 1) / stride_x + 1;
	}
	long inputs(void) const
	{
		return (long)n * h * w * c;
	}
	long filters(void) const
	{
		return (long)k * r * s * (c / groups);
	}
	long outputs(void) const
	{
		return (long)n * p() * q() * k;
	}
};

/* Calls f(input, filter, output) for each product of the definition: element numbers. */
template <typename F> static void each_product(const geometry &g, F f)
{
	const int cg = g.c / g.groups, kg = g.k / g.groups;
	long out = 0;
	for (int n = 0; n < g.n; n++)
		for (int p = 0; p < g.p(); p++)
			for (int q = 0; q < g.q(); q++)
				for (int k = 0; k < g.k; k++, out++)
					for (int r = 0; r < g.r; r++)
						for (int s = 0; s < g.s; s++) {
							const int y = p * g.stride_y - g.pad_y + r * g.dilation_y;
							const int x = q * g.stride_x - g.pad_x + s * g.dilation_x;
							if (y < 0 || y >= g.h || x < 0 || x >= g.w)
								continue;
							for (int c = 0; c < cg; c++)
								f((((long)n * g.h + y) * g.w + x) * g.c + k / kg * cg + c,
									(((long)k * g.r + r) * g.s + s) * cg + c, out);
						}
}

static double apply(int epilogue, double x)
{
	if (epilogue == GEMM_BIAS_RELU)
		return fmax(x, 0);
	if (epilogue == GEMM_BIAS_GELU)
		return .5 * x * (1 + tanh(.7978845608 * (x + .044715 * x * x * x)));
	return epilogue == GEMM_BIAS_SILU ? x / (1 + exp(-x)) : x;
}

/* The tensors of a run, and how many elements of the result are wrong; guards count as one. */
template <typename T> struct tensors {
	const geometry &g;
	pass what;
	int epilogue, columns;
	tensor<T> input, filter, output, bias, residual;
	std::vector<T> before;
	tensors(const geometry &g_, pass what_, int epilogue_)
		: g(g_), what(what_), epilogue(epilogue_), columns(what == FORWARD ? g.k : g.c), input(g.inputs()),
		  filter(g.filters()), output(g.outputs()), bias(columns), residual(what == FORWARD ? g.outputs() : g.inputs()),
		  before(result().all)
	{
	}
	tensor<T> &result(void)
	{
		return what == FORWARD ? output : what == DGRAD ? input : filter;
	}
	int count_wrong(void)
	{
		std::vector<double> sum((size_t)(what == FORWARD ? g.outputs() : what == DGRAD ? g.inputs() : g.filters()));
		each_product(g, [&](long in, long of, long out) {
			if (what == FORWARD)
				sum[(size_t)out] += (double)input.get(in) * filter.get(of);
			else if (what == DGRAD)
				sum[(size_t)in] += (double)output.get(out) * filter.get(of);
			else
				sum[(size_t)of] += (double)output.get(out) * input.get(in);
		});
		const bool rough = epilogue == GEMM_BIAS_GELU || epilogue == GEMM_BIAS_SILU;
		int bad = 0;
		for (size_t i = 0; i < sum.size(); i++) {
			double want = sum[i];
			if (epilogue >= GEMM_BIAS && epilogue <= GEMM_BIAS_SILU)
				want = apply(epilogue, want + bias.get((long)i % columns));
			if (epilogue == GEMM_RESIDUAL)
				want += residual.get((long)i);
			if (!rough)
				want = T::get(T::make((float)want));
			const T got = result().data()[i];
			bad += !(fabs(T::get(got) - want) <= (rough ? 8e-3 * fabs(want) + 1e-3 : 0));
			before[GUARD + i] = got;
		}
		return bad + (memcmp(before.data(), result().all.data(), before.size() * sizeof(T)) != 0);
	}
	void complain(const char *kernel, int bad) const
	{
		if (bad)
			printf("%s, pass %d, epilogue %d, order %d: images %d x %d x %d x %d, filters %d x %d x %d, stride %d %d, "
			       "padding %d %d, dilation %d %d, groups %d: %d wrong\n",
				kernel, what, epilogue, emulate_order, g.n, g.h, g.w, g.c, g.k, g.r, g.s, g.stride_y, g.stride_x,
				g.pad_y, g.pad_x, g.dilation_y, g.dilation_x, g.groups, bad);
	}
};

static conv_axis axis(pass what, int in, int out, int taps, int stride, int pad, int dilation)
{
	if (what == DGRAD)
		return {1, pad - (taps - 1) * dilation, dilation, stride, taps, in, out};
	return {stride, -pad, dilation, 1, taps, out, in};
}

template <typename T> static conv_args arguments(tensors<T> &t)
{
	const geometry &g = t.g;
	const int cg = g.c / g.groups, kg = g.k / g.groups, taps = g.r * g.s;
	const bool back = t.what == DGRAD;
	conv_args a = {};
	a.y = axis(t.what, g.h, g.p(), g.r, g.stride_y, g.pad_y, g.dilation_y);
	a.x = axis(t.what, g.w, g.q(), g.s, g.stride_x, g.pad_x, g.dilation_x);
	a.rows = (long long)g.n * a.y.d * a.x.d;
	a.columns = back ? cg : kg;
	a.channels = back ? kg : cg;
	a.groups = g.groups;
	a.b_column = back ? 1 : taps * cg;
	a.b_channel = back ? taps * cg : 1;
	a.b_tap = back ? -cg : cg;
	a.b_group = (long long)kg * taps * cg;
	a.a = back ? t.output.data() : t.input.data();
	a.b = t.what == WGRAD ? t.output.data() : t.filter.data() + (back ? (taps - 1) * cg : 0);
	a.d = t.result().data();
	a.bias = t.bias.data();
	a.residual = t.residual.data();
	a.epilogue = t.epilogue;
	return a;
}

static const geometry odd[] = {
	{1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1},   {2, 7, 9, 3, 5, 3, 3, 1, 1, 1, 1, 1, 1, 1},
	{1, 11, 8, 20, 70, 3, 2, 2, 3, 1, 0, 1, 2, 1}, {2, 9, 6, 12, 8, 3, 3, 2, 1, 2, 1, 2, 1, 4},
	{1, 8, 8, 6, 6, 5, 3, 1, 2, 2, 1, 1, 1, 6},   {2, 5, 5, 4, 8, 2, 2, 2, 2, 0, 0, 1, 1, 4},
	{1, 6, 6, 66, 2, 1, 1, 3, 2, 0, 1, 1, 1, 2},
};

template <typename T> static int check_plain(void)
{
	int bad = 0;
	for (const geometry &g : odd)
		for (int i = 0; i < 2 * GEMM_SWIGLU + 1; i++) {
			const pass what = i < GEMM_SWIGLU ? FORWARD : i < 2 * GEMM_SWIGLU ? DGRAD : WGRAD;
			for (int direct = 0; direct < (what == WGRAD ? 1 : 2); direct++) {
				tensors<T> t(g, what, what == WGRAD ? 0 : i % GEMM_SWIGLU);
				const conv_args a = arguments(t);
				emulate_order = draw(5);
				emulate(dim3(2), dim3(256), [&] {
					if (what == WGRAD)
						conv_filters<T>(a);
					else if (direct)
						conv_direct<T>(a);
					else
						conv_plain<T>(a);
				});
				const int wrong = t.count_wrong();
				t.complain(direct ? "direct" : "plain", wrong);
				bad += wrong != 0;
			}
		}
	return bad;
}

template <typename M> static tensor_map as_map(const M &m)
{
	tensor_map t = {};
	static_assert(sizeof m <= sizeof t, "");
	memcpy(&t, &m, sizeof m);
	return t;
}

static tensor_map matrix_map(void *at, int rows, int columns, int box, int swizzle)
{
	return as_map(emulated_map{(unsigned short *)at, columns, rows, box, 64, columns, swizzle, 0, 0});
}

static void put_taps(conv_tiled_args &p, const geometry &g, bool back)
{
	p.first_tap = back ? g.r * g.s - 1 : 0;
	p.tap_step = back ? -1 : 1;
	p.row_step = p.tap_step * g.s;
}

template <typename T, int BM, int BN, int STAGES, int BUFFERS, int SCHEDULE, int TB, int EPILOGUE, int ROW = 128, int HOLD = 0>
static int run(const geometry &g, int clusters)
{
	typedef conv<T, emulated_wgmma<T, BN, 0, TB>, BM, BN, STAGES, BUFFERS, SCHEDULE, TB, EPILOGUE, T, ROW, HOLD> kernel;
	tensors<T> t(g, TB ? DGRAD : FORWARD, EPILOGUE);
	const conv_args a = arguments(t);
	const int taps = g.r * g.s;
	conv_tiled_args p = {};
	p.y = a.y;
	p.x = a.x;
	p.channels = a.channels;
	put_taps(p, g, TB);
	p.product.m = (int)a.rows;
	p.product.n = a.columns;
	p.product.k = taps * ((a.channels + ROW / 2 - 1) / (ROW / 2)) * (ROW / 2);
	p.product.group = 1 + draw(4);
	p.product.bias = a.bias;
	p.product.a = as_map(emulated_image{(unsigned short *)a.a, a.channels, a.x.a, a.y.a, g.n, a.x.first, a.y.first,
		a.x.first + (a.x.d - 1) * a.x.times, a.y.first + (a.y.d - 1) * a.y.times, a.x.times, a.y.times, BM, 0, 0, 2, ROW});
	p.product.b = as_map(emulated_map{(unsigned short *)t.filter.data(), g.c, g.k, ROW / 2, TB ? 64 : BN, (long)taps * g.c, ROW,
		taps, g.c});
	p.product.d = matrix_map(a.d, p.product.m, a.columns, 64, 128);
	p.product.residual = matrix_map((void *)a.residual, p.product.m, a.columns, 64, 128);
	if (BN % 64) {
		p.product.d_tail = matrix_map(a.d, p.product.m, a.columns, BN % 64, 0);
		p.product.residual_tail = matrix_map((void *)a.residual, p.product.m, a.columns, BN % 64, 0);
	}
	emulate_begin = sm90_begin;
	emulate_order = draw(5);
	emulate_eager = draw(2);
	emulate(dim3((unsigned)clusters), dim3(128 * kernel::Z::WARPGROUPS + 128), [&] { kernel(p, 0).run(); });
	const int bad = t.count_wrong();
	t.complain(TB ? "tiled, turned filters" : "tiled", bad);
	return wrong(bad);
}

/* The pixels of D that a phase has, or those of the residual. */
static tensor_map phase_map(void *at, const conv_args &a, const conv_phase &f)
{
	const long pixel = a.columns, line = pixel * a.x.d;
	const int width = (a.x.d - f.left + a.x.over - 1) / a.x.over, height = (a.y.d - f.top + a.y.over - 1) / a.y.over;
	return as_map(emulated_image{(unsigned short *)at + f.top * line + f.left * pixel, a.columns, width, height,
		(int)(a.rows / a.x.d / a.y.d), 0, 0, f.x.d - 1, f.y.d - 1, 1, 1, 64, a.x.over * pixel, a.y.over * line, 2, 128,
		a.y.d * line});
}

/* The gradient of the input at strides above 1. */
template <typename T, int BM, int BN, int STAGES, int BUFFERS, int SCHEDULE, int EPILOGUE>
static int run_phased(const geometry &g, int blocks)
{
	typedef conv_phased<T, emulated_wgmma<T, BN, 0, 1>, BM, BN, STAGES, BUFFERS, SCHEDULE, EPILOGUE> kernel;
	tensors<T> t(g, DGRAD, EPILOGUE);
	const conv_args a = arguments(t);
	conv_phased_args p = {};
	tiled_args &product = p.conv.product;
	p.conv.y = a.y;
	p.conv.x = a.x;
	p.conv.channels = a.channels;
	put_taps(p.conv, g, true);
	p.phases = conv_phases(&p.conv, p.phase);
	for (int i = 0; i < p.phases; i++) {
		conv_phase &f = p.phase[i];
		f.a = as_map(emulated_image{(unsigned short *)a.a, a.channels, a.x.a, a.y.a, g.n, f.x.first, f.y.first,
			f.x.first + f.x.d - 1, f.y.first + f.y.d - 1, 1, 1, BM});
		f.d = phase_map(a.d, a, f);
		f.residual = phase_map((void *)a.residual, a, f);
	}
	conv_phase_tiles(p.phase, p.phases, g.n, BM);
	product.n = a.columns;
	product.group = 1 + draw(4);
	product.bias = a.bias;
	product.b = as_map(emulated_map{(unsigned short *)t.filter.data(), g.c, g.k, 64, 64, (long)g.r * g.s * g.c, 128, g.r * g.s, g.c});
	emulate_begin = sm90_begin;
	emulate_order = draw(5);
	emulate_eager = draw(2);
	emulate(dim3((unsigned)blocks), dim3(128 * kernel::Z::WARPGROUPS + 128), [&] { kernel(p, 0).run(); });
	const int bad = t.count_wrong() + !p.phases;
	t.complain("phases", bad);
	return wrong(bad);
}

template <typename T, int BM, int BN, int STAGES, int BUFFERS, int SCHEDULE, int EPILOGUE> static int check_phased(void)
{
	/* Odd sizes; phases that are as long, and those that are but have other pixels; phases without taps or pixels; pixels that no output reads; dilations that share a factor with the stride. */
	static const geometry some[] = {{3, 9, 8, 72, 64, 3, 3, 2, 2, 1, 1, 1, 1, 1}, {2, 12, 13, 16, 72, 1, 1, 2, 2, 0, 0, 1, 1, 1},
		{1, 17, 11, 64, 8, 7, 7, 2, 2, 3, 3, 1, 1, 1}, {2, 8, 10, 24, 136, 2, 2, 2, 2, 0, 0, 1, 1, 1},
		{3, 16, 14, 136, 24, 4, 4, 2, 2, 1, 1, 1, 1, 1}, {3, 15, 13, 72, 24, 4, 4, 2, 2, 1, 1, 1, 1, 1}, {2, 11, 9, 8, 72, 3, 2, 2, 1, 0, 1, 2, 3, 1},
		{1, 9, 14, 72, 16, 3, 3, 1, 2, 2, 3, 1, 3, 1}, {2, 13, 7, 16, 16, 5, 2, 4, 1, 2, 0, 2, 1, 1},
		{1, 10, 5, 8, 8, 2, 3, 1, 3, 0, 1, 1, 1, 1}, {5, 1, 3, 8, 24, 1, 1, 2, 2, 0, 0, 1, 1, 1},
		{1, 5, 1, 8, 8, 3, 1, 2, 2, 1, 1, 1, 1, 1}, {1, 13, 15, 8, 72, 2, 2, 2, 2, 3, 0, 4, 3, 1}};
	int bad = 0;
	for (const geometry &g : some)
		bad += run_phased<T, BM, BN, STAGES, BUFFERS, SCHEDULE, EPILOGUE>(g, 1 + draw(3));
	return bad;
}

/* INT8: the scales are powers of 2, so that nothing but the last rounding is inexact. */
template <typename O> struct scaled {
	const geometry &g;
	int epilogue;
	tensor<s8> input, filter;
	tensor<O> output;
	tensor<f32> bias;
	std::vector<float> scale;
	std::vector<O> before;
	scaled(const geometry &g_, int epilogue_)
		: g(g_), epilogue(epilogue_), input(g.inputs()), filter(g.filters()), output(g.outputs()), bias(g.k), before(output.all)
	{
		for (int i = 0; i < g.k; i++)
			scale.push_back(i % 3 ? .5f : -.25f);
	}
	conv_args arguments(void)
	{
		conv_args a = {};
		a.y = axis(FORWARD, g.h, g.p(), g.r, g.stride_y, g.pad_y, g.dilation_y);
		a.x = axis(FORWARD, g.w, g.q(), g.s, g.stride_x, g.pad_x, g.dilation_x);
		a.rows = (long long)g.n * g.p() * g.q();
		a.columns = g.k / g.groups;
		a.channels = g.c / g.groups;
		a.groups = g.groups;
		a.b_tap = a.channels;
		a.b_column = (long long)g.r * g.s * a.channels;
		a.b_channel = 1;
		a.b_group = a.columns * a.b_column;
		a.a = input.data();
		a.b = filter.data();
		a.d = output.data();
		a.bias = bias.data();
		a.b_scale = scale.data();
		a.epilogue = epilogue;
		return a;
	}
	int count_wrong(const char *kernel)
	{
		std::vector<double> sum((size_t)g.outputs());
		each_product(g, [&](long in, long of, long out) { sum[(size_t)out] += (double)input.get(in) * filter.get(of); });
		int bad = 0;
		for (size_t i = 0; i < sum.size(); i++) {
			const int k = (int)(i % (size_t)g.k);
			double want = sum[i] * scale[(size_t)k];
			want = epilogue ? apply(epilogue, want + bias.get(k)) : want;
			const double got = O::get(output.data()[i]), exact = O::get(O::make((float)want));
			const bool rough = epilogue >= GEMM_BIAS_GELU;
			bad += !(fabs(got - exact) <= (!rough ? 0 : sizeof(O) == 1 ? 1.01 : 8e-3 * fabs(want) + 1e-3));
			before[GUARD + i] = output.data()[i];
		}
		bad += memcmp(before.data(), output.all.data(), before.size() * sizeof(O)) != 0;
		if (bad)
			printf("INT8, %s, epilogue %d, order %d: images %d x %d x %d x %d, filters %d x %d x %d: %d wrong\n", kernel, epilogue,
				emulate_order, g.n, g.h, g.w, g.c, g.k, g.r, g.s, bad);
		return wrong(bad);
	}
};

template <typename O> static int check_plain_scaled(void)
{
	int bad = 0;
	for (const geometry &g : odd)
		for (int i = 0; i < 2 * GEMM_RESIDUAL; i++) {
			scaled<O> t(g, i / 2);
			const conv_args a = t.arguments();
			emulate_order = draw(5);
			emulate(dim3(2), dim3(256), [&] { i % 2 ? conv_direct<s8, O>(a) : conv_plain<s8, O>(a); });
			bad += t.count_wrong(i % 2 ? "direct" : "plain");
		}
	return bad;
}

/* Halves of 16 bits stand for two bytes. */
template <typename O, int BM, int BN, int STAGES, int SCHEDULE, int EPILOGUE, int ROW = 128, int HOLD = 0>
static int run_scaled(const geometry &g, int blocks)
{
	typedef conv<s8, emulated_wgmma<s8, BN, 0, 0>, BM, BN, STAGES, 2, SCHEDULE, 0, EPILOGUE, O, ROW, HOLD> kernel;
	scaled<O> t(g, EPILOGUE);
	const conv_args a = t.arguments();
	const int taps = g.r * g.s, of_d = 2 / (int)sizeof(O);
	conv_tiled_args p = {};
	p.y = a.y;
	p.x = a.x;
	p.channels = a.channels;
	put_taps(p, g, false);
	p.product.m = (int)a.rows;
	p.product.n = g.k;
	p.product.k = taps * ((g.c + ROW - 1) / ROW) * ROW;
	p.product.group = 1 + draw(4);
	p.product.bias = a.bias;
	p.product.b_scale = a.b_scale;
	p.product.a = as_map(emulated_image{(unsigned short *)a.a, g.c / 2, a.x.a, a.y.a, g.n, a.x.first, a.y.first,
		a.x.first + (a.x.d - 1) * a.x.times, a.y.first + (a.y.d - 1) * a.y.times, a.x.times, a.y.times, BM, 0, 0, 1, ROW});
	p.product.b = as_map(emulated_map{(unsigned short *)a.b, g.c / 2, g.k, ROW / 2, BN, (long)taps * g.c / 2, ROW, taps, g.c / 2, 1});
	const auto results = [&](int columns, int swizzle) {
		return as_map(emulated_map{(unsigned short *)a.d, g.k / of_d, p.product.m, columns / of_d, 64, g.k / of_d, swizzle, 0, 0,
			(int)sizeof(O)});
	};
	p.product.d = results(64, sizeof(O) > 1 ? 128 : 64);
	p.product.d_tail = results(BN % 64 ? BN % 64 : 64, 0);
	emulate_begin = sm90_begin;
	emulate_order = draw(5);
	emulate_eager = draw(2);
	emulate(dim3((unsigned)blocks), dim3(128 * kernel::Z::WARPGROUPS + 128), [&] { kernel(p, 0).run(); });
	return t.count_wrong("tiled");
}

static int check_scaled(void)
{
	static const geometry some[] = {{2, 9, 7, 32, 48, 3, 3, 1, 1, 1, 1, 1, 1, 1}, {1, 17, 11, 144, 16, 1, 1, 2, 2, 0, 0, 1, 1, 1},
		{2, 13, 10, 272, 160, 3, 2, 2, 1, 1, 2, 1, 2, 1}};
	int bad = check_plain_scaled<s8>() + check_plain_scaled<bf16>();
	for (const geometry &g : some)
		bad += run_scaled<s8, 128, 64, 4, PING_PONG, GEMM_BIAS_RELU>(g, 2) +
		       run_scaled<bf16, 128, 112, 3, PING_PONG, GEMM_BIAS_GELU>(g, 1) +
		       run_scaled<f16, 128, 128, 3, SHARED_TILE, GEMM_NONE>(g, 3);
	/* Filters that stay, of 64 bytes of K and of 128. */
	return bad + run_scaled<s8, 128, 64, 4, PING_PONG, GEMM_BIAS_RELU, 64, 9>(some[0], 2) +
	       run_scaled<bf16, 128, 64, 4, SHARED_TILE, GEMM_NONE, 64, 9>(some[0], 1) +
	       run_scaled<s8, 64, 48, 3, PING_PONG, GEMM_NONE, 128, 2>(some[1], 2) +
	       run_scaled<s8, 192, 64, 3, SHARED_TILE, GEMM_NONE>(some[2], 2);
}

/* Fewer than 8 channels: packed as the host describes it, and then a convolution of windows of 8 pixels.  The packed images
 * and filters stand one behind the other, with guards around. */
template <typename T, int BM, int BN, int STAGES, int SCHEDULE, int EPILOGUE, int HOLD = 0> static int run_packed(const geometry &g)
{
	typedef conv<T, emulated_wgmma<T, BN, 0, 0>, BM, BN, STAGES, 2, SCHEDULE, 0, EPILOGUE, T, 128, HOLD> kernel;
	tensors<T> t(g, FORWARD, EPILOGUE);
	const conv_args a = arguments(t);
	const int high = (g.p() - 1) * g.stride_y + (g.r - 1) * g.dilation_y + 1, wide = (g.q() - 1) * g.stride_x + 8;
	const long pixels = (long)g.n * high * wide, rows = (long)g.k * g.r;
	std::vector<packed_pixel> packed((size_t)(pixels + rows * 8 + 2), packed_pixel{{7, 7, 7, 7, 7, 7, 7, 7}});
	const conv_pack_args pack = {a.a, a.b, &packed[1], &packed[(size_t)pixels + 1], g.c, g.h, g.w, g.pad_y, g.pad_x, high, wide, g.s,
		pixels, rows};
	emulate_order = draw(5);
	emulate(dim3(2), dim3(256), [&] { conv_pack(pack); });
	int bad = packed.front().channel[0] != 7 || packed.back().channel[7] != 7;
	conv_tiled_args p = {};
	p.y = {g.stride_y, 0, g.dilation_y, 1, g.r, g.p(), high};
	p.x = {1, 0, 0, 1, 1, g.q(), g.q()};
	p.channels = 64;
	p.row_step = p.tap_step = 1;
	p.product.m = (int)a.rows;
	p.product.n = a.columns;
	p.product.k = g.r * 64;
	p.product.group = 1 + draw(4);
	p.product.bias = a.bias;
	p.product.a = as_map(emulated_image{(unsigned short *)pack.images, 64, g.q(), high, g.n, 0, 0, g.q() - 1, (g.p() - 1) * g.stride_y,
		1, g.stride_y, BM, g.stride_x * 8l, wide * 8l});
	p.product.b = as_map(emulated_map{(unsigned short *)pack.filters, 64, g.k, 64, BN, g.r * 64l, 128, g.r, 64});
	p.product.d = matrix_map(a.d, p.product.m, a.columns, 64, 128);
	p.product.residual = matrix_map((void *)a.residual, p.product.m, a.columns, 64, 128);
	emulate_begin = sm90_begin;
	emulate_eager = draw(2);
	emulate(dim3(2), dim3(384), [&] { kernel(p, 0).run(); });
	bad += t.count_wrong();
	t.complain("packed", bad);
	return wrong(bad);
}

template <typename T, int BM, int BN, int STAGES, int SCHEDULE, int EPILOGUE> static int check_packed(void)
{
	static const geometry first[] = {{2, 30, 21, 3, 64, 7, 7, 2, 2, 3, 3, 1, 1, 1}, {1, 1, 1, 1, 8, 1, 1, 1, 1, 0, 0, 1, 1, 1},
		{2, 17, 19, 5, 72, 3, 8, 2, 1, 1, 3, 2, 1, 1}, {3, 9, 8, 7, 16, 2, 1, 1, 3, 0, 2, 1, 4, 1}};
	int bad = 0;
	for (const geometry &g : first)
		bad += run_packed<T, BM, BN, STAGES, SCHEDULE, EPILOGUE>(g);
	bad += run_packed<T, BM, BN, STAGES, SCHEDULE, EPILOGUE, 7>(first[0]); /* its filters stay */
	return bad;
}

/* The gradient of filters, in `parts` of the pixels; what is behind the sums must stay as it is. */
template <typename T, int BM, int BN, int STAGES, int SCHEDULE> static int run_gradient(const geometry &g, int parts, int clusters)
{
	typedef conv_gradient<T, emulated_wgmma<T, BN, 1, 1>, BM, BN, STAGES, 1, SCHEDULE> kernel;
	tensors<T> t(g, WGRAD, GEMM_NONE);
	const conv_args a = arguments(t);
	const int blocks = ((int)a.rows + 63) / 64;
	std::vector<float> sums((size_t)(parts * g.filters() + GUARD), -77);
	conv_tiled_args p = {};
	p.y = a.y;
	p.x = a.x;
	p.channels = a.channels;
	p.parts = parts;
	p.sums = sums.data();
	p.product.m = g.k;
	p.product.n = g.r * g.s * ((a.channels + 63) / 64) * 64;
	p.product.k = (blocks + parts - 1) / parts * 64;
	p.product.group = 1 + draw(4);
	p.product.a = matrix_map(t.output.data(), (int)a.rows, g.k, 64, 128);
	p.product.b = as_map(emulated_image{(unsigned short *)a.a, a.channels, a.x.a, a.y.a, g.n, a.x.first, a.y.first,
		a.x.first + (a.x.d - 1) * a.x.times, a.y.first + (a.y.d - 1) * a.y.times, a.x.times, a.y.times, 64});
	emulate_begin = sm90_begin;
	emulate_order = draw(5);
	emulate_eager = draw(2);
	emulate(dim3((unsigned)clusters), dim3(384), [&] { kernel(p, 0).run(); });
	const conv_sum_args s = {sums.data(), a.d, g.filters(), parts};
	emulate(dim3(2), dim3(256), [&] { conv_sum<T>(s); });
	int bad = t.count_wrong();
	for (int i = 0; i < GUARD; i++)
		bad += sums[(size_t)(parts * g.filters() + i)] != -77;
	t.complain("tiled, of filters", bad);
	return wrong(bad);
}

template <typename T, int BM, int BN, int STAGES, int SCHEDULE> static int check_gradient(void)
{
	static const geometry some[] = {{1, 1, 1, 8, 8, 1, 1, 1, 1, 0, 0, 1, 1, 1}, {3, 9, 7, 64, 72, 3, 3, 1, 1, 1, 1, 1, 1, 1},
		{2, 13, 20, 72, 136, 3, 2, 2, 3, 1, 2, 1, 2, 1}, {1, 17, 11, 136, 16, 1, 1, 2, 2, 0, 0, 1, 1, 1}};
	int bad = 0;
	for (const geometry &g : some)
		for (int parts = 1; parts < 4; parts++)
			bad += run_gradient<T, BM, BN, STAGES, SCHEDULE>(g, parts, 1 + draw(3));
	return bad;
}

template <typename T, int BM, int BN, int STAGES, int BUFFERS, int SCHEDULE, int TB, int EPILOGUE>
static int check(void)
{
	static const geometry forward[] = {{1, 1, 1, 8, 8, 1, 1, 1, 1, 0, 0, 1, 1, 1}, {3, 9, 7, 64, 72, 3, 3, 1, 1, 1, 1, 1, 1, 1},
		{2, 13, 20, 72, 136, 3, 2, 2, 3, 1, 2, 1, 2, 1}, {1, 17, 11, 136, 16, 1, 1, 2, 2, 0, 0, 1, 1, 1},
		{2, 10, 9, 24, 24, 5, 3, 1, 2, 4, 0, 2, 1, 1}};
	static const geometry back[] = {{1, 1, 1, 8, 8, 1, 1, 1, 1, 0, 0, 1, 1, 1}, {3, 9, 7, 72, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1},
		{2, 13, 10, 136, 72, 3, 2, 1, 1, 0, 1, 2, 1, 1}, {1, 8, 11, 16, 136, 1, 1, 1, 1, 2, 0, 1, 1, 1}};
	int bad = 0;
	if (TB)
		for (const geometry &g : back)
			bad += run<T, BM, BN, STAGES, BUFFERS, SCHEDULE, TB, EPILOGUE>(g, 1 + draw(2));
	else
		for (const geometry &g : forward)
			bad += run<T, BM, BN, STAGES, BUFFERS, SCHEDULE, TB, EPILOGUE>(g, 1 + draw(2));
	return bad;
}

/* Filters that stay, and blocks of K of 64 bytes. */
static int check_held(void)
{
	static const geometry some[] = {{3, 9, 7, 64, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1}, {2, 13, 20, 24, 56, 3, 3, 2, 1, 1, 2, 1, 2, 1},
		{2, 10, 9, 136, 72, 3, 1, 1, 1, 1, 0, 1, 1, 1}};
	return run<bf16, 128, 64, 4, 2, PING_PONG, 0, GEMM_BIAS_RELU, 128, 9>(some[0], 2) +
	       run<f16, 128, 64, 4, 2, PING_PONG, 1, GEMM_NONE, 128, 9>(some[0], 2) +
	       run<bf16, 128, 64, 4, 2, PING_PONG, 0, GEMM_RESIDUAL, 64, 9>(some[1], 2) +
	       run<f16, 192, 96, 3, 1, SHARED_TILE, 0, GEMM_NONE, 128, 9>(some[2], 1) +
	       run<bf16, 192, 128, 3, 1, SHARED_TILE, 1, GEMM_NONE>(some[2], 2) +
	       run<bf16, 64, 64, 4, 1, PING_PONG, 0, GEMM_NONE, 64>(some[1], 1);
}

/* ONLY_FEW: what the controls need, which is quicker to compile. */
int main(void)
{
	int bad = check<bf16, 128, 96, 3, 2, PING_PONG, 0, GEMM_NONE>();
	bad += check<bf16, 64, 64, 4, 1, PING_PONG, 1, GEMM_NONE>();
	bad += check_gradient<bf16, 64, 128, 4, PING_PONG>();
	bad += check_packed<bf16, 128, 64, 4, PING_PONG, GEMM_BIAS_RELU>();
	bad += check_phased<bf16, 64, 64, 3, 2, PING_PONG, GEMM_BIAS>();
#ifndef ONLY_FEW
	bad += check_packed<f16, 128, 128, 4, SHARED_TILE, GEMM_RESIDUAL>();
	bad += check_plain<f32>() + check_plain<bf16>() + check_plain<f16>();
	bad += check<f16, 128, 112, 3, 2, PING_PONG, 0, GEMM_BIAS>();
	bad += check<bf16, 64, 128, 4, 1, PING_PONG, 0, GEMM_BIAS_RELU>();
	bad += check<bf16, 128, 64, 4, 1, SHARED_TILE, 0, GEMM_BIAS_GELU>();
	bad += check<bf16, 128, 160, 3, 2, PING_PONG, 0, GEMM_BIAS_SILU>();
	bad += check<bf16, 128, 128, 4, 2, SHARED_TILE, 1, GEMM_RESIDUAL>();
	bad += check<f16, 128, 128, 3, 2, PING_PONG, 0, GEMM_RESIDUAL>();
	bad += check_scaled() + check_held();
	bad += check_phased<f16, 128, 128, 3, 1, PING_PONG, GEMM_RESIDUAL>() + check_phased<bf16, 64, 128, 4, 2, PING_PONG, GEMM_NONE>();
	bad += check_phased<bf16, 128, 64, 4, 2, SHARED_TILE, GEMM_BIAS_RELU>() + check_phased<f16, 192, 128, 3, 1, SHARED_TILE, GEMM_NONE>();
	bad += check_phased<bf16, 128, 128, 4, 2, SHARED_TILE, GEMM_RESIDUAL>();
	bad += check_gradient<f16, 128, 64, 3, PING_PONG>() + check_gradient<bf16, 128, 128, 4, SHARED_TILE>();
#endif
	if (!bad)
		puts("convolutions agree with the definition");
	return bad != 0;
}
