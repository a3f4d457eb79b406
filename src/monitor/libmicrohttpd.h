/* The functions of libmicrohttpd that are used, looked up when a server is started. */
#pragma once

#include <microhttpd.h>

#define LIBMICROHTTPD_FUNCTIONS(X)                                                                 \
	X(MHD_start_daemon)                                                                        \
	X(MHD_stop_daemon)                                                                         \
	X(MHD_lookup_connection_value)                                                             \
	X(MHD_get_connection_info)                                                                 \
	X(MHD_create_response_from_buffer)                                                         \
	X(MHD_add_response_header)                                                                 \
	X(MHD_queue_response)                                                                      \
	X(MHD_destroy_response)

struct libmicrohttpd {
#define MEMBER(name) __typeof__(&name) name;
	LIBMICROHTTPD_FUNCTIONS(MEMBER)
#undef MEMBER
};
