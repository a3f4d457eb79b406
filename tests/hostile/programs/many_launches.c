/* Launches N times and says how many failed: the ground of the tests about disks. */
#include "cu.h"

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1000;

	cu_start();
	printf("%d failed\n", cu_launch(n));
	if (argc > 2) { /* the recording's directory goes away under us */
		printf("removed: %d\n", system(argv[2]));
		printf("%d failed\n", cu_launch(n));
	}
	return 0;
}
