/*
 * The structures that the simulated driver reads and fills, compared with cuda.h.  The
 * compiler checks all of it: see structs.sh.
 */
#include <cuda.h>
#include "cuda_types.h"

#define SAME_SIZE(own, THEIRS) _Static_assert(sizeof(struct own) == sizeof(THEIRS), #own)
#define SAME_PLACE(own, field, theirs, member)                                                     \
	_Static_assert(offsetof(struct own, field) == offsetof(theirs, member), #own "." #field)

SAME_SIZE(cu_launch_config, CUlaunchConfig);
SAME_SIZE(cu_launch_attribute, CUlaunchAttribute);
SAME_SIZE(cu_memcpy2d, CUDA_MEMCPY2D);
SAME_SIZE(cu_memcpy3d, CUDA_MEMCPY3D);
SAME_SIZE(cu_memcpy3d, CUDA_MEMCPY3D_PEER);
SAME_SIZE(cu_kernel_node_params, CUDA_KERNEL_NODE_PARAMS_v2);
SAME_SIZE(cu_memset_node_params, CUDA_MEMSET_NODE_PARAMS_v2);
SAME_PLACE(cu_memset_node_params, element_bytes, CUDA_MEMSET_NODE_PARAMS_v2, elementSize);
SAME_PLACE(cu_memset_node_params, width, CUDA_MEMSET_NODE_PARAMS_v2, width);
_Static_assert(offsetof(struct cu_memset_node_params, ctx) == sizeof(CUDA_MEMSET_NODE_PARAMS_v1),
	"the first version ends before ctx");
SAME_SIZE(cu_host_node_params, CUDA_HOST_NODE_PARAMS_v1);
SAME_PLACE(cu_host_node_params, user_data, CUDA_HOST_NODE_PARAMS_v1, userData);
SAME_SIZE(cu_memcpy_node_params, CUDA_MEMCPY_NODE_PARAMS);
SAME_PLACE(cu_memcpy_node_params, copy, CUDA_MEMCPY_NODE_PARAMS, copyParams);
SAME_SIZE(cu_mem_location, CUmemLocation);
SAME_SIZE(cu_mem_access_desc, CUmemAccessDesc);
SAME_PLACE(cu_mem_access_desc, flags, CUmemAccessDesc, flags);
SAME_SIZE(cu_mem_allocation_prop, CUmemAllocationProp);
SAME_PLACE(cu_mem_allocation_prop, location, CUmemAllocationProp, location);
SAME_PLACE(cu_mem_allocation_prop, compression, CUmemAllocationProp, allocFlags);
SAME_SIZE(cu_mem_pool_props, CUmemPoolProps);
SAME_PLACE(cu_mem_pool_props, max_bytes, CUmemPoolProps, maxSize);
SAME_PLACE(cu_mem_pool_props, usage, CUmemPoolProps, usage);
SAME_SIZE(cu_mem_alloc_node_params, CUDA_MEM_ALLOC_NODE_PARAMS_v2);
SAME_PLACE(cu_mem_alloc_node_params, bytes, CUDA_MEM_ALLOC_NODE_PARAMS_v2, bytesize);
SAME_PLACE(cu_mem_alloc_node_params, address, CUDA_MEM_ALLOC_NODE_PARAMS_v2, dptr);
SAME_SIZE(cu_child_graph_node_params, CUDA_CHILD_GRAPH_NODE_PARAMS);
SAME_SIZE(cu_graph_node_params, CUgraphNodeParams);
SAME_PLACE(cu_graph_node_params, u, CUgraphNodeParams, kernel);
SAME_PLACE(cu_graph_node_params, reserved2, CUgraphNodeParams, reserved2);
SAME_SIZE(cu_graph_edge, CUgraphEdgeData);
SAME_SIZE(cu_graph_instantiate_params, CUDA_GRAPH_INSTANTIATE_PARAMS);
SAME_PLACE(cu_graph_instantiate_params, result, CUDA_GRAPH_INSTANTIATE_PARAMS, result_out);
SAME_SIZE(cu_graph_update_info, CUgraphExecUpdateResultInfo);
SAME_PLACE(cu_graph_update_info, error_from_node, CUgraphExecUpdateResultInfo, errorFromNode);
SAME_SIZE(cu_array_desc, CUDA_ARRAY_DESCRIPTOR);
SAME_PLACE(cu_array_desc, format, CUDA_ARRAY_DESCRIPTOR, Format);
SAME_SIZE(cu_array3d_desc, CUDA_ARRAY3D_DESCRIPTOR);
SAME_PLACE(cu_array3d_desc, flags, CUDA_ARRAY3D_DESCRIPTOR, Flags);
SAME_SIZE(cu_dev_resource, CUdevResource);
SAME_PLACE(cu_dev_resource, u, CUdevResource, sm);
SAME_PLACE(cu_dev_resource, u.sm.least, CUdevResource, sm.minSmPartitionSize);
SAME_PLACE(cu_dev_resource, u.sm.alignment, CUdevResource, sm.smCoscheduledAlignment);
