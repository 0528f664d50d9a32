// OpenCL C for the kernel sources, those of this plugin and the shared ones of core (burn/shared_kernels).

#ifdef HAS_FP64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

// Products and sums are rounded separately, as on all backends, except where a kernel calls `fma`.
#pragma OPENCL FP_CONTRACT OFF

typedef long int64;
typedef ulong uint64;

#define FUNCTION inline
#define GROUP_ITEMS 64
#define KERNEL(SIZE) __kernel __attribute__((reqd_work_group_size(SIZE, 1, 1)))
#define GLOBAL __global
#define LOCAL __local
#define ITEM ((long)get_global_id(0))
#define ITEMS ((long)get_global_size(0))
#define LANE ((int)get_local_id(0))
#define GROUP ((long)get_group_id(0))
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)

#define FLOAT_AS_UINT(x) as_uint(x)
#define UINT_AS_FLOAT(x) as_float(x)
#define DOUBLE_AS_ULONG(x) as_ulong(x)
#define ULONG_AS_DOUBLE(x) as_double(x)
#define READ_HALF(p, i) vload_half(i, (GLOBAL const half*)(p))
#define WRITE_HALF(p, i, v) vstore_half_rte(v, i, (GLOBAL half*)(p))
#define MUL_HI(x, y) mul_hi(x, y)
#define MULTIPLY_ADD(x, y, z) ((x) * (y) + (z))
#define SINE_AND_COSINE(turn, sine, cosine)       \
    const C angle = (turn) * (C)6.283185307179586; \
    sine = sin(angle);                            \
    cosine = cos(angle);

// Rounds float32 to float16.
inline float ROUND_TO_HALF(float x) {
    ushort bits;
    vstore_half_rte(x, 0, (half*)&bits);
    return vload_half(0, (const half*)&bits);
}
#define UINT4_AS_FLOAT4(x) as_float4(x)
#define READ_HALF4(p, i) vloada_half4(i, (GLOBAL const half*)(p))
#define WRITE_HALF4(p, i, v) vstorea_half4_rte(v, i, (GLOBAL half*)(p))
#define LOAD_VEC16(p) vload16(0, p)
#define STORE_VEC16(p, v) vstore16(v, 0, p)
#define AS_LONG4(x) as_long4(x)
#define AS_ULONG4(x) as_ulong4(x)
#define ALIGNED __attribute__((aligned(64)))
#define ATOMIC_INC(p) atomic_inc(p)
#define ATOMIC_OR(p, bits) atomic_or(p, bits)
#define POPCOUNT(x) popcount(x)
#define UNROLL _Pragma("unroll")
#define UNROLLED(n) TEXT(unroll n)
#define TEXT(text) _Pragma(#text)
