/* The device sources of products, run on the host by the emulator, against a plain loop.  Inputs are small
 * integers, so that sums are exact, and what lies around the result must stay as it is. */
#include "sm90.hh"

#include "gemm.cu"
#include "gemm_few.cu"
#include "gemm_split.cu"
#include "gemm_sm80.cu"
#include "gemm_sm90.cu"

enum { GUARD = 64, PAD = 8 }; /* elements before and behind, and between rows */

static int draw(int below)
{
	return (int)emulate_random((unsigned)below);
}

template <typename T> T small(int v)
{
	return T::make((float)v);
}

/* -2 to 2 */
template <> e4m3 small(int v)
{
	static const unsigned char bits[] = {0, 0x38, 0x40};
	return {(unsigned char)(bits[v < 0 ? -v : v] | (v < 0 ? 0x80 : 0))};
}

/* `number` of them, one behind the other with a row between; at() and get() are those of the one that is `shown`. */
template <typename T> struct matrix {
	int rows, columns, pitch, number, shown = 0;
	std::vector<T> all;
	matrix(int rows_, int columns_, int most = 2, int number_ = 1)
		: rows(rows_), columns(columns_), pitch((columns_ + 15) / 16 * 16 + PAD * (sizeof(T) == 1 ? 2 : 1)), number(number_)
	{
		all.resize((size_t)(number * apart() + 2 * GUARD));
		for (T &e : all)
			e = small<T>(draw(2 * most + 1) - most);
	}
	int apart(void) const
	{
		return (rows + 1) * pitch;
	}
	void show(int i)
	{
		shown = number > 1 ? i : 0;
	}
	T *at(int row, int column)
	{
		return &all[(size_t)(GUARD + shown * apart() + row * pitch + column)];
	}
	float get(int row, int column)
	{
		return T::get(*at(row, column));
	}
	tensor_map map(int box_x, int box_y, int swizzle = 128)
	{
		const auto halves = [](int n) { return n * (int)sizeof(T) / 2; };
		const emulated_map m = {(unsigned short *)at(0, 0), halves(columns), rows, halves(box_x), box_y, halves(pitch),
			swizzle, number, halves(apart()), (int)sizeof(T)};
		tensor_map t = {};
		static_assert(sizeof m <= sizeof t, "");
		memcpy(&t, &m, sizeof m);
		return t;
	}
};

static double apply(int epilogue, double x)
{
	if (epilogue == GEMM_BIAS_RELU)
		return fmax(x, 0);
	if (epilogue == GEMM_BIAS_GELU)
		return .5 * x * (1 + tanh(.7978845608 * (x + .044715 * x * x * x)));
	return epilogue == GEMM_BIAS_SILU ? x / (1 + exp(-x)) : x;
}

/* The right product of operands as they are stored, and how many elements of d differ from it. */
template <typename T> struct oracle {
	matrix<T> &a, &b, &d, &r, &bias;
	bool ta, tb;
	int epilogue;
	std::vector<double> rows, columns; /* of the two that are shown, K by K */
	int k(void) const
	{
		return ta ? a.rows : a.columns;
	}
	void read(void)
	{
		rows.clear();
		columns.clear();
		for (int i = 0; i < (ta ? a.columns : a.rows); i++)
			for (int l = 0; l < k(); l++)
				rows.push_back(ta ? a.get(l, i) : a.get(i, l));
		for (int j = 0; j < (tb ? b.columns : b.rows); j++)
			for (int l = 0; l < k(); l++)
				columns.push_back(tb ? b.get(l, j) : b.get(j, l));
	}
	double product(int i, int j) const
	{
		double sum = 0;
		for (int l = 0; l < k(); l++)
			sum += rows[(size_t)(i * k() + l)] * columns[(size_t)(j * k() + l)];
		return sum;
	}
	double want(int i, int j) const
	{
		if (epilogue == GEMM_SWIGLU)
			return apply(GEMM_BIAS_SILU, product(i, 2 * j)) * product(i, 2 * j + 1);
		const double p = product(i, j);
		if (epilogue >= GEMM_BIAS && epilogue <= GEMM_BIAS_SILU)
			return apply(epilogue, p + bias.get(0, j));
		return epilogue == GEMM_RESIDUAL ? p + r.get(i, j) : p;
	}
	/* before: all of d, whose guards must be the same. */
	int count_wrong(std::vector<T> before)
	{
		int bad = 0;
		for (int i = 0; i < d.number; i++) {
			a.show(i);
			b.show(i);
			d.show(i);
			r.show(i);
			read();
			bad += count_wrong_of_shown(before);
		}
		return bad + (memcmp(d.all.data(), before.data(), before.size() * sizeof(T)) != 0);
	}
	int count_wrong_of_shown(std::vector<T> &before) const
	{
		const double unit = epilogue >= GEMM_BIAS_GELU && epilogue != GEMM_RESIDUAL ? 8e-3 : 0;
		int bad = 0;
		for (int i = 0; i < d.rows; i++)
			for (int j = 0; j < d.columns; j++) {
				const double w = unit ? want(i, j) : T::get(T::make((float)want(i, j)));
				bad += !(fabs(d.get(i, j) - w) <= unit * fabs(w) + (unit ? 1e-3 : 0));
				before[(size_t)(d.at(i, j) - d.all.data())] = *d.at(i, j);
			}
		return bad;
	}
};

/* In a batch, all products share B. */
template <typename T> static int run_plain(int m, int n, int k, bool ta, bool tb, int epilogue, int batch = 1)
{
	matrix<T> a(ta ? k : m, ta ? m : k, 2, batch), b(tb ? k : n, tb ? n : k), d(m, epilogue == GEMM_SWIGLU ? n / 2 : n, 2, batch);
	matrix<T> r(m, n, 2, batch), bias(1, n);
	const std::vector<T> before = d.all;
	gemm_args g = {m, n, k, a.at(0, 0), b.at(0, 0), bias.at(0, 0), r.at(0, 0), d.at(0, 0), ta ? 1 : a.pitch, ta ? a.pitch : 1,
		tb ? 1 : b.pitch, tb ? b.pitch : 1, d.pitch, r.pitch, epilogue, nullptr, nullptr, batch, a.apart(), 0, d.apart(),
		r.apart()};
	emulate_order = draw(5);
	emulate(dim3(2), dim3(256), [&] { gemm_plain<T>(g); });
	const int bad = oracle<T>{a, b, d, r, bias, ta, tb, epilogue}.count_wrong(before);
	if (bad)
		printf("plain %d x %d x %d, layouts %d %d, epilogue %d, order %d: %d wrong\n", m, n, k, ta, tb, epilogue, emulate_order,
			bad);
	return wrong(bad);
}

/* Scales that are powers of 2, so that nothing but the last rounding is inexact. */
struct scales {
	std::vector<float> a, b;
	scales(int m, int n)
	{
		for (int i = 0; i < m; i++)
			a.push_back(i % 3 ? .25f : 1);
		for (int i = 0; i < n; i++)
			b.push_back(i % 5 ? 2 : -.5f);
	}
};

/* How many elements of a product of scaled operands are wrong, guards included. */
template <typename T, typename O>
static int count_wrong(matrix<T> &a, matrix<T> &b, matrix<O> &d, const scales &s, matrix<f32> &bias, int epilogue,
	std::vector<O> before)
{
	const double unit = epilogue < GEMM_BIAS_GELU ? 0 : sizeof(O) == 1 ? 1.01 : 8e-3;
	int bad = 0;
	for (int i = 0; i < d.rows; i++)
		for (int j = 0; j < d.columns; j++) {
			double w = 0;
			for (int l = 0; l < a.columns; l++)
				w += (double)T::get(*a.at(i, l)) * (double)T::get(*b.at(j, l));
			w *= (double)s.a[(size_t)i] * s.b[(size_t)j];
			w = epilogue ? apply(epilogue, w + bias.get(0, j)) : w;
			const double got = O::get(*d.at(i, j)), want = O::get(O::make((float)w));
			bad += !(fabs(got - want) <= (sizeof(O) == 1 ? unit : unit * fabs(want) + (unit ? 1e-3 : 0)));
			before[(size_t)(d.at(i, j) - d.all.data())] = *d.at(i, j);
		}
	return bad + (memcmp(d.all.data(), before.data(), before.size() * sizeof(O)) != 0);
}

template <typename T, typename O> static int run_plain_scaled(int m, int n, int k, int epilogue)
{
	matrix<T> a(m, k), b(n, k);
	matrix<O> d(m, n);
	matrix<f32> bias(1, n);
	const scales s(m, n);
	const std::vector<O> before = d.all;
	gemm_args g = {m, n, k, a.at(0, 0), b.at(0, 0), bias.at(0, 0), nullptr, d.at(0, 0), a.pitch, 1, b.pitch, 1, d.pitch, 0,
		epilogue, s.a.data(), s.b.data(), 1};
	emulate_order = draw(5);
	emulate(dim3(2), dim3(256), [&] { gemm_plain<T, O>(g); });
	const int bad = count_wrong<T, O>(a, b, d, s, bias, epilogue, before);
	if (bad)
		printf("plain scaled %d x %d x %d, epilogue %d, order %d: %d wrong\n", m, n, k, epilogue, emulate_order, bad);
	return wrong(bad);
}

template <typename T, typename O> static int check_plain_scaled(void)
{
	int bad = 0;
	for (int epilogue = GEMM_NONE; epilogue <= GEMM_BIAS_SILU; epilogue++)
		bad += run_plain_scaled<T, O>(67, 35, 150, epilogue) + run_plain_scaled<T, O>(3, 1, 1, epilogue);
	return bad;
}

/* Every layout with every epilogue, for shapes around a tile. */
template <typename T> static int check_plain(void)
{
	static const int shapes[][3] = {{1, 2, 1}, {64, 64, 16}, {67, 130, 37}, {5, 70, 0}};
	int bad = 0;
	for (auto &s : shapes)
		for (int i = 0; i < 4 * GEMM_EPILOGUES; i++)
			bad += run_plain<T>(s[0], s[1], s[2], i & 1, i & 2, i / 4);
	for (int i = 0; i < GEMM_EPILOGUES; i++)
		bad += run_plain<T>(67, 70, 37, i & 1, i & 2, i, 3);
	return bad;
}

/* The same by mma.sync, whose rows of D have any pitch.  M is the type that the tensor cores read. */
template <typename T, typename M> static int run_mma(int m, int n, int k, int epilogue, int batch)
{
	matrix<T> a(m, k, 2, batch), b(n, k), d(m, epilogue == GEMM_SWIGLU ? n / 2 : n, 2, batch), r(m, n, 2, batch), bias(1, n);
	const std::vector<T> before = d.all;
	gemm_args g = {m, n, k, a.at(0, 0), b.at(0, 0), bias.at(0, 0), r.at(0, 0), d.at(0, 0), a.pitch, 1, b.pitch, 1, d.pitch, r.pitch,
		epilogue, nullptr, nullptr, batch, a.apart(), 0, d.apart(), r.apart()};
	emulate_begin = sm90_begin;
	emulate_order = draw(5);
	emulate(dim3((unsigned)(1 + draw(3))), dim3(MMA_THREADS), [&] { gemm_mma<T, emulated_mma<M>, 3>(g, 0).run(); });
	const int bad = oracle<T>{a, b, d, r, bias, false, false, epilogue}.count_wrong(before);
	if (bad)
		printf("mma %d x %d x %d x %d, epilogue %d, order %d: %d wrong\n", batch, m, n, k, epilogue, emulate_order, bad);
	return wrong(bad);
}

template <typename T, typename O> static int run_mma_scaled(int m, int n, int k, int epilogue)
{
	matrix<T> a(m, k), b(n, k);
	matrix<O> d(m, n);
	matrix<f32> bias(1, n);
	const scales s(m, n);
	const std::vector<O> before = d.all;
	gemm_args g = {m, n, k, a.at(0, 0), b.at(0, 0), bias.at(0, 0), nullptr, d.at(0, 0), a.pitch, 1, b.pitch, 1, d.pitch, 0,
		epilogue, s.a.data(), s.b.data(), 1};
	emulate_begin = sm90_begin;
	emulate_order = draw(5);
	emulate(dim3(2), dim3(MMA_THREADS), [&] { gemm_mma<T, emulated_mma<T>, 3, O>(g, 0).run(); });
	const int bad = count_wrong<T, O>(a, b, d, s, bias, epilogue, before);
	if (bad)
		printf("mma scaled %d x %d x %d, epilogue %d, order %d: %d wrong\n", m, n, k, epilogue, emulate_order, bad);
	return wrong(bad);
}

/* Shapes that nobody chose, and more blocks of K than stages. */
static int check_mma(void)
{
	int bad = 0;
	for (int epilogue = 0; epilogue < GEMM_EPILOGUES; epilogue++) {
		bad += run_mma<bf16, bf16>(1 + draw(140), 2 * (1 + draw(70)), 1 + draw(300), epilogue, 1 + draw(2));
		bad += run_mma<f16, f16>(1 + draw(100), 2 * (1 + draw(50)), 1 + draw(200), epilogue, 1);
		bad += run_mma<f32, tf32>(1 + draw(100), 2 * (1 + draw(50)), 1 + draw(100), epilogue, 1);
	}
	for (int epilogue = 0; epilogue <= GEMM_BIAS_SILU; epilogue++) {
		bad += run_mma_scaled<s8, s8>(1 + draw(100), 1 + draw(100), 1 + draw(500), epilogue);
		bad += run_mma_scaled<e4m3, bf16>(1 + draw(100), 1 + draw(100), 1 + draw(300), epilogue);
	}
	return bad + run_mma<bf16, bf16>(257, 129, 520, GEMM_NONE, 1);
}

/* The stored form of a type of products. */
template <typename T> struct stored {
	typedef T type;
};

template <> struct stored<tf32> {
	typedef f32 type;
};

/* The number of elements of D that are wrong, guards included. */
template <typename T, int BM, int BN, int STAGES, int BUFFERS, int CLM, int CLN, int SCHEDULE, int TA, int TB, int EPILOGUE>
static int run(int m, int n, int k, int clusters, int batch = 1)
{
	typedef typename stored<T>::type O;
	typedef shape<BM, BN, STAGES, BUFFERS, CLM, CLN, SCHEDULE, TA, TB, EPILOGUE, (int)sizeof(O)> Z;
	const bool pairs = EPILOGUE == GEMM_SWIGLU;
	const int out = pairs ? n / 2 : n, bk = 128 / (int)sizeof(T);
	const bool batched = batch > 1, shares = batched && draw(2); /* all have one B */
	matrix<O> a(TA ? k : m, TA ? m : k, 2, batch), b(TB ? k : n, TB ? n : k, 2, shares ? 1 : batch), d(m, out, 2, batch);
	matrix<O> r(m, n, 2, batch), bias(1, n);
	const std::vector<O> before = d.all;
	tiled_args p = {};
	p.a = TA ? a.map(64, 64) : a.map(bk, BM / CLN);
	p.b = TB ? b.map(64, 64) : b.map(bk, BN / CLM);
	p.d = d.map(Z::WIDTH, 64);
	p.residual = r.map(Z::WIDTH, 64);
	if (Z::TAIL) {
		p.d_tail = d.map(Z::TAIL, 64, 0);
		p.residual_tail = r.map(Z::TAIL, 64, 0);
	}
	p.bias = bias.at(0, 0);
	p.m = m;
	p.n = n;
	p.k = k;
	p.group = 1 + draw(4);
	p.batch = batch;
	p.a_step = p.residual_step = 1;
	p.b_step = !shares;
	emulate_begin = sm90_begin;
	emulate_order = draw(5);
	emulate_eager = draw(2);
	emulate(dim3((unsigned)(clusters * CLM * CLN)), dim3(128 * Z::WARPGROUPS + 128), [&] {
		typedef emulated_wgmma<T, BN, TA, TB> mma;
		if (batched)
			gemm<T, mma, BM, BN, STAGES, BUFFERS, CLM, CLN, SCHEDULE, TA, TB, EPILOGUE, O, true>(p, 0).run();
		else
			gemm<T, mma, BM, BN, STAGES, BUFFERS, CLM, CLN, SCHEDULE, TA, TB, EPILOGUE, O>(p, 0).run();
	}, CLM * CLN);

	const int bad = oracle<O>{a, b, d, r, bias, TA, TB, EPILOGUE}.count_wrong(before);
	if (bad)
		printf("%d x %d x %d x %d, tile %d x %d, cluster %d x %d, schedule %d, layouts %d %d, epilogue %d, order %d, eager %d: "
		       "%d wrong\n",
			batch, m, n, k, BM, BN, CLM, CLN, SCHEDULE, TA, TB, EPILOGUE, emulate_order, emulate_eager, bad);
	return wrong(bad);
}

/* An operand's copies, as gemm_split.cu makes them. */
struct copies {
	int rows, k, pitch, batch;
	std::vector<float> high, low;
	copies(matrix<f32> &of, bool transposed, bool splits)
		: rows(transposed ? of.columns : of.rows), k(transposed ? of.rows : of.columns), pitch((k + 3) / 4 * 4), batch(of.number),
		  high((size_t)(batch * rows * pitch), NAN), low(splits ? high.size() : 0, NAN)
	{
		const split_args g = {of.at(0, 0), high.data(), splits ? low.data() : nullptr, rows, k, transposed ? 1 : of.pitch,
			transposed ? of.pitch : 1, of.apart(), pitch, batch};
		emulate_order = draw(5);
		emulate(dim3(2), dim3(256), [&] { gemm_split(g); });
	}
	tensor_map map(std::vector<float> &of, int box) const
	{
		const emulated_map m = {(unsigned short *)of.data(), 2 * k, rows, 64, box, 2 * pitch, 128, batch, 2 * rows * pitch, 4};
		tensor_map t = {};
		memcpy(&t, &m, sizeof m);
		return t;
	}
};

/* TF32 in any layout, and in two parts: one operand has more bits than TF32 then, and all bits count. */
template <typename T, int BM, int BN, int STAGES, int BUFFERS, int CLM, int SCHEDULE, int EPILOGUE>
static int run_split(int m, int n, int k, bool ta, bool tb, int batch)
{
	typedef shape<BM, BN, STAGES, BUFFERS, CLM, 1, SCHEDULE, 0, 0, EPILOGUE, 4> Z;
	const bool splits = parts_of<T>::N > 1, wide_a = draw(2);
	matrix<f32> a(ta ? k : m, ta ? m : k, splits && wide_a ? 9000 : 2, batch), b(tb ? k : n, tb ? n : k, splits && !wide_a ? 9000 : 2, batch);
	matrix<f32> d(m, n, 2, batch), r(m, n, 2, batch), bias(1, n);
	const std::vector<f32> before = d.all;
	copies of_a(a, ta, splits), of_b(b, tb, splits);
	tiled_args p = {};
	p.a = of_a.map(of_a.high, BM);
	p.b = of_b.map(of_b.high, BN / CLM);
	p.a_low = of_a.map(of_a.low, BM);
	p.b_low = of_b.map(of_b.low, BN / CLM);
	p.d = d.map(Z::WIDTH, 64);
	p.residual = r.map(Z::WIDTH, 64);
	if (Z::TAIL) {
		p.d_tail = d.map(Z::TAIL, 64, 0);
		p.residual_tail = r.map(Z::TAIL, 64, 0);
	}
	p.bias = bias.at(0, 0);
	p.m = m;
	p.n = n;
	p.k = k;
	p.group = 1 + draw(4);
	p.batch = batch;
	p.a_step = p.b_step = p.residual_step = 1;
	emulate_begin = sm90_begin;
	emulate_order = draw(5);
	emulate_eager = draw(2);
	emulate(dim3(CLM), dim3(384), [&] {
		typedef emulated_wgmma<tf32, BN, 0, 0> mma;
		if (batch > 1)
			gemm<T, mma, BM, BN, STAGES, BUFFERS, CLM, 1, SCHEDULE, 0, 0, EPILOGUE, f32, true>(p, 0).run();
		else
			gemm<T, mma, BM, BN, STAGES, BUFFERS, CLM, 1, SCHEDULE, 0, 0, EPILOGUE, f32>(p, 0).run();
	}, CLM);
	const int bad = oracle<f32>{a, b, d, r, bias, ta, tb, EPILOGUE}.count_wrong(before);
	if (bad)
		printf("split %d x %d x %d x %d, parts %d, layouts %d %d, order %d, eager %d: %d wrong\n", batch, m, n, k, parts_of<T>::N, ta,
			tb, emulate_order, emulate_eager, bad);
	return wrong(bad);
}

/* Numbers that TF32 does not hold, and those at the ends of FP32. */
static int check_parts(void)
{
	matrix<f32> a(1, 7);
	const float values[] = {1.0000001f, -3.1415927f, 3.4028235e38f, 1e-30f, INFINITY, NAN, -0.f};
	for (int i = 0; i < 7; i++)
		a.at(0, i)->v = values[i];
	const copies parts(a, false, true);
	int bad = 0;
	for (int i = 0; i < 7; i++) {
		const float high = parts.high[(size_t)i], low = parts.low[(size_t)i];
		const double sum = (double)high + low;
		unsigned words[2];
		memcpy(&words[0], &high, 4);
		memcpy(&words[1], &low, 4);
		bad += isnan(values[i]) ? !isnan(sum) : isinf(values[i]) ? sum != values[i]
								       : fabs(sum - values[i]) > fabs(values[i]) * 2.4e-7;
		bad += !isnan(values[i]) && (words[0] | words[1]) & 0x1fff;
	}
	if (bad)
		printf("%d numbers in two parts are wrong\n", bad);
	return bad;
}

static int check_split(void)
{
	int bad = check_parts();
	for (int i = 0; i < 8; i++) {
		bad += run_split<tf32, 128, 112, 3, 2, 2, PING_PONG, GEMM_RESIDUAL>(
			1 + draw(200), 4 * (1 + draw(60)), 1 + draw(100), i & 1, i & 2, 1 + i / 4);
		bad += run_split<tf32x3, 128, 128, 4, 1, 1, SHARED_TILE, GEMM_NONE>(
			1 + draw(200), 4 * (1 + draw(60)), 1 + draw(100), i & 1, i & 2, 1 + i / 4);
		bad += run_split<tf32x3, 128, 96, 3, 2, 1, PING_PONG, GEMM_BIAS>(
			1 + draw(200), 4 * (1 + draw(60)), 1 + draw(100), i & 2, i & 1, 1 + i / 4);
	}
	return bad;
}

/* Few rows.  Ahead: until the first thread waits for the launch before, A and the residual are not there, and D is read. */
template <typename T, int WARPGROUPS, int BN, int STAGES, int PARTS, int EPILOGUE, bool AHEAD>
static int run_few(int m, int n, int k)
{
	typedef few_shape<WARPGROUPS, BN, STAGES, PARTS> Z;
	matrix<T> a(m, k), b(n, k), d(m, EPILOGUE == GEMM_SWIGLU ? n / 2 : n), r(m, n), bias(1, n);
	const std::vector<T> before = d.all, right_a = a.all, right_r = r.all;
	int early = 0;
	few_args p = {a.map(64, BN), b.map(64, Z::ROWS), bias.at(0, 0), r.at(0, 0), d.at(0, 0), d.pitch, r.pitch, m, n, k};
	if (AHEAD) {
		std::fill(a.all.begin(), a.all.end(), small<T>(1));
		std::fill(r.all.begin(), r.all.end(), small<T>(1));
		emulated_launch_before = [&] {
			std::copy(right_a.begin(), right_a.end(), a.all.begin());
			std::copy(right_r.begin(), right_r.end(), r.all.begin());
			early += memcmp(d.all.data(), before.data(), before.size() * sizeof(T)) != 0;
			emulated_launch_before = nullptr;
		};
	}
	emulate_begin = sm90_begin;
	emulate_order = draw(5);
	emulate_eager = draw(2);
	const int clusters = tile_count(n, Z::ROWS);
	emulate(dim3((unsigned)(clusters * PARTS)), dim3(Z::MULTIPLIERS + 32), [&] {
		few<T, emulated_wgmma<T, BN, 0, 0>, WARPGROUPS, BN, STAGES, PARTS, EPILOGUE, AHEAD>(p, 0).run();
	}, PARTS);
	if (emulated_launch_before) { /* nobody has waited */
		emulated_launch_before();
		early++;
	}
	const int bad = oracle<T>{a, b, d, r, bias, false, false, EPILOGUE}.count_wrong(before) + early;
	if (bad)
		printf("few %d x %d x %d, %d warpgroups, %d parts, epilogue %d, ahead %d, order %d, eager %d: %d wrong\n", m, n, k,
			WARPGROUPS, PARTS, EPILOGUE, AHEAD, emulate_order, emulate_eager, bad);
	return wrong(bad);
}

/* One row and all that fit, tiles of which the last is not whole, and K of as many blocks as parts and of more than the
 * stages hold. */
template <typename T, int WARPGROUPS, int BN, int STAGES, int PARTS, int EPILOGUE, bool AHEAD> static int check_few(void)
{
	const int rows = 64 * WARPGROUPS;
	int bad = 0;
	for (int m : {1, BN - 3, BN})
		for (int k : {PARTS * 64, PARTS * (STAGES + 2) * 64 + 24})
			bad += run_few<T, WARPGROUPS, BN, STAGES, PARTS, EPILOGUE, AHEAD>(m, rows + 16, k);
	return bad;
}

static int check_all_few(void)
{
	return check_few<bf16, 1, 16, 5, 1, GEMM_NONE, false>() + check_few<bf16, 2, 16, 4, 4, GEMM_BIAS_GELU, true>() +
	       check_few<f16, 2, 32, 4, 2, GEMM_RESIDUAL, true>() + check_few<bf16, 1, 64, 4, 2, GEMM_SWIGLU, false>() +
	       check_few<bf16, 2, 64, 3, 8, GEMM_BIAS_SILU, false>() + check_few<f16, 4, 16, 3, 1, GEMM_BIAS_RELU, true>() +
	       check_few<bf16, 2, 128, 3, 4, GEMM_BIAS, true>();
}

/* Shapes below a tile, of whole tiles, and a little above, with more stages than blocks of K and fewer. */
template <typename T, int BM, int BN, int STAGES, int BUFFERS, int CLM, int CLN, int SCHEDULE, int TA, int TB, int EPILOGUE>
static int check(void)
{
	static const int shapes[][4] = {{1, 16, 8, 1}, {130, 208, 72, 2}, {256, 2 * BN, 64, 1}, {300, 3 * BN + 16, 328, 1}};
	int bad = 0;
	for (auto &s : shapes)
		bad += run<T, BM, BN, STAGES, BUFFERS, CLM, CLN, SCHEDULE, TA, TB, EPILOGUE>(s[0], s[1], s[2], s[3]);
	/* A batch, of shapes that nobody chose. */
	for (int i = 0; i < 2; i++)
		bad += run<T, BM, BN, STAGES, BUFFERS, CLM, CLN, SCHEDULE, TA, TB, EPILOGUE>(
			1 + draw(200), 16 * (1 + draw(12)), 8 * (1 + draw(20)), 1 + draw(2), 2 + draw(3));
	return bad;
}

template <typename T, typename O, int BM, int BN, int STAGES, int BUFFERS, int CLM, int SCHEDULE, int EPILOGUE>
static int run_scaled(int m, int n, int k, int clusters)
{
	typedef shape<BM, BN, STAGES, BUFFERS, CLM, 1, SCHEDULE, 0, 0, EPILOGUE> Z;
	matrix<T> a(m, k), b(n, k);
	matrix<O> d(m, n);
	matrix<f32> bias(1, n);
	const scales s(m, n);
	const std::vector<O> before = d.all;
	tiled_args p = {};
	p.a = a.map(128, BM);
	p.b = b.map(128, BN / CLM);
	p.d = d.map(64, 64, sizeof(O) > 1 ? 128 : 64);
	if (Z::TAIL)
		p.d_tail = d.map(Z::TAIL, 64, 0);
	p.bias = bias.at(0, 0);
	p.a_scale = s.a.data();
	p.b_scale = s.b.data();
	p.m = m;
	p.n = n;
	p.k = k;
	p.group = 1 + draw(4);
	emulate_begin = sm90_begin;
	emulate_order = draw(5);
	emulate_eager = draw(2);
	emulate(dim3((unsigned)(clusters * CLM)), dim3(128 * Z::WARPGROUPS + 128), [&] {
		gemm<T, emulated_wgmma<T, BN, 0, 0>, BM, BN, STAGES, BUFFERS, CLM, 1, SCHEDULE, 0, 0, EPILOGUE, O>(p, 0).run();
	}, CLM);
	const int bad = count_wrong<T, O>(a, b, d, s, bias, EPILOGUE, before);
	if (bad)
		printf("scaled %d x %d x %d, tile %d x %d, epilogue %d, order %d, eager %d: %d wrong\n", m, n, k, BM, BN, EPILOGUE,
			emulate_order, emulate_eager, bad);
	return wrong(bad);
}

template <typename T, typename O, int BM, int BN, int STAGES, int BUFFERS, int CLM, int SCHEDULE, int EPILOGUE>
static int check_scaled(void)
{
	static const int shapes[][4] = {{1, 16, 16, 1}, {130, 208, 144, 2}, {300, 2 * BN + 16, 656, 1}};
	int bad = 0;
	for (auto &s : shapes)
		bad += run_scaled<T, O, BM, BN, STAGES, BUFFERS, CLM, SCHEDULE, EPILOGUE>(s[0], s[1], s[2], s[3]);
	return bad;
}

static int check_all_scaled(void)
{
	return check_plain_scaled<s8, s8>() + check_plain_scaled<s8, bf16>() + check_plain_scaled<e4m3, f16>() +
	       check_scaled<s8, s8, 128, 112, 3, 2, 2, PING_PONG, GEMM_BIAS_RELU>() +
	       check_scaled<s8, bf16, 128, 160, 3, 2, 1, PING_PONG, GEMM_BIAS_GELU>() +
	       check_scaled<s8, s8, 128, 64, 4, 1, 1, SHARED_TILE, GEMM_NONE>() +
	       check_scaled<s8, s8, 192, 96, 3, 2, 1, SHARED_TILE, GEMM_BIAS>() +
	       check_scaled<e4m3, bf16, 128, 96, 3, 2, 1, PING_PONG, GEMM_NONE>() +
	       check_scaled<e4m3, f16, 128, 128, 4, 1, 2, SHARED_TILE, GEMM_BIAS>();
}

/* ONLY_PINGPONG, ONLY_MMA, ONLY_FEW and ONLY_SPLIT: what one control needs, which is quicker to compile. */
int main(void)
{
#if defined ONLY_PINGPONG
	int bad = 0;
	for (int i = 0; i < 8; i++)
		bad += run<bf16, 128, 64, 3, 2, 1, 1, PING_PONG, 0, 0, GEMM_NONE>(512, 128, 64 + 64 * i, 1);
#elif defined ONLY_MMA
	const int bad = check_mma();
#elif defined ONLY_FEW
	const int bad = check_all_few();
#elif defined ONLY_SPLIT
	const int bad = check_split();
#else
	int bad = check_mma() + check_all_few() + check_all_scaled() + check_split();
	bad += check_plain<f32>() + check_plain<bf16>() + check_plain<f16>();
	bad += check<bf16, 128, 96, 3, 2, 1, 1, PING_PONG, 0, 0, GEMM_NONE>();
	bad += check<f16, 128, 112, 3, 2, 2, 1, PING_PONG, 0, 0, GEMM_BIAS>();
	bad += check<bf16, 128, 64, 4, 1, 1, 1, SHARED_TILE, 0, 0, GEMM_BIAS_GELU>();
	bad += check<bf16, 128, 128, 4, 2, 2, 1, SHARED_TILE, 0, 1, GEMM_BIAS_SILU>();
	bad += check<bf16, 128, 128, 3, 2, 1, 1, PING_PONG, 1, 0, GEMM_RESIDUAL>();
	bad += check<f16, 64, 128, 4, 1, 1, 1, PING_PONG, 1, 1, GEMM_BIAS_RELU>();
	bad += check<bf16, 128, 160, 3, 2, 2, 1, PING_PONG, 0, 0, GEMM_SWIGLU>();
	bad += check<bf16, 256, 64, 3, 2, 1, 2, SHARED_TILE, 0, 0, GEMM_RESIDUAL>();
	bad += check<bf16, 192, 128, 3, 2, 1, 1, SHARED_TILE, 0, 1, GEMM_BIAS>();
	bad += check<f16, 192, 160, 3, 1, 1, 1, SHARED_TILE, 1, 0, GEMM_RESIDUAL>();
	bad += check<tf32, 128, 112, 3, 2, 2, 1, PING_PONG, 0, 0, GEMM_RESIDUAL>();
	bad += check<tf32, 128, 96, 3, 2, 1, 1, PING_PONG, 0, 0, GEMM_BIAS_SILU>();
	bad += check<tf32, 128, 160, 3, 2, 1, 1, PING_PONG, 0, 0, GEMM_SWIGLU>();
	bad += check<tf32, 128, 128, 4, 1, 2, 1, SHARED_TILE, 0, 0, GEMM_NONE>();
#endif
	if (!bad)
		puts("products agree with the oracle");
	return bad != 0;
}
