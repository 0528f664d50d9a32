// Products of few rows with a quantized weight of shape (columns, terms), whose codes lie densely:
// out[m][n] = bias[n] + factor[n] * sum over k of x[m][k] * codes[n][k] (* the scale of the block).
//
// X: elements of x and out. T: what tensor cores multiply, X or bfloat16 for float32, which is split
// into three of them (PLANES). S: scales. BITS of a code, in two's complement; FLOAT8: codes are E4M3.
// BLOCK: codes of a scale, 0 where a row or all of the weight has one. SCALES: scales of a row in a chunk.
// MAX_ROWS: the most rows of x. TILES: the most tiles of 16 columns of a block; it has `tiles` of them,
// and the first `longer_blocks` one more. SPLIT: warps that share the terms, whose sums are added at the
// end, in order. STAGES: chunks that a warp has in shared memory: one that it computes with, and those on
// their way. DIRECT: codes go to registers instead, a chunk ahead, where no lane needs those of another
// one; that is faster for one row. RESIDENT: threads that share the registers of a multiprocessor.
//
// Codes are the left operand of tensor cores, where small integers and E4M3 are exact, and their scale
// multiplies the sums of a block in float32. A chunk is 64 bytes of each row.

#define THREADS (32 * SPLIT)
#include "tensor_cores.cuh"
#include "early.cuh"

constexpr int LANES = 32 * SPLIT;
constexpr int BLOCKS = MAX_ROWS <= 8 ? RESIDENT / LANES : 1;
constexpr int PER_WORD = 32 / BITS, PAIRS = PER_WORD / 2, STEPS = PER_WORD / 4;
constexpr int CHUNK = 16 * PER_WORD, GROUP = 4 * PER_WORD;
constexpr int COLUMNS = 16 * TILES, GROUPS = (MAX_ROWS + 7) / 8;
// Where the terms of an instruction must be of one block, or a word has many, lane t of four computes
// with words t of each 16 bytes of a row; else with words 0 to 3 of its own 16 bytes.
constexpr bool SPREADS = BLOCK != 0 || BITS < 8;
// Bytes from row to row in shared memory. Lanes that load at once meet different banks: of the 16 bytes
// of a row of codes number i is where number i ^ (row / 2 % 4) would be, and rows of x have gaps.
constexpr int CODE_STEP = 64;
constexpr int X_STEP = 2 * CHUNK + (BITS == 4 ? 64 : BITS == 8 && SPREADS ? 32 : 16);
// Bytes of the scales of a row in a chunk, which are copied as 4 bytes at least.
constexpr int SCALE_BYTES = SCALES * (int)sizeof(S), SCALE_STEP = SCALE_BYTES < 4 ? 4 : SCALE_BYTES;
constexpr int X_START = DIRECT ? 0 : COLUMNS * CODE_STEP, SCALE_START = X_START + PLANES * MAX_ROWS * X_STEP;
constexpr int STAGE = (SCALE_START + (BLOCK ? COLUMNS * SCALE_STEP : 0) + 15) / 16 * 16;
constexpr int PIECE = 16 / sizeof(T), PIECES = CHUNK / PIECE;

// The bits of two codes of a word, and their signs.
constexpr uint32 MASK = ((1u << BITS) - 1u) * 0x00010001u, SIGNS = (1u << (BITS - 1)) * 0x00010001u;

// `multiply_add`: pairs of 16-bit floats, a * b + c, rounded once; in all uses here that is exact.
// `masked_or`, `masked_xor`: (a & b) | c, and ^ c, as one instruction. `halves`: the lower halves of two
// words, or the upper ones.
#ifdef BURN_EMULATED
__device__ inline uint32 multiply_add(uint32 a, uint32 b, uint32 c) {
    return convert_pair(low_of(a) * low_of(b) + low_of(c), high_of(a) * high_of(b) + high_of(c));
}
__device__ inline uint32 masked_or(uint32 a, uint32 b, uint32 c) { return (a & b) | c; }
__device__ inline uint32 masked_xor(uint32 a, uint32 b, uint32 c) { return (a & b) ^ c; }
__device__ inline uint32 halves(uint32 a, uint32 b, bool upper) {
    return upper ? a >> 16 | (b & 0xffff0000u) : (a & 0xffffu) | b << 16;
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
__device__ __forceinline__ uint32 masked_or(uint32 a, uint32 b, uint32 c) {
    uint32 result;
    asm("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
    return result;
}
__device__ __forceinline__ uint32 masked_xor(uint32 a, uint32 b, uint32 c) {
    uint32 result;
    asm("lop3.b32 %0, %1, %2, %3, 0x6A;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
    return result;
}
__device__ __forceinline__ uint32 halves(uint32 a, uint32 b, bool upper) {
    uint32 result;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(upper ? 0x7632 : 0x5410));
    return result;
}
#endif

template <class N>
struct Format;
template <>
struct Format<float16> {
    // From 1024 on numbers are 1 apart; E4M3 has 8 less as its bias, and 7 bits less behind.
    static constexpr uint32 ONE = 0x3c003c00u, ANCHOR = 0x64006400u, NAN_FACTOR = 0xf8u;
    static constexpr uint32 RAISE = 0x5c005c00u;
    static constexpr int SHIFT = 7;
};
template <>
struct Format<bfloat16> {
    // From 128 on numbers are 1 apart; E4M3 has 120 less as its bias, and 4 bits less behind.
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
        const uint32 lower = masked_or(v, MASK ^ SIGNS, F::ANCHOR);
        const uint32 upper = masked_or(v, SIGNS, F::ANCHOR | minus);
        return multiply_add(lower, F::ONE, upper);
    }
    const uint32 biased = masked_xor(v, MASK, F::ANCHOR | SIGNS);
    return multiply_add(biased, F::ONE, F::ANCHOR | SIGNS | minus);
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

#ifdef BURN_EMULATED
template <int BYTES>
__device__ inline void copy_scales(unsigned char* target, const void* source) {
    memcpy(target, source, BYTES);
}
__device__ inline void end_copies() {}
__device__ inline void wait_for_stage() {}
#else
template <int BYTES>
__device__ __forceinline__ void copy_scales(unsigned char* target, const void* source) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;"
        :: "r"(shared_address(target)), "l"(source), "n"(BYTES) : "memory");
}
__device__ __forceinline__ void end_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits for the oldest stage that is on its way.
__device__ __forceinline__ void wait_for_stage() {
    asm volatile("cp.async.wait_group %0;" :: "n"(STAGES - 2) : "memory");
}
#endif

// Copies the terms of a chunk of rows of x to shared memory, with zeros beyond the end.
__device__ __forceinline__ void copy_x(
    unsigned char* staged, const T* x, int chunk, int rows, int terms) {
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int i = 0; i < MAX_ROWS * PIECES; i += 32) {
        const int piece = (i + lane) % PIECES, row = (i + lane) / PIECES;
        const int k = chunk * CHUNK + piece * PIECE;
        if (row < rows)
            copy_async(reinterpret_cast<T*>(staged + row * X_STEP) + piece * PIECE,
                x + (int64)row * terms + (k < terms ? k : 0), k < terms);
    }
}
__device__ __forceinline__ void copy_x(
    unsigned char* staged, const float* x, int chunk, int rows, int terms) {
    for (int i = threadIdx.x & 31; i < rows * PIECES; i += 32) {
        const int piece = i % PIECES, row = i / PIECES, k = chunk * CHUNK + piece * PIECE;
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
            reinterpret_cast<Pack<T, PIECE>*>(staged + (plane * MAX_ROWS + row) * X_STEP)[piece] = part;
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

// What a warp reads: rows of codes that a lane copies, one of scales, and x.
struct Sources {
    const unsigned char* codes[2 * TILES];
    const X* x;
    const S* scales;
    int64 scale_row;
    int rows, terms, row_bytes, row_scales;

    __device__ __forceinline__ int scale_index(int chunk) const {
        const int index = chunk * CHUNK / (BLOCK ? BLOCK : 1), last = row_scales - SCALES;
        return index < last ? index : last;
    }
    __device__ __forceinline__ void load(Word128 parts[2 * TILES], int chunk) const {
        const int offset = chunk * 64 + (int)(threadIdx.x & 3) * 16;
#pragma unroll
        for (int i = 0; i < 2 * TILES; ++i) {
            parts[i] = Word128{0, 0};
            if (offset < row_bytes) parts[i] = load_once(codes[i] + offset);
        }
    }
    __device__ __forceinline__ void copy(unsigned char* stage, int chunk) const {
        const int lane = threadIdx.x & 31, offset = chunk * 64 + lane % 4 * 16;
#pragma unroll
        for (int i = 0; i < (DIRECT ? 0 : 2 * TILES); ++i)
            copy_async(reinterpret_cast<T*>(
                    stage + (lane / 4 + 8 * i) * CODE_STEP + (lane % 4 ^ lane / 8) * 16),
                reinterpret_cast<const T*>(codes[i] + (offset < row_bytes ? offset : 0)),
                offset < row_bytes);
        copy_x(stage + X_START, x, chunk, rows, terms);
#if BLOCK
        if (lane < COLUMNS) {
            int64 first = scale_row + scale_index(chunk);
            if (SCALE_BYTES < 4) first &= ~(int64)1;
            copy_scales<SCALE_STEP>(stage + SCALE_START + lane * SCALE_STEP, scales + first);
        }
#endif
    }
};

// The terms of word j of a lane as pairs: those of codes i and i + PAIRS.
__device__ __forceinline__ void load_pairs(
    uint32 pairs[PAIRS], uint32 kept[4], const unsigned char* row, int j) {
    uint32 words[PAIRS];
    const int lane = threadIdx.x & 31;
    const uint32* source = reinterpret_cast<const uint32*>(row);
    if (SPREADS) {
        constexpr int WIDTH = PAIRS < 4 ? PAIRS : 4;
#pragma unroll
        for (int i = 0; i < PAIRS; i += WIDTH) {
            const Pack<uint32, WIDTH> pack = *reinterpret_cast<const Pack<uint32, WIDTH>*>(
                source + (4 * j + lane % 4) * PAIRS + i);
#pragma unroll
            for (int k = 0; k < WIDTH; ++k) words[i + k] = pack.values[k];
        }
    } else {
        if (j % 2 == 0) {  // words j and j + 1 at once
            const Pack<uint32, 4> pack =
                *reinterpret_cast<const Pack<uint32, 4>*>(source + (lane % 4 * 4 + j) * PAIRS);
#pragma unroll
            for (int k = 0; k < 4; ++k) kept[k] = pack.values[k];
        }
#pragma unroll
        for (int k = 0; k < PAIRS; ++k) words[k] = kept[j % 2 * 2 + k % 2];
    }
#pragma unroll
    for (int i = 0; i < PAIRS; ++i)
        pairs[i] = halves(words[i / 2], words[(i + PAIRS) / 2], i % 2);
}

// Words of codes of rows lane / 4 and lane / 4 + 8 of a tile.
__device__ __forceinline__ void load_words(uint32 words[2][4], const unsigned char* codes) {
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const unsigned char* row = codes + (lane / 4 + 8 * i) * CODE_STEP;
        if (SPREADS) {
#pragma unroll
            for (int j = 0; j < 4; ++j)
                words[i][j] = reinterpret_cast<const uint32*>(row)[4 * (j ^ lane / 8) + lane % 4];
        } else {
            const Pack<uint32, 4> pack =
                *reinterpret_cast<const Pack<uint32, 4>*>(row + (lane % 4 ^ lane / 8) * 16);
#pragma unroll
            for (int j = 0; j < 4; ++j) words[i][j] = pack.values[j];
        }
    }
}

__device__ __forceinline__ void add_chunk(
    float totals[TILES][GROUPS][4], const Word128 parts[2 * TILES], const unsigned char* stage,
    int rows, const int odd[2 * TILES]) {
    const int lane = threadIdx.x & 31;
    uint32 words[TILES][2][4];
    float sums[TILES][GROUPS][4];
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) {
        if (!DIRECT) {
            load_words(words[tile], stage + tile * 16 * CODE_STEP);
            continue;
        }
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const Word128 part = parts[2 * tile + i];
            words[tile][i][0] = (uint32)part.low, words[tile][i][1] = (uint32)(part.low >> 32);
            words[tile][i][2] = (uint32)part.high, words[tile][i][3] = (uint32)(part.high >> 32);
        }
    }
#if BLOCK
    constexpr int HELD = SCALE_STEP / (int)sizeof(S);
    Pack<S, HELD> scales[2 * TILES];
#pragma unroll
    for (int i = 0; i < 2 * TILES; ++i)
        scales[i] = *reinterpret_cast<const Pack<S, HELD>*>(
            stage + SCALE_START + (lane / 4 + 8 * i) * SCALE_STEP);
#endif
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
                // Of columns beyond the last row nothing is used, whatever they are multiplied with.
                const int wanted = group * 8 + lane / 4, row = wanted < rows ? wanted : rows - 1;
                load_pairs(right[group][plane], kept[group][plane],
                    stage + X_START + (plane * MAX_ROWS + row) * X_STEP, j);
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
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    if (starts) sums[tile][group][i] = 0.0f;
                float* sum = BLOCK ? sums[tile][group] : totals[tile][group];
#pragma unroll
                for (int plane = 0; plane < PLANES; ++plane)
#pragma unroll
                    for (int step = 0; step < STEPS; ++step)
                        multiply(sum, left[step], right[group][plane] + 2 * step);
            }
#if BLOCK
            if ((j + 1) * GROUP % span == 0) {
                float factors[2];
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const S* own = scales[2 * tile + i].values;
                    if (SCALE_BYTES < 4)
                        factors[i] = odd[2 * tile + i] ? load(own[1 % HELD]) : load(own[0]);
                    else
                        factors[i] = load(own[j * GROUP / span]);
                }
#pragma unroll
                for (int group = 0; group < GROUPS; ++group)
#pragma unroll
                    for (int i = 0; i < 4; ++i)
                        totals[tile][group][i] += factors[i / 2] * sums[tile][group][i];
            }
#endif
        }
    }
}

extern "C" __global__ void __launch_bounds__(LANES, BLOCKS) quantized_rows(
    const X* __restrict__ x, const unsigned char* __restrict__ codes, const S* __restrict__ scales,
    const float* __restrict__ overall, const X* __restrict__ bias, X* __restrict__ out, int64 rows,
    int64 columns, int64 terms, int64 row_bytes, int64 row_scales, int64 tiles,
    int64 longer_blocks) {
#ifdef BURN_EMULATED
    static unsigned char shared[1 << 18];
#else
    extern __shared__ __align__(16) unsigned char shared[];
#endif
    const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
    let_next_start();
    const int64 block = blockIdx.x, longer = block < longer_blocks ? block : longer_blocks;
    const int64 first = (block * tiles + longer) * 16;
    const int64 beyond = first + (tiles + (block < longer_blocks)) * 16;
    const int64 end = (beyond < columns ? beyond : columns) - 1;
    Sources sources;
    int64 scale_rows[2 * TILES];
#pragma unroll
    for (int i = 0; i < 2 * TILES; ++i) {
        const int64 wanted = first + lane / 4 + 8 * i, row = wanted < end ? wanted : end;
        sources.codes[i] = codes + row * row_bytes;
        scale_rows[i] = row * row_scales;
    }
    const int64 wanted = first + lane;
    sources.scale_row = (wanted < end ? wanted : end) * row_scales;
    sources.x = x, sources.scales = scales, sources.rows = (int)rows, sources.terms = (int)terms;
    sources.row_bytes = (int)row_bytes, sources.row_scales = (int)row_scales;
    const int chunks = (int)((row_bytes + 63) / 64);
    unsigned char* stages = shared + warp * STAGES * STAGE;
    float totals[TILES][GROUPS][4];
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile)
#pragma unroll
        for (int group = 0; group < GROUPS; ++group)
#pragma unroll
            for (int i = 0; i < 4; ++i) totals[tile][group][i] = 0.0f;
    // The next kernel's codes come into the cache while the last ones of this kernel are computed with.
    if (BITS < 8 && threadIdx.x < COLUMNS && first + threadIdx.x <= end)
        prefetch_bytes(codes + (first + threadIdx.x) * row_bytes, (uint32)row_bytes);
    wait_for_kernel_before();
    Word128 parts[2 * TILES], next[2 * TILES];
    if (DIRECT) sources.load(parts, warp);
#pragma unroll
    for (int i = 0; i < STAGES - 1; ++i) {
        if (warp + i * SPLIT < chunks) sources.copy(stages + i * STAGE, warp + i * SPLIT);
        end_copies();
    }
    int slot = 0;
#pragma unroll 1
    for (int chunk = warp; chunk < chunks; chunk += SPLIT) {
        wait_for_stage();
        __syncwarp();
        const int ahead = chunk + (STAGES - 1) * SPLIT, free = slot ? slot - 1 : STAGES - 1;
        if (ahead < chunks) sources.copy(stages + free * STAGE, ahead);
        end_copies();
        int odd[2 * TILES];
#pragma unroll
        for (int i = 0; i < 2 * TILES; ++i)
            odd[i] = (int)(scale_rows[i] + sources.scale_index(chunk)) & 1;
        if (DIRECT) sources.load(next, chunk + SPLIT);
        add_chunk(totals, parts, stages + slot * STAGE, (int)rows, odd);
#pragma unroll
        for (int i = 0; i < (DIRECT ? 2 * TILES : 0); ++i) parts[i] = next[i];
        slot = slot + 1 < STAGES ? slot + 1 : 0;
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
        if (n > end) continue;
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
