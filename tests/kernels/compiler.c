/*
 * A test double of NVRTC: what it compiles is PTX of an empty kernel of the program's name, which
 * the simulated driver loads.  With COMPILER=refuse in the environment it refuses every program.
 * compiler_count() is how often it was asked to compile.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/conv.cuh"
#include "kernels/rows.cuh"

struct program {
	char ptx[400];
};

static atomic_int count;

int compiler_count(void);
int compiler_count(void)
{
	return atomic_load(&count);
}

static int refuses(void)
{
	const char *have = getenv("COMPILER");
	return have && strcmp(have, "refuse") == 0;
}

int nvrtcVersion(int *ret_major, int *ret_minor);
int nvrtcVersion(int *ret_major, int *ret_minor)
{
	*ret_major = 13;
	*ret_minor = 0;
	return 0;
}

int nvrtcCreateProgram(void **ret, const char *text, const char *name, int headers,
	const char *const *texts, const char *const *names);
int nvrtcCreateProgram(void **ret, const char *text, const char *name, int headers,
	const char *const *texts, const char *const *names)
{
	char kernel[100], threads[16];
	struct program *p = calloc(1, sizeof *p);
	const char *bounds = strstr(text, "__launch_bounds__(");
	const unsigned bytes =
		strstr(text, "(const rows_args")        ? sizeof(struct rows_args)
		: strstr(text, "gemm_args a)")          ? sizeof(struct gemm_args)
		: strstr(text, "split_args a)")         ? sizeof(struct split_args)
		: strstr(text, "few_args p)")           ? sizeof(struct few_args)
		: strstr(text, "(const conv_args")      ? sizeof(struct conv_args)
		: strstr(text, "(const conv_pack_args") ? sizeof(struct conv_pack_args)
		: strstr(text, "(const conv_sum_args")  ? sizeof(struct conv_sum_args)
		: strstr(text, "conv_tiled_args p")     ? sizeof(struct conv_tiled_args)
		: strstr(text, "conv_phased_args p")    ? sizeof(struct conv_phased_args)
							: sizeof(struct tiled_args);
	if (!p || !bounds || headers < 3 ||
		sscanf(bounds, "__launch_bounds__(%15[0-9, ]) %99[a-z0-9_](", threads, kernel) !=
			2) {
		free(p);
		return 1;
	}
	snprintf(p->ptx, sizeof p->ptx,
		".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry %s(\n.param .align 8 "
		".b8 a[%u])\n{\n\tret;\n}\n",
		kernel, bytes);
	*ret = p;
	return 0;
}

int nvrtcCompileProgram(void *program, int n, const char *const *options);
int nvrtcCompileProgram(void *program, int n, const char *const *options)
{
	atomic_fetch_add(&count, 1);
	return refuses() ? 6 : 0;
}

static const char *log_text(void)
{
	return refuses() ? "the double refuses" : "";
}

int nvrtcGetProgramLogSize(void *program, size_t *ret);
int nvrtcGetProgramLogSize(void *program, size_t *ret)
{
	*ret = strlen(log_text()) + 1;
	return 0;
}

int nvrtcGetProgramLog(void *program, char *to);
int nvrtcGetProgramLog(void *program, char *to)
{
	memcpy(to, log_text(), strlen(log_text()) + 1);
	return 0;
}

int nvrtcGetCUBINSize(void *program, size_t *ret);
int nvrtcGetCUBINSize(void *program, size_t *ret)
{
	*ret = strlen(((struct program *)program)->ptx) + 1;
	return 0;
}

int nvrtcGetCUBIN(void *program, char *to);
int nvrtcGetCUBIN(void *program, char *to)
{
	const struct program *p = program;
	memcpy(to, p->ptx, strlen(p->ptx) + 1);
	return 0;
}

int nvrtcGetPTXSize(void *program, size_t *ret);
int nvrtcGetPTXSize(void *program, size_t *ret)
{
	return nvrtcGetCUBINSize(program, ret);
}

int nvrtcGetPTX(void *program, char *to);
int nvrtcGetPTX(void *program, char *to)
{
	return nvrtcGetCUBIN(program, to);
}

int nvrtcDestroyProgram(void **program);
int nvrtcDestroyProgram(void **program)
{
	free(*program);
	return 0;
}
