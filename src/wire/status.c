/* The table of status.h, made from api/status.tbl. */
#include "wire/status.h"

#include <errno.h>
#include <stddef.h>

static const struct {
	int error;
	struct status status;
} rows[] = {
#include "status_rows.h"
};

const struct status *status_of(int negative_errno)
{
	static const struct status ok = { .http = 200, .grpc = 0, .name = "OK" };
	size_t i = 0;
	if (!negative_errno)
		return &ok;
	while (rows[i].error != EIO && rows[i].error != -negative_errno)
		i++;
	return &rows[i].status;
}
