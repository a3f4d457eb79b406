/*
 * The structures of the CUDA driver API that Weir reads or the simulated driver fills,
 * declared from their published layouts so that nothing here needs a CUDA toolkit.  If cuda.h is
 * present, tests/unit/test_cuda_types.c compares every size and offset with it.
 *
 * Handles are void *, device addresses uint64_t, results and enumerations int.
 */
#ifndef WEIR_API_CUDA_TYPES_H
#define WEIR_API_CUDA_TYPES_H

#include <stddef.h>
#include <stdint.h>

struct dim3 {
	uint32_t x, y, z;
};

struct extent { /* cudaExtent: bytes or elements, rows, slices */
	size_t width, height, depth;
};

struct ipc_handle { /* CUipcMemHandle, CUipcEventHandle */
	char reserved[64];
};

struct cu_launch_attribute { /* CUlaunchAttribute */
	int id;
	char pad[4];
	union {
		char bytes[64];
		int value;
		struct {
			uint32_t x, y, z;
		} cluster;
	} u;
};

struct cu_launch_config { /* CUlaunchConfig */
	uint32_t grid_x, grid_y, grid_z;
	uint32_t block_x, block_y, block_z;
	uint32_t shared_bytes;
	void *stream;
	struct cu_launch_attribute *attrs;
	uint32_t attr_count;
};

struct cu_dev_resource { /* CUdevResource: 92 bytes behind the type are the driver's own */
	int type;
	uint32_t device, first_sm, split;
	char pad[80];
	union {
		uint32_t sms;
		struct {
			uint32_t count, least, alignment;
		} sm;
		char bytes[48];
	} u;
};

struct cu_memcpy2d { /* CUDA_MEMCPY2D */
	size_t src_x, src_y;
	int src_type;
	const void *src_host;
	uint64_t src_device;
	void *src_array;
	size_t src_pitch;
	size_t dst_x, dst_y;
	int dst_type;
	void *dst_host;
	uint64_t dst_device;
	void *dst_array;
	size_t dst_pitch;
	size_t width_bytes, height;
};

struct cu_memcpy2d_v1 { /* CUDA_MEMCPY2D_v1: 32-bit sizes and addresses */
	uint32_t src_x, src_y;
	int src_type;
	const void *src_host;
	uint32_t src_device;
	void *src_array;
	uint32_t src_pitch;
	uint32_t dst_x, dst_y;
	int dst_type;
	void *dst_host;
	uint32_t dst_device;
	void *dst_array;
	uint32_t dst_pitch;
	uint32_t width_bytes, height;
};

struct cu_memcpy3d { /* CUDA_MEMCPY3D; CUDA_MEMCPY3D_PEER has contexts where it is reserved */
	size_t src_x, src_y, src_z, src_lod;
	int src_type;
	const void *src_host;
	uint64_t src_device;
	void *src_array;
	void *src_reserved;
	size_t src_pitch, src_height;
	size_t dst_x, dst_y, dst_z, dst_lod;
	int dst_type;
	void *dst_host;
	uint64_t dst_device;
	void *dst_array;
	void *dst_reserved;
	size_t dst_pitch, dst_height;
	size_t width_bytes, height, depth;
};

struct cu_memcpy3d_v1 { /* CUDA_MEMCPY3D_v1 */
	uint32_t src_x, src_y, src_z, src_lod;
	int src_type;
	const void *src_host;
	uint32_t src_device;
	void *src_array;
	void *src_reserved;
	uint32_t src_pitch, src_height;
	uint32_t dst_x, dst_y, dst_z, dst_lod;
	int dst_type;
	void *dst_host;
	uint32_t dst_device;
	void *dst_array;
	void *dst_reserved;
	uint32_t dst_pitch, dst_height;
	uint32_t width_bytes, height, depth;
};

struct cu_kernel_node_params { /* CUDA_KERNEL_NODE_PARAMS_v2; _v1 ends before kern */
	void *func;
	uint32_t grid_x, grid_y, grid_z;
	uint32_t block_x, block_y, block_z;
	uint32_t shared_bytes;
	void **params;
	void **extra;
	void *kern;
	void *ctx;
};

struct cu_memset_node_params { /* CUDA_MEMSET_NODE_PARAMS_v2; _v1 ends before ctx */
	uint64_t dst;
	size_t pitch;
	uint32_t value, element_bytes;
	size_t width, height;
	void *ctx;
};

struct cu_host_node_params { /* CUDA_HOST_NODE_PARAMS */
	void *fn;
	void *user_data;
};

struct cu_memcpy_node_params { /* CUDA_MEMCPY_NODE_PARAMS */
	int flags, reserved;
	void *ctx;
	struct cu_memcpy3d copy;
};

struct cu_mem_location { /* CUmemLocation */
	int type, id;
};

struct cu_mem_access_desc { /* CUmemAccessDesc */
	struct cu_mem_location location;
	int flags;
};

struct cu_mem_allocation_prop { /* CUmemAllocationProp */
	int type, handle_types;
	struct cu_mem_location location;
	void *win32_meta;
	uint8_t compression, rdma_capable;
	uint16_t usage;
	uint8_t reserved[4];
};

struct cu_mem_pool_props { /* CUmemPoolProps */
	int type, handle_types;
	struct cu_mem_location location;
	void *win32_attributes;
	size_t max_bytes;
	uint16_t usage;
	uint8_t reserved[54];
};

struct cu_mem_alloc_node_params { /* CUDA_MEM_ALLOC_NODE_PARAMS */
	struct cu_mem_pool_props pool;
	const struct cu_mem_access_desc *access;
	size_t access_count;
	size_t bytes;
	uint64_t address;
};

struct cu_child_graph_node_params { /* CUDA_CHILD_GRAPH_NODE_PARAMS */
	void *graph;
	int ownership;
};

struct cu_graph_node_params { /* CUgraphNodeParams */
	int type;
	int reserved0[3];
	union {
		long long reserved1[29];
		struct cu_kernel_node_params kernel;
		struct cu_memcpy_node_params copy;
		struct cu_memset_node_params set;
		struct cu_host_node_params host;
		struct cu_child_graph_node_params graph;
		struct cu_mem_alloc_node_params alloc;
		void *event;
		uint64_t address;
	} u;
	long long reserved2;
};

struct cu_graph_edge { /* CUgraphEdgeData */
	uint8_t from_port, to_port, type;
	uint8_t reserved[5];
};

struct cu_graph_instantiate_params { /* CUDA_GRAPH_INSTANTIATE_PARAMS */
	uint64_t flags;
	void *upload_stream;
	void *error_node;
	int result;
};

struct cu_graph_update_info { /* CUgraphExecUpdateResultInfo */
	int result;
	void *error_node, *error_from_node;
};

struct cu_array_desc { /* CUDA_ARRAY_DESCRIPTOR */
	size_t width, height;
	int format;
	uint32_t channels;
};

struct cu_array3d_desc { /* CUDA_ARRAY3D_DESCRIPTOR */
	size_t width, height, depth;
	int format;
	uint32_t channels, flags;
};

#endif
