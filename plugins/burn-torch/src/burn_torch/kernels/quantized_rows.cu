// Codes of a matrix of floats, and a scale for each row if none is given: one block a row.
//
// Defined before: INPUT_BITS (16 or 32) and IS_BFLOAT16 of the numbers; LOW and HIGH, the range of
// codes; CONVERSION, the instruction to float8, if codes are such.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;

#define THREADS 256
#define WIDTH 8  // numbers that a thread reads at once

// Between these, the quotient below is rounded as by a division (P. Markstein, "Computation of
// elementary functions on the IBM RISC System/6000 processor", 1990, theorem 3): of scales like
// this, a number for which the remainder is not exact has the code 0.
#define LEAST_ORDINARY 5.421011e-20f  // 2**-64
#define GREATEST_ORDINARY 1.8446744e19f  // 2**64
#define BEYOND_RANGE 131072.0f  // twice the largest float8: the remainder may overflow

__device__ __forceinline__ float number(u32 bits) {
#if IS_BFLOAT16
    return __uint_as_float(bits << 16);
#else
    float result;
    asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"((u16)bits));
    return result;
#endif
}

__device__ __forceinline__ void load(const u8* x, float* numbers) {
    const uint4 words = *(const uint4*)x;
    const u32 first[4] = {words.x, words.y, words.z, words.w};
#if INPUT_BITS == 16
    #pragma unroll
    for (int i = 0; i < 4; i++) {
        numbers[2 * i] = number(first[i] & 0xffffu);
        numbers[2 * i + 1] = number(first[i] >> 16);
    }
#else
    const uint4 others = *(const uint4*)(x + 16);
    const u32 second[4] = {others.x, others.y, others.z, others.w};
    #pragma unroll
    for (int i = 0; i < 4; i++) {
        numbers[i] = __uint_as_float(first[i]);
        numbers[4 + i] = __uint_as_float(second[i]);
    }
#endif
}

__device__ __forceinline__ float quotient(float x, float scale, float inverse, bool is_ordinary) {
    float result;
    if (is_ordinary) {
        result = __fmul_rn(x, inverse);
        if (fabsf(result) < BEYOND_RANGE)
            result = __fmaf_rn(__fmaf_rn(-result, scale, x), inverse, result);
    } else {
        result = __fdiv_rn(x, scale);
    }
    result = result != result || scale == 0.0f ? 0.0f : result;  // the code of NaN is 0
    return fminf(fmaxf(result, LOW), HIGH);
}

// The codes of two numbers, that of the first one in the lower byte.
__device__ __forceinline__ u32 codes(float first, float second) {
#ifdef CONVERSION
    u16 result;
    asm(CONVERSION " %0, %1, %2;" : "=h"(result) : "f"(second), "f"(first));
    return result;
#else
    return ((u32)__float2int_rn(first) & 0xffu) | (((u32)__float2int_rn(second) & 0xffu) << 8);
#endif
}

// `stride` is from one row's scale to the next one's; where it is negative, scales are written.
// All rows together have `total` numbers, of which the last row may have fewer than `length`.
extern "C" __global__ void __launch_bounds__(THREADS) quantized_rows(
    const u8* x, u8* values, float* scales, int length, int total, int stride
) {
    __shared__ u32 largest[THREADS / 32];
    const size_t start = (size_t)blockIdx.x * length;
    const int count = min((size_t)length, total - start);
    const u8* row = x + start * (INPUT_BITS / 8);
    float numbers[WIDTH];
    float scale;
    if (stride < 0) {
        u32 magnitude = 0;  // bits of absolute values have their order, and NaN is above all
        for (int i = threadIdx.x * WIDTH; i < count; i += THREADS * WIDTH) {
            load(row + (size_t)i * (INPUT_BITS / 8), numbers);
            #pragma unroll
            for (int j = 0; j < WIDTH; j++)
                magnitude = max(magnitude, __float_as_uint(numbers[j]) & 0x7fffffffu);
        }
        #pragma unroll
        for (int offset = 16; offset > 0; offset /= 2)
            magnitude = max(magnitude, __shfl_xor_sync(0xffffffffu, magnitude, offset));
        if (threadIdx.x % 32 == 0) largest[threadIdx.x / 32] = magnitude;
        __syncthreads();
        #pragma unroll
        for (int i = 0; i < THREADS / 32; i++) magnitude = max(magnitude, largest[i]);
        scale = __fdiv_rn(__uint_as_float(magnitude), (HIGH - LOW) / 2.0f);
        if (threadIdx.x == 0) scales[blockIdx.x] = scale;
    } else {
        scale = scales[(size_t)blockIdx.x * stride];
    }
    const bool is_ordinary = scale >= LEAST_ORDINARY && scale <= GREATEST_ORDINARY;
    const float inverse = __fdiv_rn(1.0f, scale);
    for (int i = threadIdx.x * WIDTH; i < count; i += THREADS * WIDTH) {
        load(row + (size_t)i * (INPUT_BITS / 8), numbers);
        #pragma unroll
        for (int j = 0; j < WIDTH; j++)
            numbers[j] = quotient(numbers[j], scale, inverse, is_ordinary);
        uint2 words;
        words.x = codes(numbers[0], numbers[1]) | (codes(numbers[2], numbers[3]) << 16);
        words.y = codes(numbers[4], numbers[5]) | (codes(numbers[6], numbers[7]) << 16);
        *(uint2*)(values + start + i) = words;
    }
}
