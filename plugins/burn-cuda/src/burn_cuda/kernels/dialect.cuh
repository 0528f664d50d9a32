// CUDA C++ for the shared kernel sources of core (burn/shared_kernels), after generated.cuh.

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef long long int64;
typedef unsigned long long uint64;

#define HAS_FP64 1
#define KERNEL(SIZE) extern "C" __global__ __launch_bounds__(SIZE)
#define GROUP_ITEMS 256
#define FUNCTION __device__ __forceinline__
#define GLOBAL
#define LOCAL __shared__
#define restrict __restrict__
#define ITEM ((int64)blockIdx.x * blockDim.x + threadIdx.x)
#define ITEMS ((int64)gridDim.x * blockDim.x)
#define LANE ((int)threadIdx.x)
#define GROUP ((int64)blockIdx.x)
#define BARRIER __syncthreads()
#define UNROLL _Pragma("unroll")
#define UNROLLED(n) TEXT(unroll n)
#define TEXT(text) _Pragma(#text)

#define FLOAT_AS_UINT(x) float_as_bits(x)
#define UINT_AS_FLOAT(x) bits_as_float(x)
#define ULONG_AS_DOUBLE(x) bits_as_double(x)
#define READ_HALF(p, i) half_as_float(((const ushort*)(p))[i])
#define WRITE_HALF(p, i, x) ((ushort*)(p))[i] = float_as_half(x)
#define ROUND_TO_HALF(x) half_as_float(float_as_half(x))
#define BFLOAT16_BITS(x) float_as_bfloat(x)
#define MUL_HI(x, y) high_product(x, y)
#define MULTIPLY_ADD(x, y, z) fused(x, y, z)
#define SINE_AND_COSINE(turn, sine, cosine) sincospi((turn) + (turn), &sine, &cosine);
// The numbers of a launch may be addresses: of what a captured program reads anew in each run.
#define NUMBERS_AT(address) ((const int64*)(address))

#ifdef BURN_EMULATED
FUNCTION double bits_as_double(uint64 bits) { return emulated_as_double(bits); }
#else
FUNCTION double bits_as_double(uint64 bits) { return __longlong_as_double((int64)bits); }
#endif
#ifdef __HIP__
FUNCTION void sincospi(float x, float* sine, float* cosine) { sincospif(x, sine, cosine); }
#endif
FUNCTION uint high_product(uint x, uint y) { return __umulhi(x, y); }
FUNCTION uint64 high_product(uint64 x, uint64 y) { return __umul64hi(x, y); }
