/* A table of launches; what is taken from it is learnt and asked. */
#include <stdint.h>
#include <stdlib.h>

#include "train/dataset.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct predict_sizes sizes = { .launches = 64, .kernels = 4 };
	const size_t bytes = predict_bytes(&sizes);
	static void *memory; /* of all inputs: to make it takes longer than to use it */
	struct dataset d = { 0 };
	struct predict p;
	struct predict_device device;
	struct error err;
	if (!memory)
		memory = aligned_alloc(64, bytes);
	if (!memory || predict_device_find("NVIDIA H200", 90, 0, &device) ||
		predict_init(&p, memory, bytes, &sizes, &device))
		abort();
	dataset_csv(&d, (const char *)data, size, "input", &err);
	for (size_t i = 0; i < d.samples.n; i++) {
		struct predict_answer a;
		predict_learn(&p, &d.samples.v[i]);
		predict_ask(&p, &d.samples.v[i].launch, &a);
	}
	dataset_fini(&d);
	return 0;
}
