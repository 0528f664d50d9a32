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
#define ITEMS ((long)get_global_size(0))
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
#define CHOSEN(condition, x, y) select(y, x, condition)  // without a branch

// A number of float32 rounded to float16.
inline float HALF_OF(float x) {
    ushort bits;
    vstore_half_rte(x, 0, (half*)&bits);
    return vload_half(0, (const half*)&bits);
}
#define FLOATS_OF_BITS(x) as_float4(x)
#define READ_HALVES(p, i) vloada_half4(i, (GLOBAL const half*)(p))
#define WRITE_HALVES(p, i, v) vstorea_half4_rte(v, i, (GLOBAL half*)(p))
#define READ_WIDE(p) vload16(0, p)
#define WRITE_WIDE(p, v) vstore16(v, 0, p)
#define SIGNED_QUAD(x) as_long4(x)
#define UNSIGNED_QUAD(x) as_ulong4(x)
#define ALIGNED __attribute__((aligned(64)))
#define ADD_ONE(p) atomic_inc(p)
#define ADD_BITS(p, bits) atomic_or(p, bits)
#define COUNT_OF_BITS(x) popcount(x)
#define UNROLL _Pragma("unroll")
#define UNROLLED(n) TEXT(unroll n)
#define TEXT(text) _Pragma(#text)
