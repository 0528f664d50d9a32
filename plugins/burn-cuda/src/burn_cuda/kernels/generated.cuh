// What every generated kernel begins with: the bits of numbers, and conversions to 16 bits.

#ifdef BURN_EMULATED
__device__ inline unsigned int float_as_bits(float x) { return emulated_as_bits(x); }
__device__ inline float bits_as_float(unsigned int bits) { return emulated_as_float(bits); }
__device__ inline float half_as_float(unsigned short bits) { return emulated_from_half(bits); }
__device__ inline unsigned short float_as_half(float x) { return emulated_to_half(x); }
#else
__device__ __forceinline__ unsigned int float_as_bits(float x) { return __float_as_uint(x); }
__device__ __forceinline__ float bits_as_float(unsigned int bits) { return __uint_as_float(bits); }
#ifdef __HIP__
__device__ __forceinline__ float half_as_float(unsigned short bits) {
    return __builtin_bit_cast(_Float16, bits);
}
__device__ __forceinline__ unsigned short float_as_half(float x) {
    return __builtin_bit_cast(unsigned short, (_Float16)x);
}
#else
__device__ __forceinline__ float half_as_float(unsigned short bits) {
    float result;
    asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(bits));
    return result;
}
__device__ __forceinline__ unsigned short float_as_half(float x) {
    unsigned short result;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result) : "f"(x));
    return result;
}
#endif
#endif

// Sums of products have these; all else is compiled without fused multiply-adds.
__device__ __forceinline__ float fused(float x, float y, float z) { return fma(x, y, z); }
__device__ __forceinline__ double fused(double x, double y, double z) { return fma(x, y, z); }

// Rounds to nearest, ties to even.
__device__ __forceinline__ unsigned short float_as_bfloat(float x) {
#if !defined(BURN_EMULATED) && __CUDA_ARCH__ >= 800
    unsigned short result;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result) : "f"(x));
    return result;
#else
    const unsigned int bits = float_as_bits(x);
    if (x != x) return (unsigned short)((bits >> 16) | 0x40u);
    return (unsigned short)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
#endif
}
