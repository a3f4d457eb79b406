/* Prints launches of the zoo as a table, for tests of commands: gen-launches [N]. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "zoo.h"

static void put_row(const struct zoo *z, const struct predict_sample *s)
{
	const struct predict_launch *l = &s->launch;
	printf("zoo,app%" PRIu32 ",%" PRIu64 ",\"%s\",,9.0,132,NVIDIA H200,", s->app, s->order,
		z->name[s->name]);
	printf("%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32
	       ",0,0,%" PRIu32 ",0,",
		l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2],
		l->kernel->regs);
	for (uint32_t i = 0; i < PREDICT_ARGS; i++) {
		if (i < l->args)
			printf("%" PRIu64, l->arg[i]);
		putchar(',');
	}
	if (l->has_flops)
		printf("%.0f", l->flops);
	putchar(',');
	if (l->has_bytes)
		printf("%.0f", l->bytes);
	printf(",%.0f\n", s->measured_ns);
}

int main(int argc, char **argv)
{
	const uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 4000;
	struct zoo z;
	zoo_init(&z, 4, 0.01);
	puts("trace,app,order,kernel,family,cc,sms,device,grid_x,grid_y,grid_z,block_x,block_y,block_z,"
	     "smem_static,smem_dynamic,regs,local,args0,args1,args2,args3,args4,args5,args6,args7,"
	     "flops,bytes,ns");
	for (uint64_t i = 0; i < n; i++) {
		const struct predict_sample s = zoo_next(&z, i);
		put_row(&z, &s);
	}
	return 0;
}
