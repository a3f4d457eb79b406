/* Kernels with known laws: see zoo.h. */
#include "zoo.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "predict/occupancy.h"

enum law { ELEMENTWISE, GEMM, ROWS, STRIDE, LAWS };

static const char *const law_names[LAWS] = {
	[ELEMENTWISE] = "vectorized_elementwise_op%c<%u>",
	[GEMM] = "sgemm_%c_tile%u",
	[ROWS] = "softmax_rows_%c<%u>",
	[STRIDE] = "reduce_all_%c<%u>",
};

double zoo_uniform(struct zoo *z)
{
	z->random = hash_mix(z->random + 0x9e3779b97f4a7c15u);
	return ((double)(z->random >> 11) + 0.5) / (double)(1ull << 53);
}

double zoo_normal(struct zoo *z)
{
	return sqrt(-2 * log(zoo_uniform(z))) * cos(6.283185307179586 * zoo_uniform(z));
}

void zoo_init(struct zoo *z, uint64_t seed, double noise)
{
	memset(z, 0, sizeof *z);
	z->random = seed;
	z->noise = noise;
	predict_device_find("NVIDIA H200", 90, 0, &z->device);
	for (unsigned k = 0; k < ZOO_KERNELS; k++) {
		const unsigned tile = 32u << k / LAWS / 4 % 3;
		snprintf(z->name[k], sizeof z->name[k], law_names[k % LAWS],
			'a' + (int)(k / LAWS % 4), tile);
		predict_kernel_name(&z->kernel[k], z->name[k], seed);
		z->kernel[k].regs = 24 + 8 * (k % 9);
		z->kernel[k].has_regs = true;
		/* siblings are nearly as good as each other */
		const double sibling = (double)(hash_mix(k % (LAWS * 4)) % 1000) / 1000;
		z->efficiency[k] = 0.45 + 0.4 * sibling + 0.05 * zoo_uniform(z);
	}
}

static double whole_waves(const struct zoo *z, const struct predict_launch *l)
{
	const struct occupancy o = occupancy_of(&z->device.sm,
		&(struct occupancy_launch){ .threads = l->block[0], .regs = l->kernel->regs });
	const double blocks = (double)l->grid[0] * l->grid[1] * l->grid[2];
	return ceil(blocks / (o.blocks * z->device.sms));
}

static double elementwise(const struct zoo *z, uint64_t n, struct predict_launch *l)
{
	l->grid[0] = (uint32_t)((n + 511) / 512);
	l->block[0] = 128;
	l->args = 2;
	l->arg[0] = n;
	l->arg[1] = 1065353216; /* 1.0f */
	l->bytes = 12.0 * (double)n;
	l->has_bytes = true;
	return l->bytes / z->device.dram_bytes_ns + 300 * whole_waves(z, l);
}

static double gemm(const struct zoo *z, uint64_t n, uint64_t k, struct predict_launch *l)
{
	l->grid[0] = (uint32_t)(n / 128);
	l->grid[1] = (uint32_t)(n / 64);
	l->block[0] = 256;
	l->args = 3;
	l->arg[0] = l->arg[1] = n;
	l->arg[2] = k;
	l->flops = 2.0 * (double)n * (double)n * (double)k;
	l->bytes = 4.0 * (double)(n * n + 2 * n * k);
	l->has_flops = l->has_bytes = true;
	l->unit = GPU_FP32;
	/* a wave of tiles takes the time of its multiplications, however few tiles are in it */
	const double tile = 2.0 * 128 * 64 * (double)k * z->device.sms * 3;
	return whole_waves(z, l) * tile / z->device.flops_ns[GPU_FP32];
}

static double rows(const struct zoo *z, uint64_t rows, uint64_t columns, struct predict_launch *l)
{
	l->grid[0] = (uint32_t)rows;
	l->block[0] = 256;
	l->args = 2;
	l->arg[0] = rows;
	l->arg[1] = columns;
	l->bytes = 8.0 * (double)(rows * columns);
	l->has_bytes = true;
	return l->bytes / z->device.dram_bytes_ns + 500 * whole_waves(z, l);
}

static double stride(const struct zoo *z, uint64_t n, struct predict_launch *l)
{
	l->grid[0] = 264;
	l->block[0] = 512;
	l->args = 1;
	l->arg[0] = n;
	return 4.0 * (double)n / z->device.dram_bytes_ns;
}

double zoo_launch(const struct zoo *z, unsigned k, unsigned shape, struct predict_launch *ret_l)
{
	struct predict_launch l = {
		.kernel = &z->kernel[k], .grid = { 1, 1, 1 }, .block = { 1, 1, 1 }
	};
	const uint64_t noise = hash_mix(k * 1000 + shape);
	const uint64_t n = 1ull << (18 + shape % 8) | (noise & 0x1ffff);
	double t;
	switch ((enum law)(k % LAWS)) {
	case ELEMENTWISE:
		t = elementwise(z, n, &l);
		break;
	case GEMM:
		t = gemm(z, 512 * (1 + noise % 7), 256 * (1 + shape % 9), &l);
		break;
	case ROWS:
		t = rows(z, 1000 + noise % 30000, 256 * (1 + shape % 15), &l);
		break;
	default:
		t = stride(z, n, &l);
		break;
	}
	l.key = predict_key(&l);
	*ret_l = l;
	return 1500 + t / z->efficiency[k];
}

struct predict_sample zoo_next(struct zoo *z, uint64_t order)
{
	/* Zipf's law, roughly: uniform in the logarithm of the rank */
	const double pairs = ZOO_KERNELS * ZOO_SHAPES;
	const unsigned rank = (unsigned)(exp(zoo_uniform(z) * log(pairs)) - 1);
	const unsigned pair = (unsigned)(hash_mix(rank) % (ZOO_KERNELS * ZOO_SHAPES));
	struct predict_sample s = { .order = order, .name = pair / ZOO_SHAPES };
	s.app = s.name % 3;
	s.measured_ns = zoo_launch(z, pair / ZOO_SHAPES, pair % ZOO_SHAPES, &s.launch);
	s.measured_ns *= exp(z->noise * zoo_normal(z));
	return s;
}
