/* Linked to a library that uses the driver before main() and after it: libs/early.c. */
#include "cu.h"

int early_failed(void);

int main(void)
{
	printf("%d failed before main\n", early_failed());
	counts("cuLaunchKernel", 10);
	counts("cuInit", 1);
	return 0;
}
