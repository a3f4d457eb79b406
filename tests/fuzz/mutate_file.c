/* mutate_file SEED IN OUT: a copy of a file with something wrong.  See mutate.h. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "mutate.h"

int main(int argc, char **argv)
{
	struct stat st;
	FILE *in = argc == 4 ? fopen(argv[2], "rb") : NULL;
	if (!in || fstat(fileno(in), &st)) {
		fprintf(stderr, "usage: mutate_file SEED IN OUT\n");
		return 2;
	}
	const size_t size = (size_t)st.st_size, most = size + (1u << 20);
	uint8_t *data = malloc(most);
	FILE *out = fopen(argv[3], "wb");
	if (!data || !out || fread(data, 1, size, in) != size)
		return 2;
	const size_t n = mutate(data, size, most, strtoull(argv[1], NULL, 10));
	const int bad = fwrite(data, 1, n, out) != n;
	free(data);
	fclose(in);
	return fclose(out) || bad ? 2 : 0;
}
