// Numbers to codes and scales, and back. All elements lie densely, and a run of them shares a scale.
//
// X: the numbers. S: scales. CODE: 0 for integers in two's complement, 1 for E4M3. BITS of a code.
// UNIT: codes that a thread computes at once, all of one run. LANES, PACKS: of a run that is kept in
// registers, its threads and the units of each. HAS_...: the kernels to compile.
//
// A quotient or product is rounded once, as IEEE 754 says: the results are those of other devices.

#include "early.cuh"

typedef typename Computed<X>::type C;
typedef Pack<X, UNIT> Numbers;
constexpr int BYTES = UNIT * BITS / 8;
struct alignas(BYTES % 16 == 0 ? 16 : BYTES) Codes {
    unsigned char bytes[BYTES];
};

template <class N>
struct Bits {
    typedef uint32 type;
};
template <>
struct Bits<double> {
    typedef uint64 type;
};
typedef typename Bits<C>::type Word;
__device__ __forceinline__ uint32 bits_of(float x) { return float_as_bits(x); }
__device__ __forceinline__ uint64 bits_of(double x) { return double_as_bits(x); }
__device__ __forceinline__ float from_bits(uint32 bits) { return bits_as_float(bits); }
__device__ __forceinline__ double from_bits(uint64 bits) { return bits_as_double(bits); }

// Bits of a magnitude: they are in the order of the numbers, and those of NaN are the largest.
__device__ __forceinline__ Word magnitude_of(C x) {
    const Word bits = bits_of(x);
    return bits << 1 >> 1;
}
__device__ __forceinline__ Word larger(Word x, Word y) { return x < y ? y : x; }

// The nearest code of a number, halves to the even one; 0 of NaN. Its bits above BITS may be set.
__device__ __forceinline__ int encoded(C x, C low, C high) {
    if (x != x) return 0;
#if CODE == 0
    const C rounded = rint(x);
    return (int)(rounded < low ? low : rounded > high ? high : rounded);
#else
    const float number = (float)x, magnitude = fabs(number) > (float)high ? (float)high : fabs(number);
    const int sign = (int)(float_as_bits(number) >> 31 << 7);
    if (magnitude < 0.015625f) return sign | (int)rint(magnitude * 512.0f);
    const uint32 bits = float_as_bits(magnitude);
    return sign | (int)(((bits + 0x7ffffu + ((bits >> 20) & 1u)) >> 20) - 960u);
#endif
}
__device__ __forceinline__ float decoded(int code) {
#if CODE == 0
    return (float)(code << (32 - BITS) >> (32 - BITS));
#else
    const uint32 magnitude = (uint32)code & 0x7fu, sign = ((uint32)code & 0x80u) << 24;
    if (magnitude == 0x7fu) return bits_as_float(0x7fc00000u);
    const float number =
        magnitude < 8 ? (float)magnitude * 0.001953125f : bits_as_float((magnitude << 20) + 0x3c000000u);
    return bits_as_float(float_as_bits(number) | sign);
#endif
}

__device__ __forceinline__ void set_code(Codes& codes, int i, int code) {
    const int shift = i * BITS % 8, mask = (1 << BITS) - 1;
    const int before = shift ? codes.bytes[i * BITS / 8] : 0;
    codes.bytes[i * BITS / 8] = (unsigned char)(before | (code & mask) << shift);
}
__device__ __forceinline__ int code_of(const Codes& codes, int i) {
    return codes.bytes[i * BITS / 8] >> (i * BITS % 8);
}

__device__ __forceinline__ bool is_infinite(C x) {
    return fabs(x) == (C)bits_as_float(0x7f800000u);
}
// The greatest number of a code whose product with a scale is not infinite, if the scale is finite.
__device__ __forceinline__ C greatest_number(C scale, C most) {
    while (is_infinite(most * scale) && most > (C)1)
        most = CODE == 0 ? most - (C)1 : (C)decoded(encoded(most, -most, most) - 1);
    return most;
}
__device__ __forceinline__ Codes encoded_unit(const Numbers& numbers, C scale, C low, C high) {
    const C most = greatest_number(scale, high > -low ? high : -low);
    low = low < -most ? -most : low;
    high = high > most ? most : high;
    Codes codes;
#pragma unroll
    for (int i = 0; i < UNIT; ++i) {
        const C x = load(numbers.values[i]);
        set_code(codes, i, scale == (C)0 ? 0 : encoded(x / scale, low, high));
    }
    return codes;
}

// Codes of numbers that are at most `high` times the scale, or little more, where the reciprocal of the
// scale is no extreme number. The quotient is rounded as a division rounds it (Markstein, 1990).
__device__ __forceinline__ bool is_moderate(C scale) {
    return scale > (C)8.673617379884035e-19 && scale < (C)1.152921504606847e18;  // 2^-60, 2^60
}
__device__ __forceinline__ C quotient_of(C x, C scale, C reciprocal) {
    C result = x * reciprocal;
#pragma unroll
    for (int i = 0; i < 2; ++i) result = fma(fma(-result, scale, x), reciprocal, result);
    return CODE == 0 ? result : copysign(result, x);  // E4M3 has a -0, which a sum has not
}
__device__ __forceinline__ uint32 nearest_bits(float x) { return float_as_bits(x + 12582912.0f); }
__device__ __forceinline__ uint32 nearest_bits(double x) {
    return (uint32)double_as_bits(x + 6755399441055744.0);
}
__device__ __forceinline__ Codes encoded_moderate(
    const Numbers& numbers, C scale, C reciprocal, C low, C high) {
    Codes codes;
    C quotients[UNIT];
#pragma unroll
    for (int i = 0; i < UNIT; ++i)
        quotients[i] = quotient_of((C)load(numbers.values[i]), scale, reciprocal);
#if CODE == 1 && !defined(BURN_EMULATED) && __CUDA_ARCH__ >= 890
#pragma unroll
    for (int i = 0; i + 1 < UNIT; i += 2) {
        unsigned short pair;
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;"
            : "=h"(pair) : "f"((float)quotients[i + 1]), "f"((float)quotients[i]));
        codes.bytes[i] = (unsigned char)pair, codes.bytes[i + 1] = (unsigned char)(pair >> 8);
    }
    if (UNIT % 2) codes.bytes[UNIT - 1] = (unsigned char)encoded(quotients[UNIT - 1], low, high);
#elif CODE == 1
#pragma unroll
    for (int i = 0; i < UNIT; ++i) set_code(codes, i, encoded(quotients[i], low, high));
#else
    // The sum with 1.5 * 2^(bits behind the point) has the nearest integer in its lowest bits.
#pragma unroll
    for (int i = 0; i < UNIT; ++i) {
        const C x = quotients[i];
        set_code(codes, i, (int)nearest_bits(x < low ? low : x > high ? high : x));
    }
#endif
    return codes;
}

// The largest number of a type at most; infinities and NaN stay.
__device__ __forceinline__ C at_most(C x, uint32 largest) {
    const C bound = (C)bits_as_float(largest);
    return x > bound && x < (C)bits_as_float(0x7f800000u) ? bound : x;
}
// The least number of type S that is not below a scale, which is not negative, or NaN.
__device__ __forceinline__ float rounded_up(float, float x) { return x; }
__device__ __forceinline__ float16 rounded_up(float16, C x) {
    x = at_most(x, 0x477fe000u);  // 65504
    float16 found = convert<float16>(x);
    if ((C)load(found) < x) ++found.bits;
    return found;
}
__device__ __forceinline__ bfloat16 rounded_up(bfloat16, C x) {
    x = at_most(x, 0x7f7f0000u);
    bfloat16 found = convert<bfloat16>(x);
    if ((C)load(found) < x) ++found.bits;
    return found;
}
__device__ __forceinline__ float rounded_up(float, double x) {
    const double bound = bits_as_float(0x7f7fffffu);
    if (x > bound && x < (double)bits_as_float(0x7f800000u)) x = bound;
    const float found = (float)x;
    return (double)found < x ? bits_as_float(float_as_bits(found) + 1u) : found;
}

__device__ __forceinline__ Word largest_of(const Numbers& numbers) {
    Word result = 0;
#pragma unroll
    for (int i = 0; i < UNIT; ++i) result = larger(result, magnitude_of((C)load(numbers.values[i])));
    return result;
}
// The largest of the lanes of a run, or of a warp where a run has more.
__device__ __forceinline__ Word largest_of_lanes(Word mine) {
#pragma unroll
    for (int step = LANES < 32 ? LANES / 2 : 16; step > 0; step /= 2)
        mine = larger(mine, __shfl_xor_sync(0xffffffffu, mine, step));
    return mine;
}
// The largest of all threads of a block.
__device__ __forceinline__ Word largest_of_block(Word mine, Word* shared) {
    mine = largest_of_lanes(mine);
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = mine;
    __syncthreads();
    Word result = shared[0];
    for (int i = 1; i < (int)blockDim.x / 32; ++i) result = larger(result, shared[i]);
    return result;
}

#ifdef HAS_quantize
extern "C" __global__ void quantize(
    const Numbers* __restrict__ x, const S* __restrict__ scales, const float* __restrict__ overall,
    Codes* __restrict__ codes, double low, double high, int64 units, int64 divider) {
    const int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= units) return;
    C scale = (C)load(scales[quotient((uint32)i, (uint64)divider)]);
    if (overall) scale = scale * (C)overall[0];
    codes[i] = encoded_unit(x[i], scale, (C)low, (C)high);
}
#endif

#ifdef HAS_dequantize
extern "C" __global__ void dequantize(
    const Codes* __restrict__ codes, const S* __restrict__ scales,
    const float* __restrict__ overall, Numbers* __restrict__ out, int64 units, int64 divider) {
    const int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= units) return;
    C scale = (C)load(scales[quotient((uint32)i, (uint64)divider)]);
    if (overall) scale = scale * (C)overall[0];
    const Codes unit = codes[i];
    Numbers numbers;
#pragma unroll
    for (int j = 0; j < UNIT; ++j)
        numbers.values[j] = convert<X>((C)decoded(code_of(unit, j)) * scale);
    out[i] = numbers;
}
#endif

#ifdef HAS_quantize_runs
// Runs of at most LANES * PACKS units, of which a block has blockDim.x / LANES.
extern "C" __global__ void quantize_runs(
    const Numbers* __restrict__ x, Codes* __restrict__ codes, S* __restrict__ scales, double low,
    double high, double half, int64 runs, int64 units) {
    let_next_start();
    wait_for_kernel_before();
    __shared__ Word shared[32];
    const int lane = threadIdx.x % LANES;
    const int64 run = (int64)blockIdx.x * (blockDim.x / LANES) + threadIdx.x / LANES;
    Numbers numbers[PACKS];
    Word largest = 0;
#pragma unroll
    for (int i = 0; i < PACKS; ++i) {
        const int64 unit = i * LANES + lane;
        if (run < runs && unit < units) {
            numbers[i] = x[run * units + unit];
            largest = larger(largest, largest_of(numbers[i]));
        }
    }
    largest = LANES > 32 ? largest_of_block(largest, shared) : largest_of_lanes(largest);
    if (run >= runs) return;
    const S stored = rounded_up(S(), from_bits(largest) / (C)half);
    if (lane == 0) scales[run] = stored;
    const C scale = (C)load(stored), reciprocal = (C)1 / scale;
    const bool moderate = is_moderate(scale);
#pragma unroll
    for (int i = 0; i < PACKS; ++i) {
        const int64 unit = i * LANES + lane;
        if (unit >= units) continue;
        if (moderate)
            codes[run * units + unit] =
                encoded_moderate(numbers[i], scale, reciprocal, (C)low, (C)high);
        else
            codes[run * units + unit] = encoded_unit(numbers[i], scale, (C)low, (C)high);
    }
}
#endif

#ifdef HAS_quantize_all
// The largest magnitude of the units of each block.
extern "C" __global__ void largest_magnitudes(
    const Numbers* __restrict__ x, Word* __restrict__ parts, int64 units) {
    let_next_start();
    wait_for_kernel_before();
    __shared__ Word shared[32];
    Word largest = 0;
    const int64 all = (int64)gridDim.x * blockDim.x;
#pragma unroll 4
    for (int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x; i < units; i += all)
        largest = larger(largest, largest_of(x[i]));
    largest = largest_of_block(largest, shared);
    if (threadIdx.x == 0) parts[blockIdx.x] = largest;
}
// Codes by the largest of these: each block finds it for itself.
extern "C" __global__ void quantize_all(
    const Numbers* __restrict__ x, const Word* __restrict__ parts, Codes* __restrict__ codes,
    S* __restrict__ scales, double low, double high, double half, int64 units, int64 count) {
    let_next_start();
    wait_for_kernel_before();
    __shared__ Word shared[32];
    Word largest = 0;
    for (int i = threadIdx.x; i < (int)count; i += blockDim.x) largest = larger(largest, parts[i]);
    largest = largest_of_block(largest, shared);
    const S stored = rounded_up(S(), from_bits(largest) / (C)half);
    if (blockIdx.x == 0 && threadIdx.x == 0) scales[0] = stored;
    const C scale = (C)load(stored), reciprocal = (C)1 / scale;
    const bool moderate = is_moderate(scale);
    const int64 all = (int64)gridDim.x * blockDim.x;
#pragma unroll 2
    for (int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x; i < units; i += all) {
        if (moderate)
            codes[i] = encoded_moderate(x[i], scale, reciprocal, (C)low, (C)high);
        else
            codes[i] = encoded_unit(x[i], scale, (C)low, (C)high);
    }
}
#endif

#ifdef HAS_scale_product
// Products of codes as sums of type A, times the scales of their rows and columns, plus a bias.
extern "C" __global__ void scale_product(
    const A* __restrict__ sums, const S* __restrict__ row_scales,
    const SB* __restrict__ column_scales, const X* __restrict__ bias, X* __restrict__ out,
    int64 row_step, int64 column_step, int64 columns, int64 units, int64 divider) {
    let_next_start();
    wait_for_kernel_before();
    const int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= units) return;
    const uint32 row = quotient((uint32)i, (uint64)divider);
    const int64 column = i * UNIT - row * columns;
    const C scale = (C)load(row_scales[row * row_step]);
    const Pack<A, UNIT> unit = reinterpret_cast<const Pack<A, UNIT>*>(sums)[i];
    Pack<SB, UNIT> factors;
    Numbers numbers, added;
    if (column_step) factors = *reinterpret_cast<const Pack<SB, UNIT>*>(column_scales + column);
    if (bias) added = *reinterpret_cast<const Numbers*>(bias + column);
#pragma unroll
    for (int j = 0; j < UNIT; ++j) {
        const C factor = (C)load(column_step ? factors.values[j] : column_scales[0]) * scale;
        C number = (C)unit.values[j] * factor;
        if (bias) number += (C)load(added.values[j]);
        numbers.values[j] = convert<X>(number);
    }
    reinterpret_cast<Numbers*>(out)[i] = numbers;
}
#endif
