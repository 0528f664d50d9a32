// Products of few rows with a quantized weight of shape (columns, terms), whose codes lie densely:
// out[m][n] = bias[n] + factor[n] * sum over k of x[m][k] * codes[n][k] (* the scale of the block).
//
// X: elements of x and out. T: what tensor cores multiply, X or bfloat16 for float32, which is split
// into three of them (PLANES). S: scales. BITS of a code, in two's complement; FLOAT8: codes are E4M3.
// BLOCK: codes of a scale, 0 where a row or all of the weight has one. SCALES: scales of a chunk that
// are loaded at once. MAX_ROWS: the most rows of x. SPLIT: warps that share the terms of a tile of 16
// columns, whose sums are added at the end, in order.
//
// Codes are the left operand of tensor cores, where small integers and E4M3 are exact, and their scale
// multiplies the sums of a block in float32. A lane loads 16 bytes of a row at once, but the terms of
// one instruction come from four lanes: with blocks, these exchange words, so that all are of one block.

#define THREADS (32 * SPLIT)
#include "tensor_cores.cuh"

constexpr int LANES = 32 * SPLIT;
constexpr int BLOCKS = MAX_ROWS <= 8 ? 1024 / LANES : 1;
constexpr int PER_WORD = 32 / BITS, PAIRS = PER_WORD / 2, STEPS = PER_WORD / 4;
constexpr int CHUNK = 16 * PER_WORD, GROUP = 4 * PER_WORD;
constexpr int TILE = 16, GROUPS = (MAX_ROWS + 7) / 8;
// Words between the rows of x in shared memory: lanes that load at once meet different banks.
constexpr int STEP = 16 * PAIRS + (BITS == 8 ? 8 : BITS == 4 ? 16 : 4);
constexpr int PIECES = (MAX_ROWS * 16 + 31) / 32;
constexpr int STAGED = PLANES * MAX_ROWS * STEP, SUMS = TILE * 8 * GROUPS;
constexpr int SHARED = STAGED > SUMS ? STAGED : SUMS;
typedef Pack<X, PER_WORD> Piece;

#if BITS == 8 && !FLOAT8
constexpr uint32 MASK = 0x00ff00ffu, FLIP = 0x00800080u;
#elif BITS == 4
constexpr uint32 MASK = 0x000f000fu, FLIP = 0x00080008u;
#else
constexpr uint32 MASK = 0x00030003u, FLIP = 0x00020002u;
#endif

// Pairs of 16-bit floats: a * b + c, rounded once. In all uses here the result is exact.
#ifdef BURN_EMULATED
__device__ inline uint32 multiply_add(uint32 a, uint32 b, uint32 c) {
    return convert_pair(low_of(a) * low_of(b) + low_of(c), high_of(a) * high_of(b) + high_of(c));
}
#else
__device__ __forceinline__ uint32 multiply_add(float16, uint32 a, uint32 b, uint32 c) {
    uint32 result;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
    return result;
}
__device__ __forceinline__ uint32 multiply_add(bfloat16, uint32 a, uint32 b, uint32 c) {
    uint32 result;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
    return result;
}
__device__ __forceinline__ uint32 multiply_add(uint32 a, uint32 b, uint32 c) {
    return multiply_add(T{0}, a, b, c);
}
#endif

template <class N>
struct Format;
template <>
struct Format<float16> {
    // 1024 has a unit in the last place of 1; E4M3 has 8 less as its bias, and 7 bits less behind.
    static constexpr uint32 ONE = 0x3c003c00u, ANCHOR = 0x64006400u, NAN_FACTOR = 0xf8u;
    static constexpr uint32 RAISE = 0x5c005c00u;
    static constexpr int SHIFT = 7;
};
template <>
struct Format<bfloat16> {
    // 128 has a unit in the last place of 1; E4M3 has 120 less as its bias, and 4 bits less behind.
    static constexpr uint32 ONE = 0x3f803f80u, ANCHOR = 0x43004300u, NAN_FACTOR = 0xffu;
    static constexpr uint32 RAISE = 0x7b807b80u;
    static constexpr int SHIFT = 4;
};
template <class N>
struct IsBfloat {
    static constexpr bool value = false;
};
template <>
struct IsBfloat<bfloat16> {
    static constexpr bool value = true;
};

// Codes i and i + PAIRS of a word as two numbers of type T.
__device__ __forceinline__ uint32 numbers(uint32 word, int i) {
    typedef Format<T> F;
    const uint32 v = word >> (BITS * i), minus = 0x80008000u;
#if FLOAT8
    const uint32 magnitude = v & 0x007f007fu;
    const uint32 is_nan = (magnitude + 0x00010001u) & 0x00800080u;
    const uint32 bits = (magnitude << F::SHIFT) | ((v & 0x00800080u) << 8) | is_nan * F::NAN_FACTOR;
    return multiply_add(bits, F::RAISE, minus);
#else
    if (BITS == 8 && IsBfloat<T>::value) {
        // bfloat16 has 7 bits behind the point: 128 + the lower bits, minus 128 or 256 by the sign.
        const uint32 lower = (v & 0x007f007fu) | F::ANCHOR;
        const uint32 upper = (v & 0x00800080u) | F::ANCHOR | minus;
        return multiply_add(lower, F::ONE, upper);
    }
    return multiply_add((v & MASK) ^ (F::ANCHOR | FLIP), F::ONE, F::ANCHOR | FLIP | minus);
#endif
}

// Exchanges words among four lanes: lane t has word t of each of them then.
__device__ __forceinline__ void transpose(uint32 words[4]) {
    const int lane = threadIdx.x;
#pragma unroll
    for (int step = 1; step <= 2; step *= 2) {
        const bool upper = lane & step;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if (i & step) continue;
            const uint32 sent = upper ? words[i] : words[i + step];
            const uint32 received = __shfl_xor_sync(0xffffffffu, sent, step);
            words[i] = upper ? received : words[i];
            words[i + step] = upper ? words[i + step] : received;
        }
    }
}

// What a lane has of a chunk of a tile: parts of rows lane / 4 and lane / 4 + 8, and their scales.
struct Part {
    uint32 words[2][4];
    Pack<S, SCALES> scales[2];
};

__device__ __forceinline__ Word128 load_once(const unsigned char* address) {
#ifdef BURN_EMULATED
    return *reinterpret_cast<const Word128*>(address);
#else
    Word128 result;
    asm("ld.global.nc.L1::no_allocate.v2.u64 {%0, %1}, [%2];"
        : "=l"(result.low), "=l"(result.high) : "l"(address));
    return result;
#endif
}

__device__ __forceinline__ void load_part(
    Part& part, const unsigned char* const rows[2], const S* const scales[2], int chunk,
    int row_bytes) {
    const int offset = chunk * 64 + (int)(threadIdx.x & 3) * 16;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const Word128 word = offset < row_bytes ? load_once(rows[i] + offset) : Word128{0, 0};
        part.words[i][0] = (uint32)word.low, part.words[i][1] = (uint32)(word.low >> 32);
        part.words[i][2] = (uint32)word.high, part.words[i][3] = (uint32)(word.high >> 32);
#if BLOCK
        const int index = chunk * CHUNK / BLOCK;
        part.scales[i] = *reinterpret_cast<const Pack<S, SCALES>*>(scales[i] + index);
#endif
    }
}

__device__ __forceinline__ void load_rows(
    Piece pieces[PIECES], const X* __restrict__ x, int chunk, int rows, int terms) {
    const int lane = threadIdx.x & 31, k = chunk * CHUNK + lane % 16 * PER_WORD;
#pragma unroll
    for (int i = 0; i < PIECES; ++i) {
        const int row = 2 * i + lane / 16;
        if (row < rows && k < terms) {
            pieces[i] = *reinterpret_cast<const Piece*>(x + (int64)row * terms + k);
        } else {
#pragma unroll
            for (int j = 0; j < PER_WORD; ++j) pieces[i].values[j] = convert<X>(0.0f);
        }
    }
}

// The number of a plane: float32 is the sum of three bfloat16, each of which has the next 8 bits.
__device__ __forceinline__ T plane_of(float x, int plane) {
#pragma unroll
    for (int i = 0; i < PLANES; ++i) {
        const uint32 bits = float_as_bits(x);
        const float upper = bits_as_float(bits & 0xffff0000u);
        const bool finite = (bits & 0x7f800000u) != 0x7f800000u;
        if (i == plane) {
            const unsigned short quiet = x != x ? 0x40u : 0u;
            return T{(unsigned short)((bits >> 16) | quiet)};
        }
        x = finite ? x - upper : 0.0f;
    }
    return T{0};
}
__device__ __forceinline__ T plane_of(T x, int) { return x; }

// Writes rows of x as the right operand needs them: the terms of a word of codes in pairs, and these
// where word `lane % 4` of a lane is, or without an exchange the words of the lane.
__device__ __forceinline__ void store_rows(uint32* staged, const Piece pieces[PIECES], int rows) {
    const int lane = threadIdx.x & 31, word = lane % 16;
    const int slot = BLOCK ? word : word % 4 * 4 + word / 4;
#pragma unroll
    for (int i = 0; i < PIECES; ++i) {
        const int row = 2 * i + lane / 16;
        if (row >= rows) continue;
#pragma unroll
        for (int plane = 0; plane < PLANES; ++plane) {
            Pack<uint32, PAIRS> pairs;
#pragma unroll
            for (int j = 0; j < PAIRS; ++j)
                pairs.values[j] = make_pair(plane_of(pieces[i].values[j], plane),
                    plane_of(pieces[i].values[j + PAIRS], plane));
            uint32* target = staged + (plane * MAX_ROWS + row) * STEP + slot * PAIRS;
            *reinterpret_cast<Pack<uint32, PAIRS>*>(target) = pairs;
        }
    }
}

__device__ __forceinline__ void add_part(
    float totals[GROUPS][4], Part& part, const uint32* staged, int rows) {
    const int lane = threadIdx.x & 31;
#if BLOCK
#pragma unroll
    for (int i = 0; i < 2; ++i) transpose(part.words[i]);
#endif
    float sums[GROUPS][4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        const bool starts = BLOCK && (BLOCK >= CHUNK ? j == 0 : j * GROUP % (BLOCK ? BLOCK : 1) == 0);
        if (starts || (BLOCK == 0 && j == 0))
#pragma unroll
            for (int group = 0; group < GROUPS; ++group)
#pragma unroll
                for (int i = 0; i < 4; ++i) sums[group][i] = BLOCK ? 0.0f : totals[group][i];
        uint32 left[STEPS][4];
#pragma unroll
        for (int step = 0; step < STEPS; ++step)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                left[step][i] = numbers(part.words[i % 2][j], 2 * step + i / 2);
#pragma unroll
        for (int group = 0; group < GROUPS; ++group) {
            const int row = group * 8 + lane / 4;
#pragma unroll
            for (int plane = 0; plane < PLANES; ++plane) {
                Pack<uint32, PAIRS> right;
                if (row < rows) {
                    const uint32* source =
                        staged + (plane * MAX_ROWS + row) * STEP + (4 * j + lane % 4) * PAIRS;
                    right = *reinterpret_cast<const Pack<uint32, PAIRS>*>(source);
                } else {
#pragma unroll
                    for (int i = 0; i < PAIRS; ++i) right.values[i] = 0;
                }
#pragma unroll
                for (int step = 0; step < STEPS; ++step)
                    multiply(sums[group], left[step], right.values + 2 * step);
            }
        }
        const bool ends = j == 3 || (BLOCK && BLOCK < CHUNK && (j + 1) * GROUP % (BLOCK ? BLOCK : 1) == 0);
        if (ends) {
#if BLOCK
            constexpr int per_scale = BLOCK < CHUNK ? BLOCK : CHUNK;
            const float upper = load(part.scales[0].values[j * GROUP / per_scale]);
            const float lower = load(part.scales[1].values[j * GROUP / per_scale]);
#endif
#pragma unroll
            for (int group = 0; group < GROUPS; ++group)
#pragma unroll
                for (int i = 0; i < 4; ++i)
#if BLOCK
                    totals[group][i] += (i < 2 ? upper : lower) * sums[group][i];
#else
                    totals[group][i] = sums[group][i];
#endif
        }
    }
}

extern "C" __global__ void __launch_bounds__(LANES, BLOCKS) quantized_rows(
    const X* __restrict__ x, const unsigned char* __restrict__ codes, const S* __restrict__ scales,
    const float* __restrict__ overall, const X* __restrict__ bias, X* __restrict__ out, int64 rows,
    int64 columns, int64 terms, int64 row_bytes, int64 row_scales) {
    __shared__ __align__(16) uint32 shared[SPLIT * SHARED];
    const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
    const int64 first = (int64)blockIdx.x * TILE;
    const unsigned char* code_rows[2];
    const S* scale_rows[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int64 wanted = first + lane / 4 + 8 * i, row = wanted < columns ? wanted : columns - 1;
        code_rows[i] = codes + row * row_bytes;
        scale_rows[i] = scales + row * row_scales;
    }
    const int chunks = (int)((row_bytes + 63) / 64), each = (chunks + SPLIT - 1) / SPLIT;
    const int start = warp * each, stop = start + each < chunks ? start + each : chunks;
    uint32* staged = shared + warp * SHARED;
    float totals[GROUPS][4];
#pragma unroll
    for (int group = 0; group < GROUPS; ++group)
#pragma unroll
        for (int i = 0; i < 4; ++i) totals[group][i] = 0.0f;
    if (start < stop) {
        Part current, next;
        Piece pieces[PIECES];
        load_part(current, code_rows, scale_rows, start, (int)row_bytes);
        load_rows(pieces, x, start, (int)rows, (int)terms);
#pragma unroll 1
        for (int chunk = start; chunk < stop; ++chunk) {
            const bool more = chunk + 1 < stop;
            if (more)
                load_part(next, code_rows, scale_rows, chunk + 1, (int)row_bytes);
            store_rows(staged, pieces, (int)rows);
            __syncwarp();
            if (more) load_rows(pieces, x, chunk + 1, (int)rows, (int)terms);
            add_part(totals, current, staged, (int)rows);
            __syncwarp();
            current = next;
        }
    }
    __syncthreads();
    float* all = reinterpret_cast<float*>(shared);
#pragma unroll
    for (int group = 0; group < GROUPS; ++group)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int n = lane / 4 + i / 2 * 8, m = group * 8 + lane % 4 * 2 + i % 2;
            all[warp * SUMS + m * TILE + n] = totals[group][i];
        }
    __syncthreads();
    for (int i = threadIdx.x; i < (int)rows * TILE; i += LANES) {
        const int64 n = first + i % TILE, m = i / TILE;
        if (n >= columns) continue;
        float total = all[i];
#pragma unroll
        for (int other = 1; other < SPLIT; ++other) total += all[other * SUMS + i];
#if !BLOCK
        total *= load(scales[n * row_scales]);
#endif
        if (overall) total *= overall[0];
        if (bias) total += load(bias[n]);
        out[m * columns + n] = convert<X>(total);
    }
}
