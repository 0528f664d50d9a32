// Codes of floats, an element for each, with a scale for each row or for all: one block a row.
//
// Defined before, beside what numbers.cuh needs: LOW and HIGH, the range of codes; MODE; of FLOAT8 its
// bits of a MANTISSA.

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

#define HELD 2  // vectors of a row that a thread keeps, to read them once

__device__ __forceinline__ float quotient(float x, float scale, float inverse, bool is_ordinary) {
    float result;
    if (is_ordinary) {
        result = __fmul_rn(x, inverse);
        if (MODE <= FROM_LARGEST || fabsf(result) < BEYOND_RANGE)
            result = __fmaf_rn(__fmaf_rn(-result, scale, x), inverse, result);
        result = copysignf(result, x);  // that of -0.0 was lost
        if (MODE <= FROM_LARGEST) return result;  // neither NaN nor beyond the range
    } else {
        result = __fdiv_rn(x, scale);
    }
    return result != result || scale == 0.0f ? 0.0f : result;  // the code of NaN is 0
}

// The codes of two numbers, that of the first one in the lower byte.
__device__ __forceinline__ u32 encode(float first, float second) {
#ifdef FLOAT8
    u16 result;  // saturates
    asm("cvt.rn.satfinite." FLOAT8 "x2.f32 %0, %1, %2;" : "=h"(result) : "f"(second), "f"(first));
    return result;
#else
    // 1.5 * 2**23 plus a number is rounded to an integer, which the lowest bits are.
    const u32 low = __float_as_uint(fminf(fmaxf(first, LOW), HIGH) + 12582912.0f);
    const u32 high = __float_as_uint(fminf(fmaxf(second, LOW), HIGH) + 12582912.0f);
    return __byte_perm(low, high, 0x0040) & 0xffffu;
#endif
}

// The greatest number of a code whose product with a scale is not infinite, if the scale is finite.
__device__ __forceinline__ float greatest_number(float scale) {
    float most = fmaxf(HIGH, -LOW);
    while (isinf(most * scale) && most > 1.0f)
#ifdef FLOAT8
        most = __uint_as_float(__float_as_uint(most) - (1u << (23 - MANTISSA)));
#else
        most -= 1.0f;
#endif
    return most;
}

__device__ __forceinline__ void write(
    const Vector& x, u8* values, float scale, float inverse, bool is_ordinary
) {
    float numbers[WIDTH];
    convert(x, numbers);
    #pragma unroll
    for (int j = 0; j < WIDTH; j++)
        numbers[j] = quotient(numbers[j], scale, inverse, is_ordinary);
    if (!is_ordinary) {
        const float most = greatest_number(scale);
        #pragma unroll
        for (int j = 0; j < WIDTH; j++) numbers[j] = fminf(fmaxf(numbers[j], -most), most);
    }
    uint2 words;
    words.x = encode(numbers[0], numbers[1]) | (encode(numbers[2], numbers[3]) << 16);
    words.y = encode(numbers[4], numbers[5]) | (encode(numbers[6], numbers[7]) << 16);
    *(uint2*)values = words;
}

// The largest magnitude of a vector, and what is the largest so far: bits without signs have the
// order of numbers, and NaN is above all. Of 16 bits a word has the largest of each half.
__device__ __forceinline__ u32 larger(const Vector& x, u32 largest) {
    #pragma unroll
    for (int i = 0; i < FLOAT_BITS / 16; i++) {
        const u32 words[4] = {x.parts[i].x, x.parts[i].y, x.parts[i].z, x.parts[i].w};
        #pragma unroll
        for (int j = 0; j < 4; j++) {
#if FLOAT_BITS == 16
            largest = __vmaxu2(largest, words[j] & 0x7fff7fffu);
#else
            largest = max(largest, words[j] & 0x7fffffffu);
#endif
        }
    }
    return largest;
}

// The largest of all threads, as the bits of a float32.
__device__ __forceinline__ u32 largest_of_block(u32 largest) {
    __shared__ u32 of_warps[THREADS / 32];
#if FLOAT_BITS == 16
    largest = __float_as_uint(of_half(max(largest & 0xffffu, largest >> 16)));
#endif
    #pragma unroll
    for (int offset = 16; offset > 0; offset /= 2)
        largest = max(largest, __shfl_xor_sync(0xffffffffu, largest, offset));
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = largest;
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < THREADS / 32; i++) largest = max(largest, of_warps[i]);
    return largest;
}

// All rows together have `total` numbers, of which the last row may have fewer than `length`.
extern "C" __global__ void __launch_bounds__(THREADS) quantize(
    const u8* x, u8* values, float* scales, u32* largest, int length, int total
) {
    const size_t start = (size_t)blockIdx.x * length;
    const int count = min((size_t)length, total - start);
    const u8* row = x + start * FLOAT_BYTES;
    const int first = threadIdx.x * WIDTH, step = THREADS * WIDTH;
    Vector held[HELD];
    #pragma unroll
    for (int i = 0; i < HELD; i++)
        if (first + i * step < count) held[i] = load(row + (size_t)(first + i * step) * FLOAT_BYTES);
#if MODE == ROWS || MODE == LARGEST
    u32 magnitude = 0;
    #pragma unroll
    for (int i = 0; i < HELD; i++)
        if (first + i * step < count) magnitude = larger(held[i], magnitude);
    for (int i = first + HELD * step; i < count; i += step)
        magnitude = larger(load(row + (size_t)i * FLOAT_BYTES), magnitude);
    magnitude = largest_of_block(magnitude);
#endif
#if MODE == LARGEST
    if (threadIdx.x == 0) atomicMax(largest, magnitude);
#else
#if MODE == FROM_LARGEST
    const u32 magnitude = *largest;
#endif
#if MODE == ROWS || MODE == FROM_LARGEST
    const float scale = __fdiv_rn(__uint_as_float(magnitude), (HIGH - LOW) / 2.0f);
    if (threadIdx.x == 0 && (MODE == ROWS || blockIdx.x == 0)) scales[blockIdx.x] = scale;
#else
    const float scale = scales[MODE == GIVEN_ROWS ? blockIdx.x : 0];
#endif
    const bool is_ordinary = scale >= LEAST_ORDINARY && scale <= GREATEST_ORDINARY;
    const float inverse = __fdiv_rn(1.0f, scale);
    u8* own = values + start;
    #pragma unroll
    for (int i = 0; i < HELD; i++)
        if (first + i * step < count)
            write(held[i], own + first + i * step, scale, inverse, is_ordinary);
    for (int i = first + HELD * step; i < count; i += step)
        write(load(row + (size_t)i * FLOAT_BYTES), own + i, scale, inverse, is_ordinary);
#endif
}
