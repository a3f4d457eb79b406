/* The device source of the kernels over rows, run on the host by the zoo's emulator, against a plain loop in double.
 * Every written tensor lies between guard elements, and the gaps that its strides leave are guards too. */
#include "sm90.hh"

/* Second implementations of rows_held.cu's PTX. */
struct vector;
static vector load(const void *at);
static vector load_shared(const void *at);
static vector load_piece(u32 at);
static void store_piece(u32 at, const vector &v);
static void store(void *at, const vector &v);

static float power_of_2(float x)
{
	return exp2f(x);
}

static float product(float a, float b)
{
	return a * b;
}

#include "rows.cu"
#include "rows_held.cu"
#include "rows_ring.cu"

static vector load(const void *at)
{
	vector v;
	if ((uintptr_t)at % sizeof v)
		abort();
	memcpy(&v, at, sizeof v);
	return v;
}

static vector load_shared(const void *at)
{
	return load(at);
}

static vector load_piece(u32 at)
{
	vector v;
	memcpy(&v, shared_at(at), sizeof v);
	return v;
}

static void store_piece(u32 at, const vector &v)
{
	memcpy(shared_at(at), &v, sizeof v);
}

static void store(void *at, const vector &v)
{
	if ((uintptr_t)at % sizeof v)
		abort();
	memcpy(at, &v, sizeof v);
}

#include <stdio.h>
#include <stdlib.h>

#include <vector>

enum kind { KIND_SOFTMAX, KIND_LOG, LAYER, RMS, KINDS };
enum { GUARD = 48, HELD = 17 }; /* elements: a multiple of a vector; forms */
static const char *const names[] = {"softmax", "log-softmax", "layer norm", "RMS norm"};

static unsigned seed = 1;

static float draw(void) /* -4 to 4 */
{
	seed = seed * 1664525 + 1013904223;
	return (float)(seed >> 8) / (float)(1 << 21) - 4;
}

template <typename T> struct tensor {
	std::vector<T> all;
	rows_tensor view;
	tensor(long long rows, long long width, long long row, long long column)
	{
		all.resize((size_t)((rows - 1) * row + (width - 1) * column + 1 + 2 * GUARD));
		for (T &e : all)
			e = T::make(draw());
		view = {all.data() + GUARD, row, column};
	}
	tensor(const tensor &other) : all(other.all), view(other.view)
	{
		view.at = all.data() + GUARD;
	}
};

template <typename T> static double value(const tensor<T> &t, long long row, long long column)
{
	return T::get(t.all[(size_t)(GUARD + row * t.view.row + column * t.view.column)]);
}

static std::vector<double> oracle(enum kind kind, const std::vector<double> &x, double epsilon)
{
	const double n = (double)x.size();
	double most = x[0], mean = 0, sum = 0;
	for (double v : x) {
		most = fmax(most, v);
		mean += v / n;
	}
	if (kind == RMS)
		mean = 0;
	for (double v : x)
		sum += kind < LAYER ? exp(v - most) : (v - mean) * (v - mean) / n;
	std::vector<double> y;
	for (double v : x)
		y.push_back(kind == KIND_SOFTMAX ? exp(v - most) / sum
			    : kind == KIND_LOG ? v - most - log(sum)
						  : (v - mean) / sqrt(sum + epsilon));
	return y;
}

typedef void kernel(const rows_args &);
enum { BARE = KINDS, FUSED = BARE + 2 }; /* kernels of all operations, and of norms with all they may have */

/* A form: for each operation its kernel, and its geometry. */
struct form {
	kernel *run[FUSED];
	unsigned rows_of_block, block, cluster, room, least; /* vectors of a row */
	bool stays;				      /* two clusters take all rows */
};

template <typename T, int OP, int HAS, int V, int THREADS, int DEPTH, int CL, bool KEEPS> static void ring(const rows_args &a)
{
	rows_ring<T, OP, HAS, V, THREADS, DEPTH, CL, KEEPS>(a, 0).run();
}

#define KERNELS(K, ...)                                                                                                \
	{                                                                                                              \
		K<T, SOFTMAX, 0, __VA_ARGS__>, K<T, LOG_SOFTMAX, 0, __VA_ARGS__>, K<T, LAYER_NORM, 0, __VA_ARGS__>,    \
			K<T, RMS_NORM, 0, __VA_ARGS__>, K<T, LAYER_NORM, 15, __VA_ARGS__>,                             \
			K<T, RMS_NORM, 15, __VA_ARGS__>                                                                \
	}
#define FORM(V, TPR, R, BLOCK, CL)                                                                                     \
	{                                                                                                              \
		KERNELS(rows_held, V, TPR, R, BLOCK, CL), BLOCK / TPR *R, BLOCK, CL, V *TPR *CL, 1, false                 \
	}
#define RING(V, THREADS, DEPTH, CL, KEEPS)                                                                              \
	{                                                                                                              \
		KERNELS(ring, V, THREADS, DEPTH, CL, KEEPS), 1, THREADS, CL, V *THREADS *CL, (V - 1) * THREADS *CL + 1, true \
	}

template <typename T> static const form &held_form(int i)
{
	static const form forms[HELD] = {FORM(1, 8, 4, 128, 1), FORM(4, 8, 1, 128, 1), FORM(2, 16, 2, 128, 1),
		FORM(1, 32, 2, 128, 1), FORM(4, 32, 1, 128, 1), FORM(2, 64, 1, 64, 1), FORM(1, 128, 1, 128, 1),
		FORM(8, 128, 1, 128, 1), FORM(1, 128, 1, 128, 2), FORM(2, 64, 1, 64, 4), FORM(1, 32, 1, 32, 8), RING(4, 128, 3, 1, false),
		RING(2, 64, 2, 3, false), RING(3, 64, 1, 2, false), RING(2, 32, 4, 8, false), RING(4, 64, 2, 1, true), RING(2, 64, 3, 4, true)};
	return forms[i];
}

/* held below 0: the plain kernel. */
template <typename T> static void launch(enum kind kind, const rows_args &a, int held, int order)
{
	static kernel *const plain[] = {softmax<T, false>, softmax<T, true>, norm<T, true>, norm<T, false>};
	emulate_order = order;
	if (held < 0)
		return emulate(dim3(2), dim3(THREADS), [&] { plain[kind](a); });
	const form &f = held_form<T>(held);
	const unsigned clusters = f.stays ? 2 : ((unsigned)a.rows + f.rows_of_block - 1) / f.rows_of_block;
	emulate_begin = sm90_begin;
	emulate(dim3(clusters * f.cluster), dim3(f.block), [&] { f.run[a.residual.at ? BARE + kind - LAYER : kind](a); }, f.cluster);
}

/* The number of elements outside the view that changed. */
template <typename T> static int guards_broken(const tensor<T> &before, const tensor<T> &after, long long rows, long long width)
{
	std::vector<bool> inside(before.all.size());
	for (long long r = 0; r < rows; r++)
		for (long long c = 0; c < width; c++)
			inside[(size_t)(GUARD + r * before.view.row + c * before.view.column)] = true;
	int broken = 0;
	for (size_t i = 0; i < inside.size(); i++)
		broken += !inside[i] && memcmp(&before.all[i], &after.all[i], sizeof(T)) != 0;
	return broken;
}

struct shape {
	long long rows, width, row, column;
};

template <typename T>
static int check(const char *type, double unit, enum kind kind, const shape &s, bool in_place, bool fused, int held, int order)
{
	const double epsilon = 1e-5;
	tensor<T> x(s.rows, s.width, s.row, s.column), y(s.rows, s.width, s.row, s.column);
	tensor<T> residual(s.rows, s.width, s.row, s.column), weight(1, s.width, s.width, 1), bias(1, s.width, s.width, 1);
	const tensor<T> x0(x), y0(y), residual0(residual);
	rows_args a = {x.view, in_place ? x.view : y.view, {}, {}, nullptr, nullptr, s.rows, s.width, (float)epsilon};
	if (fused) {
		a.residual = a.sum = residual.view;
		a.weight = weight.view.at;
		a.bias = bias.view.at;
	}
	launch<T>(kind, a, held, order);

	const tensor<T> &out = in_place ? x : y;
	int bad = guards_broken(in_place ? x0 : y0, out, s.rows, s.width) + guards_broken(residual0, residual, s.rows, s.width);
	for (long long r = 0; r < s.rows; r++) {
		std::vector<double> in;
		for (long long c = 0; c < s.width; c++) {
			const float v = (float)value(x0, r, c);
			in.push_back(fused ? T::get(T::make(v + (float)value(residual0, r, c))) : v);
			bad += fused && value(residual, r, c) != in.back();
		}
		const std::vector<double> want = oracle(kind, in, epsilon);
		for (long long c = 0; c < s.width; c++) {
			double w = want[(size_t)c];
			if (fused)
				w = w * value(weight, 0, c) + value(bias, 0, c);
			bad += !(fabs(value(out, r, c) - w) <= unit * fabs(w) + 2e-5);
		}
	}
	if (bad)
		printf("%s of %s, %lld x %lld, strides %lld and %lld, form %d, order %d: %d wrong\n", names[kind], type,
			s.rows, s.width, s.row, s.column, held, order, bad);
	return wrong(bad);
}

/* `unit` is half a unit of the last place, the error of rounding to nearest. */
template <typename T> static int check_type(const char *type, double unit)
{
	static const shape shapes[] = {{1, 1, 1, 1}, {3, 2, 2, 1}, {5, 7, 9, 1}, {2, 31, 31, 1}, {3, 33, 40, 1},
		{2, 255, 255, 1}, {3, 256, 256, 1}, {2, 257, 261, 1}, {3, 1000, 1003, 1}, {7, 19, 1, 7}, {3, 300, 601, 2}};
	int bad = 0, order = 0;
	for (const shape &s : shapes)
		for (int kind = 0; kind < KINDS; kind++)
			for (int form = 0; form < (kind < LAYER ? 2 : 4); form++)
				bad += check<T>(type, unit, (enum kind)kind, s, form & 1, form & 2, -1, order++ % 3);
	return bad;
}

/* Every form: rows that it just holds, rows of a vector less, the narrowest ones, and too few rows for its last block. */
template <typename T> static int check_held(const char *type, double unit)
{
	int bad = 0, order = 0;
	for (int i = 0; i < HELD; i++) {
		const form &f = held_form<T>(i);
		const long long each = 16 / (long long)sizeof(T), room = f.room * each;
		const long long rows = f.stays ? 9 : f.rows_of_block + 1;
		const shape shapes[] = {{rows, room, room, 1}, {1, room - (f.room > 1) * each, room, 1}, {3, f.least * each, (f.least + 1) * each, 1}};
		for (const shape &s : shapes)
			for (int kind = 0; kind < KINDS; kind++, order++)
				bad += check<T>(type, unit, (enum kind)kind, s, order & 1, kind >= LAYER && order & 2, i, order % 3);
	}
	return bad;
}

/* Masked elements get exactly 0, by infinity or by the least number.  A row that is masked whole by infinity is NaN.  Two
 * large numbers are apart, and equal ones share. */
static int check_infinities(int held)
{
	enum { ROWS = 5 };
	static const float low[ROWS] = {-INFINITY, LEAST, 2.5e38f, LEAST, -INFINITY}, high[ROWS] = {0, 0, 3e38f, LEAST, -INFINITY};
	const long long width = held < 0 ? 300 : held_form<f32>(held).room * 4;
	tensor<f32> x(ROWS, width, width, 1), y(ROWS, width, width, 1);
	for (int r = 0; r < ROWS; r++)
		for (long long i = 0; i < width; i++)
			x.all[(size_t)(GUARD + r * width + i)].v = i % 3 ? low[r] : high[r];
	rows_args a = {x.view, y.view, {}, {}, nullptr, nullptr, ROWS, width, 0};
	launch<f32>(KIND_SOFTMAX, a, held, 0);
	int bad = 0;
	for (long long i = 0; i < width; i++) {
		const double share = 1. / (double)((width + 2) / 3);
		for (int r = 0; r < 3; r++)
			bad += i % 3 ? value(y, r, i) != 0 : fabs(value(y, r, i) / share - 1) > 1e-5;
		bad += fabs(value(y, 3, i) * (double)width - 1) > 1e-5;
		bad += !isnan(value(y, 4, i));
	}
	if (bad)
		printf("softmax of infinities, form %d: %d wrong\n", held, bad);
	return bad != 0;
}

template <typename T> static int check_all(const char *type, double unit)
{
	return check_type<T>(type, unit) + check_held<T>(type, unit);
}

int main(void)
{
	int bad = check_all<bf16>("BF16", 1.0 / 256);
#ifndef CONTROL /* one type is enough, and takes the compiler a third of the time */
	bad += check_infinities(-1) + check_infinities(7) + check_infinities(4) + check_infinities(12) + check_all<f32>("FP32", 1e-5) +
	       check_all<f16>("FP16", 1.0 / 2048);
#endif
	if (!bad)
		puts("softmax and norms agree with the oracle");
	return bad != 0;
}
