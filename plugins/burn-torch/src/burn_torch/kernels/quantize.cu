// Codes of floats, an element for each, with a scale for each row or for all: one block a row.
//
// Defined before, beside what numbers.cuh needs: LOW and HIGH, the range of codes; MODE.

#define ROWS 0          // scales of rows are computed, and written
#define LARGEST 1       // the largest magnitude of all is computed, and nothing else
#define FROM_LARGEST 2  // the scale of all is computed of that, and written
#define GIVEN_ONE 3     // a scale for all is read
#define GIVEN_ROWS 4    // scales of rows are read

// Between these, the quotient below is rounded as by a division (P. Markstein, "Computation of
// elementary functions on the IBM RISC System/6000 processor", 1990, theorem 3): of scales like
// this, a number for which the remainder is not exact has the code 0.
#define LEAST_ORDINARY 5.421011e-20f  // 2**-64
#define GREATEST_ORDINARY 1.8446744e19f  // 2**64
#define BEYOND_RANGE 131072.0f  // twice the largest float8: the remainder may overflow

__device__ __forceinline__ float quotient(float x, float scale, float inverse, bool is_ordinary) {
    float result;
    if (is_ordinary) {
        result = __fmul_rn(x, inverse);
        if (fabsf(result) < BEYOND_RANGE && result != 0.0f)  // -0.0 keeps its sign
            result = __fmaf_rn(__fmaf_rn(-result, scale, x), inverse, result);
    } else {
        result = __fdiv_rn(x, scale);
    }
    result = result != result || scale == 0.0f ? 0.0f : result;  // the code of NaN is 0
    return fminf(fmaxf(result, LOW), HIGH);
}

// The codes of two numbers, that of the first one in the lower byte.
__device__ __forceinline__ u32 encode(float first, float second) {
#ifdef FLOAT8
    u16 result;
    asm("cvt.rn.satfinite." FLOAT8 "x2.f32 %0, %1, %2;" : "=h"(result) : "f"(second), "f"(first));
    return result;
#else
    return ((u32)__float2int_rn(first) & 0xffu) | (((u32)__float2int_rn(second) & 0xffu) << 8);
#endif
}

// The bits of the largest magnitude of a row: they have the order of numbers, and NaN is above all.
__device__ __forceinline__ u32 largest_of(const u8* row, int count) {
    __shared__ u32 of_warps[THREADS / 32];
    float numbers[WIDTH];
    u32 magnitude = 0;
    for (int i = threadIdx.x * WIDTH; i < count; i += THREADS * WIDTH) {
        load(row + (size_t)i * FLOAT_BYTES, numbers);
        #pragma unroll
        for (int j = 0; j < WIDTH; j++)
            magnitude = max(magnitude, __float_as_uint(numbers[j]) & 0x7fffffffu);
    }
    #pragma unroll
    for (int offset = 16; offset > 0; offset /= 2)
        magnitude = max(magnitude, __shfl_xor_sync(0xffffffffu, magnitude, offset));
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = magnitude;
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < THREADS / 32; i++) magnitude = max(magnitude, of_warps[i]);
    return magnitude;
}

// All rows together have `total` numbers, of which the last row may have fewer than `length`.
extern "C" __global__ void __launch_bounds__(THREADS) quantize(
    const u8* x, u8* values, float* scales, u32* largest, int length, int total
) {
    const size_t start = (size_t)blockIdx.x * length;
    const int count = min((size_t)length, total - start);
    const u8* row = x + start * FLOAT_BYTES;
#if MODE == LARGEST
    const u32 magnitude = largest_of(row, count);
    if (threadIdx.x == 0) atomicMax(largest, magnitude);
#else
#if MODE == ROWS || MODE == FROM_LARGEST
    const bool is_first = threadIdx.x == 0 && (MODE == ROWS || blockIdx.x == 0);
    const u32 magnitude = MODE == ROWS ? largest_of(row, count) : *largest;
    const float scale = __fdiv_rn(__uint_as_float(magnitude), (HIGH - LOW) / 2.0f);
    if (is_first) scales[blockIdx.x] = scale;
#else
    const float scale = scales[MODE == GIVEN_ROWS ? blockIdx.x : 0];
#endif
    const bool is_ordinary = scale >= LEAST_ORDINARY && scale <= GREATEST_ORDINARY;
    const float inverse = __fdiv_rn(1.0f, scale);
    float numbers[WIDTH];
    for (int i = threadIdx.x * WIDTH; i < count; i += THREADS * WIDTH) {
        load(row + (size_t)i * FLOAT_BYTES, numbers);
        #pragma unroll
        for (int j = 0; j < WIDTH; j++)
            numbers[j] = quotient(numbers[j], scale, inverse, is_ordinary);
        uint2 words;
        words.x = encode(numbers[0], numbers[1]) | (encode(numbers[2], numbers[3]) << 16);
        words.y = encode(numbers[4], numbers[5]) | (encode(numbers[6], numbers[7]) << 16);
        *(uint2*)(values + start + i) = words;
    }
#endif
}
