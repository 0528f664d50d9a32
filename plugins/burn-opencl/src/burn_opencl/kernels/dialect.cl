// What is OpenCL in the kernels. For another runtime with kernels in C this file is written anew.

#ifdef HAS_FP64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

// A product and a sum are rounded one after the other, as on all backends; `fma` is said as such.
#pragma OPENCL FP_CONTRACT OFF

#define KERNEL(SIZE) __kernel __attribute__((reqd_work_group_size(SIZE, 1, 1)))
#define GLOBAL __global
#define LOCAL __local
#define ITEM ((long)get_global_id(0))
#define LANE ((int)get_local_id(0))
#define GROUP ((long)get_group_id(0))
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)

#define BITS_OF_FLOAT(x) as_uint(x)
#define FLOAT_OF_BITS(x) as_float(x)
#define BITS_OF_DOUBLE(x) as_ulong(x)
#define DOUBLE_OF_BITS(x) as_double(x)
#define READ_HALF(p, i) vload_half(i, (GLOBAL const half*)(p))
#define WRITE_HALF(p, i, v) vstore_half_rte(v, i, (GLOBAL half*)(p))
#define HIGH_PRODUCT(x, y) mul_hi(x, y)
