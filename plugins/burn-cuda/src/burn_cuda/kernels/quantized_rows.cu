// Products of few rows with a quantized weight of shape (columns, terms), whose codes lie densely:
// out[m][n] = bias[n] + factor[n] * sum over k of x[m][k] * codes[n][k] (* the scale of the block).
//
// X: elements of x and out. T: what tensor cores multiply, X or bfloat16 for float32, which is split
// into three of them (PLANES). S: scales. BITS of a code, in two's complement; FLOAT8: codes are E4M3.
// BLOCK: codes of a scale, 0 where a row or all of the weight has one. SCALES: scales of a chunk that
// are loaded at once. MAX_ROWS: the most rows of x. TILES: tiles of 16 columns of a block. SPLIT: warps
// that share the terms, whose sums are added at the end, in order. DEPTH: chunks of a round, whose
// loads a warp issues before it computes; those of the next round follow while it does. RESIDENT:
// threads that share the registers of a multiprocessor.
//
// Codes are the left operand of tensor cores, where small integers and E4M3 are exact, and their scale
// multiplies the sums of a block in float32. A lane loads 16 bytes of a row at once, but the terms of
// one instruction come from four lanes: with blocks, these exchange words, so that all are of one block.

#define THREADS (32 * SPLIT)
#include "tensor_cores.cuh"
#include "early.cuh"

constexpr int LANES = 32 * SPLIT;
constexpr int BLOCKS = MAX_ROWS <= 8 ? RESIDENT / LANES : 1;
constexpr int PER_WORD = 32 / BITS, PAIRS = PER_WORD / 2, STEPS = PER_WORD / 4;
constexpr int CHUNK = 16 * PER_WORD, GROUP = 4 * PER_WORD;
constexpr int COLUMNS = 16 * TILES, GROUPS = (MAX_ROWS + 7) / 8;
constexpr bool EXCHANGES = BLOCK != 0 || BITS == 4;
// Bytes of a row of x in shared memory, of a chunk: lanes that load at once meet different banks.
constexpr int STEP = 2 * CHUNK + (BITS == 4 ? 64 : BITS == 8 && EXCHANGES ? 32 : 16);
constexpr int STAGED = DEPTH * PLANES * MAX_ROWS * STEP;
constexpr int SCALE_PACKS = BLOCK ? (COLUMNS * DEPTH + 31) / 32 : 1;
constexpr int SCALE_BYTES = BLOCK ? 32 * SCALE_PACKS * SCALES * (int)sizeof(S) : 0;
constexpr int PIECE = 16 / sizeof(T), PIECES = CHUNK / PIECE;
typedef Pack<S, SCALES> Scales;

// The bits of two codes of a word, and their signs.
constexpr uint32 MASK = ((1u << BITS) - 1u) * 0x00010001u, SIGNS = (1u << (BITS - 1)) * 0x00010001u;

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
    if (FLOAT8) {
        const uint32 magnitude = v & (MASK ^ SIGNS);
        const uint32 is_nan = (magnitude + 0x00010001u) & SIGNS;
        const uint32 bits = (magnitude << F::SHIFT) | ((v & SIGNS) << 8) | is_nan * F::NAN_FACTOR;
        return multiply_add(bits, F::RAISE, minus);
    }
    if (BITS == 8 && IsBfloat<T>::value) {
        // bfloat16 has 7 bits behind the point: 128 + the lower bits, minus 128 or 256 by the sign.
        const uint32 lower = (v & (MASK ^ SIGNS)) | F::ANCHOR;
        const uint32 upper = (v & SIGNS) | F::ANCHOR | minus;
        return multiply_add(lower, F::ONE, upper);
    }
    return multiply_add((v & MASK) ^ (F::ANCHOR | SIGNS), F::ONE, F::ANCHOR | SIGNS | minus);
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

__device__ __forceinline__ Word128 load_once(const unsigned char* address) {
#ifdef BURN_EMULATED
    return *reinterpret_cast<const Word128*>(address);
#else
    Word128 result;
    asm volatile("ld.global.nc.L1::no_allocate.v2.u64 {%0, %1}, [%2];"
        : "=l"(result.low), "=l"(result.high) : "l"(address));
    return result;
#endif
}
__device__ __forceinline__ void end_group_of_copies() {
#ifndef BURN_EMULATED
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
// Waits for all groups of copies but the last one.
__device__ __forceinline__ void wait_for_older_copies() {
#ifndef BURN_EMULATED
    asm volatile("cp.async.wait_group 1;" ::: "memory");
#endif
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

// Copies rows of x to shared memory: terms of the chunks of a round, with zeros beyond the end.
__device__ __forceinline__ void copy_rows_of(
    unsigned char* staged, const T* x, int chunk, int rows, int terms) {
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int i = 0; i < DEPTH * MAX_ROWS * PIECES; i += 32) {
        const int piece = (i + lane) % PIECES, row = (i + lane) / PIECES % MAX_ROWS;
        const int depth = (i + lane) / (PIECES * MAX_ROWS), k = (chunk + depth) * CHUNK + piece * PIECE;
        if (row < rows && depth < DEPTH)
            copy_async(reinterpret_cast<T*>(staged + (depth * MAX_ROWS + row) * STEP) + piece * PIECE,
                x + (int64)row * terms + (k < terms ? k : 0), k < terms);
    }
}
__device__ __forceinline__ void copy_rows_of(
    unsigned char* staged, const float* x, int chunk, int rows, int terms) {
    const int lane = threadIdx.x & 31;
    for (int i = lane; i < DEPTH * MAX_ROWS * PIECES; i += 32) {
        const int piece = i % PIECES, row = i / PIECES % MAX_ROWS, depth = i / (PIECES * MAX_ROWS);
        const int k = (chunk + depth) * CHUNK + piece * PIECE;
        if (row >= rows) continue;
        Pack<float, 4> numbers[PIECE / 4];
#pragma unroll
        for (int j = 0; j < PIECE / 4; ++j) {
            const Pack<float, 4> none = {{0.0f, 0.0f, 0.0f, 0.0f}};
            const float* source = x + (int64)row * terms + k + 4 * j;
            numbers[j] = k < terms ? *reinterpret_cast<const Pack<float, 4>*>(source) : none;
        }
#pragma unroll
        for (int plane = 0; plane < PLANES; ++plane) {
            Pack<T, PIECE> part;
#pragma unroll
            for (int j = 0; j < PIECE; ++j)
                part.values[j] = plane_of(numbers[j / 4].values[j % 4], plane);
            unsigned char* target = staged + ((depth * PLANES + plane) * MAX_ROWS + row) * STEP;
            reinterpret_cast<Pack<T, PIECE>*>(target)[piece] = part;
        }
    }
}

// Codes that a lane has of a tile: parts of rows lane / 4 and lane / 4 + 8.
struct Part {
    Word128 rows[2];
};
__device__ __forceinline__ void load_part(
    Part& part, const unsigned char* codes, int64 first, int64 columns, int chunk, int row_bytes) {
    const int lane = threadIdx.x & 31, offset = chunk * 64 + lane % 4 * 16;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int64 wanted = first + lane / 4 + 8 * i, row = wanted < columns ? wanted : columns - 1;
        part.rows[i] = Word128{0, 0};
        if (offset < row_bytes) part.rows[i] = load_once(codes + row * row_bytes + offset);
    }
}

// Scales of the chunks of a round: of each row those of all of its chunks, which are adjacent.
__device__ __forceinline__ void load_scales(
    Scales packs[SCALE_PACKS], const S* scales, int64 first, int64 columns, int chunk,
    int row_scales) {
#if BLOCK
#pragma unroll
    for (int i = 0; i < SCALE_PACKS; ++i) {
        const int number = 32 * i + (threadIdx.x & 31);
        const int64 wanted = first + number / DEPTH, row = wanted < columns ? wanted : columns - 1;
        const int index = (chunk + number % DEPTH) * CHUNK / BLOCK;
        const int last = row_scales - SCALES;
        packs[i] = *reinterpret_cast<const Scales*>(
            scales + row * row_scales + (index < last ? index : last));
    }
#endif
}
__device__ __forceinline__ void store_scales(Scales* staged, const Scales packs[SCALE_PACKS]) {
#if BLOCK
#pragma unroll
    for (int i = 0; i < SCALE_PACKS; ++i) staged[32 * i + (threadIdx.x & 31)] = packs[i];
#endif
}

// The terms of word j of a lane as pairs: those of codes i and i + PAIRS.
__device__ __forceinline__ void load_pairs(
    uint32 pairs[PAIRS], uint32 kept[4], const unsigned char* row, int j, bool exists) {
    uint32 words[PAIRS];
    const int lane = threadIdx.x & 31;
    if (EXCHANGES || PAIRS != 2) {
        const int word = EXCHANGES ? 4 * j + lane % 4 : lane % 4 * 4 + j;
        const uint32* source = reinterpret_cast<const uint32*>(row) + word * PAIRS;
        constexpr int WIDTH = PAIRS < 4 ? PAIRS : 4;
#pragma unroll
        for (int i = 0; i < PAIRS; i += WIDTH) {
            Pack<uint32, WIDTH> pack;
            if (exists) pack = *reinterpret_cast<const Pack<uint32, WIDTH>*>(source + i);
#pragma unroll
            for (int k = 0; k < WIDTH; ++k) words[i + k] = exists ? pack.values[k] : 0;
        }
    } else {
        // Words j and j + 1 at once.
        if (j % 2 == 0) {
            Pack<uint32, 4> pack;
            const uint32* source = reinterpret_cast<const uint32*>(row) + (lane % 4 * 4 + j) * PAIRS;
            if (exists) pack = *reinterpret_cast<const Pack<uint32, 4>*>(source);
#pragma unroll
            for (int k = 0; k < 4; ++k) kept[k] = exists ? pack.values[k] : 0;
        }
#pragma unroll
        for (int k = 0; k < PAIRS; ++k) words[k] = kept[j % 2 * 2 + k % 2];
    }
#pragma unroll
    for (int i = 0; i < PAIRS; ++i) {
        const uint32 low = words[i / 2], high = words[(i + PAIRS) / 2];
        pairs[i] = i % 2 ? low >> 16 | (high & 0xffff0000u) : (low & 0xffffu) | high << 16;
    }
}

__device__ __forceinline__ void add_chunk(
    float totals[TILES][GROUPS][4], const Part parts[TILES], const unsigned char* staged,
    const Scales* scales, int depth, int rows) {
    const int lane = threadIdx.x & 31;
    uint32 words[TILES][2][4];
    float sums[TILES][GROUPS][4];
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const Word128 row = parts[tile].rows[i];
            words[tile][i][0] = (uint32)row.low, words[tile][i][1] = (uint32)(row.low >> 32);
            words[tile][i][2] = (uint32)row.high, words[tile][i][3] = (uint32)(row.high >> 32);
            if (EXCHANGES) transpose(words[tile][i]);
        }
    }
    uint32 kept[GROUPS][PLANES][4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        constexpr int span = BLOCK && BLOCK < CHUNK ? BLOCK : CHUNK;
        const bool starts = BLOCK && j * GROUP % span == 0;
        uint32 right[GROUPS][PLANES][PAIRS];
#pragma unroll
        for (int group = 0; group < GROUPS; ++group)
#pragma unroll
            for (int plane = 0; plane < PLANES; ++plane) {
                const int row = group * 8 + lane / 4;
                load_pairs(right[group][plane], kept[group][plane],
                    staged + ((depth * PLANES + plane) * MAX_ROWS + row) * STEP, j, row < rows);
            }
#pragma unroll
        for (int tile = 0; tile < TILES; ++tile) {
            uint32 left[STEPS][4];
#pragma unroll
            for (int step = 0; step < STEPS; ++step)
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    left[step][i] = numbers(words[tile][i % 2][j], 2 * step + i / 2);
#pragma unroll
            for (int group = 0; group < GROUPS; ++group) {
                if (starts)
#pragma unroll
                    for (int i = 0; i < 4; ++i) sums[tile][group][i] = 0.0f;
                float* sum = BLOCK ? sums[tile][group] : totals[tile][group];
#pragma unroll
                for (int plane = 0; plane < PLANES; ++plane)
#pragma unroll
                    for (int step = 0; step < STEPS; ++step)
                        multiply(sum, left[step], right[group][plane] + 2 * step);
            }
#if BLOCK
            if ((j + 1) * GROUP % span == 0) {
                const Scales* own = scales + (tile * 16 + lane / 4) * DEPTH + depth;
                const float upper = load(own[0].values[j * GROUP / span]);
                const float lower = load(own[8 * DEPTH].values[j * GROUP / span]);
#pragma unroll
                for (int group = 0; group < GROUPS; ++group)
#pragma unroll
                    for (int i = 0; i < 4; ++i)
                        totals[tile][group][i] += (i < 2 ? upper : lower) * sums[tile][group][i];
            }
#endif
        }
    }
}

extern "C" __global__ void __launch_bounds__(LANES, BLOCKS) quantized_rows(
    const X* __restrict__ x, const unsigned char* __restrict__ codes, const S* __restrict__ scales,
    const float* __restrict__ overall, const X* __restrict__ bias, X* __restrict__ out, int64 rows,
    int64 columns, int64 terms, int64 row_bytes, int64 row_scales, int64 buffers) {
#ifdef BURN_EMULATED
    static unsigned char shared[1 << 17];
#else
    extern __shared__ __align__(16) unsigned char shared[];
#endif
    const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
    const int64 first = (int64)blockIdx.x * COLUMNS;
    let_next_start();
    if (threadIdx.x < COLUMNS && first + threadIdx.x < columns)
        prefetch_bytes(codes + (first + threadIdx.x) * row_bytes, (uint32)row_bytes);
    wait_for_kernel_before();
    const int rounds = (int)((row_bytes + 64 * DEPTH * SPLIT - 1) / (64 * DEPTH * SPLIT));
    unsigned char* staged = shared + warp * (SCALE_BYTES + (int)buffers * STAGED);
    Scales* own_scales = reinterpret_cast<Scales*>(staged);
    staged += SCALE_BYTES;
    float totals[TILES][GROUPS][4];
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile)
#pragma unroll
        for (int group = 0; group < GROUPS; ++group)
#pragma unroll
            for (int i = 0; i < 4; ++i) totals[tile][group][i] = 0.0f;
    Part parts[DEPTH][TILES];
    Scales packs[SCALE_PACKS];
    int chunk = warp * DEPTH;
#pragma unroll
    for (int depth = 0; depth < DEPTH; ++depth)
#pragma unroll
        for (int tile = 0; tile < TILES; ++tile)
            load_part(parts[depth][tile], codes, first + 16 * tile, columns, chunk + depth,
                (int)row_bytes);
    load_scales(packs, scales, first, columns, chunk, (int)row_scales);
    copy_rows_of(staged, x, chunk, (int)rows, (int)terms);
    end_group_of_copies();
#pragma unroll 1
    for (int round = 0; round < rounds; ++round) {
        const bool more = round + 1 < rounds;
        const unsigned char* current = staged + (round & 1) * STAGED;
        store_scales(own_scales, packs);
        chunk += DEPTH * SPLIT;
        if (more) {
            copy_rows_of(staged + (~round & 1) * STAGED, x, chunk, (int)rows, (int)terms);
            load_scales(packs, scales, first, columns, chunk, (int)row_scales);
        }
        end_group_of_copies();
        wait_for_older_copies();
        __syncwarp();
#pragma unroll
        for (int depth = 0; depth < DEPTH; ++depth) {
            Part now[TILES];
#pragma unroll
            for (int tile = 0; tile < TILES; ++tile) {
                now[tile] = parts[depth][tile];
                if (more)
                    load_part(parts[depth][tile], codes, first + 16 * tile, columns,
                        chunk + depth, (int)row_bytes);
            }
            add_chunk(totals, now, current, own_scales, depth, (int)rows);
        }
        __syncwarp();
    }
    __syncthreads();
    float* all = reinterpret_cast<float*>(shared);
    const int results = (int)rows * COLUMNS;
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile)
#pragma unroll
        for (int group = 0; group < GROUPS; ++group)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int n = tile * 16 + lane / 4 + i / 2 * 8, m = group * 8 + lane % 4 * 2 + i % 2;
                if (m < (int)rows) all[warp * results + m * COLUMNS + n] = totals[tile][group][i];
            }
    __syncthreads();
    for (int i = threadIdx.x; i < results; i += LANES) {
        const int64 n = first + i % COLUMNS, m = i / COLUMNS;
        if (n >= columns) continue;
        float total = all[i];
#pragma unroll
        for (int other = 1; other < SPLIT; ++other) total += all[other * results + i];
#if !BLOCK
        total *= load(scales[n * row_scales]);
#endif
        if (overall) total *= overall[0];
        if (bias) total += load(bias[n]);
        out[m * columns + n] = convert<X>(total);
    }
}
