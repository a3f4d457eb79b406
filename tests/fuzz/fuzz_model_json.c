/*
 * Fuzzes model.json of the synthetic engine, and with it the lists of tensors that all models of
 * JSON have. A model that is loaded has tensors, and one that is not says why.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/engine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check(const struct tensor_spec *spec, unsigned n)
{
	must(n >= 1 && n <= ENGINE_TENSORS);
	for (unsigned i = 0; i < n; i++) {
		must(spec[i].name && spec[i].type && spec[i].shape.n <= SHAPE_DIMS);
		for (unsigned d = 0; d < spec[i].shape.n; d++)
			must(spec[i].shape.dims[d] >= -1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	static const struct engine_options options;
	const struct engine_config config = { .name = "fuzz", .max_batch_size = 8 };
	struct engine_model *m = NULL;
	struct error err = { .text = "" };
	if (fd < 0)
		must((fd = memfd_create("model.json", MFD_CLOEXEC)) >= 0);
	must(!ftruncate(fd, 0) && pwrite(fd, data, size, 0) == (ssize_t)size);
	const struct engine *engine = engine_find("synthetic", NULL);
	const int e = engine_load(engine, &options, &config, fd, "model.json", &m, &err);
	must(e ? !m && *err.text : m && !*err.text);
	if (m) {
		check(m->in, m->ins);
		check(m->out, m->outs);
	}
	engine_unload(m);
	return 0;
}
