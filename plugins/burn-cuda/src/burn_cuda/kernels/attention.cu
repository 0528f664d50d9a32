// T: elements, D and V: features of a key and of a value, rounded up, KEYS: keys of a tile, R: axes
// of the batch. HAS_MASK, HAS_BIAS, CAUSAL and SOFTCAP: the modifications of the scores.
//
// Attention without the matrix of scores: a block iterates over all keys for a tile of queries, and
// keeps of each query the maximum of its scores, the sum of exp(score - maximum), and the sum of the
// values with these weights (Milakov and Gimelshein, 2018, arXiv:1805.02867; Dao et al., 2022,
// arXiv:2205.14135).

#include "attention.cuh"

// What is stored: the result; with STATISTICS, of each query the logarithm of the sum of exponentials,
// and after all of these the sums of g times the result; with IN_PARTS, where blocks share the keys of
// a query, their sums of values, maxima of scores and sums of weights.
#ifdef STATISTICS
#define SELECT_OUTPUT                   \
    g += number * queries * values;     \
    statistics += number * queries;
#elif defined(IN_PARTS)
#define SELECT_OUTPUT                                                   \
    statistics += 2 * blockIdx.y * rows + number * queries;             \
    sums_of_parts += (blockIdx.y * rows + number * queries) * values;
#else
#define SELECT_OUTPUT out += number * queries * values;
#endif
// The range of tiles of keys of a block.
#define SELECT_TILES                                                                        \
    const int tiles = seen > 0 ? (int)((seen + KEYS - 1) / KEYS) : 0;                       \
    const int count = (tiles + gridDim.y - 1) / gridDim.y, begin = blockIdx.y * count;      \
    const int end = begin + count < tiles ? begin + count : tiles;

#ifdef IN_PARTS
// Combines the parts of each query in their order. Scores are to the base 2 on tensor cores.
extern "C" __global__ void __launch_bounds__(256) combine_parts(
    const C* __restrict__ statistics, const C* __restrict__ sums, T* __restrict__ out, int64 parts,
    int64 rows, int64 values, int64 n) {
    const int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const int64 row = i / values;
    const C lowest = -bits_as_float(0x7f800000u);
    C row_max = lowest;
    for (int64 part = 0; part < parts; ++part) {
        const C own = statistics[2 * part * rows + row];
        row_max = row_max < own ? own : row_max;
    }
    const C base = row_max == lowest ? (C)0 : row_max;
    C total = (C)0, sum = (C)0;
    for (int64 part = 0; part < parts; ++part) {
        const C difference = statistics[2 * part * rows + row] - base;
#ifdef TENSOR_CORES
        const C decay = exp2(difference);
#else
        const C decay = exp(difference);
#endif
        total += statistics[(2 * part + 1) * rows + row] * decay;
        sum += sums[part * n + i] * decay;
    }
    out[i] = convert<T>(total == (C)0 ? (C)0 : sum / total);
}
#endif

#ifdef TENSOR_CORES
// T is float16 or bfloat16, QUERY_GROUPS: groups of 16 queries of a warp. Products are those of tensor
// cores, accumulated in float32. A weight is split into two numbers of type T, together about as exact
// as one in float32. FOLDED: scores have no modification but a positive factor, which is applied in
// the exponent.

#include "tensor_cores.cuh"

#define QUERIES (16 * QUERY_GROUPS * WARPS)
#define LOADS_IN_FLIGHT 4
#ifndef BLOCKS
#define BLOCKS 1
#endif
#ifdef FOLDED
#define FACTOR ((float)scale * LOG2E)
#define SCORE(product) (product)
#else
#define FACTOR 1.0f
#define SCORE(product) rule.plain(product)
#endif
// Maximum and sum over the four lanes of a row.
__device__ __forceinline__ float max_of_row(float x) {
    x = fmax(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmax(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
__device__ __forceinline__ float sum_of_row(float x) {
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) attention(
    const T* __restrict__ query, const T* __restrict__ key, const T* __restrict__ value,
    const bool* __restrict__ mask, const T* __restrict__ bias, T* __restrict__ out,
    const T* __restrict__ g, C* __restrict__ statistics, C* __restrict__ sums_of_parts,
    const Layout layout, double scale, double cap, int64 queries, int64 keys, int64 features,
    int64 values, int64 blocks, int64 rows) {
    __shared__ __align__(16) T key_tiles[2][KEYS][D + GAP];
    __shared__ __align__(16) T value_tiles[2][KEYS][V + GAP];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    SELECT_BLOCK
    SELECT_OUTPUT
#ifdef FOLDED
    const Scores rule{mask, bias, layout, queries, keys, 1.0f, 1.0f, 1.0f};
#else
    const Scores rule{mask, bias, layout, queries, keys, (C)scale, (C)cap, LOG2E};
#endif
    const float factor = FACTOR;
    const int64 first_row = block * QUERIES + warp * (16 * QUERY_GROUPS) + lane / 4;
    uint32 parts_of_query[QUERY_GROUPS][D / 16][4];
#pragma unroll
    for (int m = 0; m < QUERY_GROUPS; ++m)
        load_left<D>(
            parts_of_query[m], query, layout.query_row, first_row + m * 16, queries, features);
    float sums[QUERY_GROUPS][V / 8][4], row_maxima[QUERY_GROUPS][2], totals[QUERY_GROUPS][2];
    const float lowest = -bits_as_float(0x7f800000u);
#pragma unroll
    for (int m = 0; m < QUERY_GROUPS; ++m) {
#pragma unroll
        for (int h = 0; h < 2; ++h) row_maxima[m][h] = lowest, totals[m][h] = 0.0f;
#pragma unroll
        for (int n = 0; n < V / 8; ++n)
#pragma unroll
            for (int j = 0; j < 4; ++j) sums[m][n][j] = 0.0f;
    }
    const bool key_aligned = is_aligned(key, layout.key_row, features);
    const bool value_aligned = is_aligned(value, layout.value_row, values);
    const int64 seen = rule.seen((block + 1) * QUERIES);
    SELECT_TILES
    if (begin < end) {
        const int64 first = (int64)begin * KEYS;
        copy_rows<KEYS, D>(key_tiles[begin & 1], key + first * layout.key_row, layout.key_row,
            keys - first, features, key_aligned);
        copy_rows<KEYS, V>(value_tiles[begin & 1], value + first * layout.value_row,
            layout.value_row, keys - first, values, value_aligned);
    }
    for (int tile = begin; tile < end; ++tile) {
        const int own = tile & 1;
        const int64 first_key = (int64)tile * KEYS;
        wait_for_copies();
        __syncthreads();  // this tile has arrived, and no thread reads the other one any more
        if (tile + 1 < end) {
            const int64 next = first_key + KEYS;
            copy_rows<KEYS, D>(key_tiles[own ^ 1], key + next * layout.key_row, layout.key_row,
                keys - next, features, key_aligned);
            copy_rows<KEYS, V>(value_tiles[own ^ 1], value + next * layout.value_row, layout.value_row,
                keys - next, values, value_aligned);
        }
        float scores[QUERY_GROUPS][KEYS / 8][4];
#pragma unroll
        for (int m = 0; m < QUERY_GROUPS; ++m)
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                for (int j = 0; j < 4; ++j) scores[m][n][j] = 0.0f;
#pragma unroll
        for (int k = 0; k < D / 16; ++k) {
#pragma unroll
            for (int n = 0; n < KEYS / 16; ++n) {
                uint32 words[4];  // from key n * 16: for each 8 keys both halves of the features
                load_matrices<false>(words,
                    &key_tiles[own][n * 16 + lane / 16 * 8 + lane % 8][k * 16 + lane / 8 % 2 * 8]);
#pragma unroll
                for (int m = 0; m < QUERY_GROUPS; ++m) {
                    multiply(scores[m][2 * n], parts_of_query[m][k], words);
                    multiply(scores[m][2 * n + 1], parts_of_query[m][k], words + 2);
                }
            }
        }
        if (rule.is_plain(block * QUERIES, first_key + KEYS)) {
#pragma unroll
            for (int m = 0; m < QUERY_GROUPS; ++m)
#pragma unroll
                for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                    for (int j = 0; j < 4; ++j) scores[m][n][j] = SCORE(scores[m][n][j]);
        } else {
#pragma unroll
            for (int m = 0; m < QUERY_GROUPS; ++m)
#pragma unroll
                for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                    for (int j = 0; j < 4; ++j)
                        scores[m][n][j] = rule.of(
                            scores[m][n][j], first_row + m * 16 + j / 2 * 8,
                            first_key + n * 8 + lane % 4 * 2 + j % 2);
        }
#pragma unroll
        for (int m = 0; m < QUERY_GROUPS; ++m) {
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                float row_max = row_maxima[m][h];
#pragma unroll
                for (int n = 0; n < KEYS / 8; ++n)
                    row_max = fmax(row_max, fmax(scores[m][n][2 * h], scores[m][n][2 * h + 1]));
                row_max = max_of_row(row_max);
                // Any base will do while all keys so far are excluded.
                const float base = row_max == lowest ? 0.0f : row_max;
                const float decay = exp2_fast((row_maxima[m][h] - base) * factor);
                const float shift = base * factor - WEIGHT_EXPONENT;
                row_maxima[m][h] = row_max;
                float total = 0.0f;
#pragma unroll
                for (int n = 0; n < KEYS / 8; ++n) {
#pragma unroll
                    for (int j = 2 * h; j < 2 * h + 2; ++j) {
                        scores[m][n][j] = exp2_fast(scores[m][n][j] * factor - shift);
                        total += scores[m][n][j];
                    }
                }
                totals[m][h] = totals[m][h] * decay + total;
                if (__any_sync(0xffffffffu, decay != 1.0f)) {
#pragma unroll
                    for (int n = 0; n < V / 8; ++n) {
                        sums[m][n][2 * h] *= decay;
                        sums[m][n][2 * h + 1] *= decay;
                    }
                }
            }
        }
#pragma unroll
        for (int k = 0; k < KEYS / 16; ++k) {
            uint32 high[QUERY_GROUPS][4], low[QUERY_GROUPS][4];
#pragma unroll
            for (int m = 0; m < QUERY_GROUPS; ++m) {
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const float* two = &scores[m][2 * k + j / 2][j % 2 * 2];
                    split_pair(two[0], two[1], high[m][j], low[m][j]);
                }
            }
            // Products of one accumulator are kept apart: each waits for the one before.
#pragma unroll
            for (int n = 0; n < V / 16; n += LOADS_IN_FLIGHT) {
                // Values of 16 keys: for each 8 columns both halves of the keys.
                uint32 words[LOADS_IN_FLIGHT][4];
#pragma unroll
                for (int i = 0; i < LOADS_IN_FLIGHT; ++i)
                    if (n + i < V / 16)
                        load_matrices<true>(words[i],
                            &value_tiles[own][k * 16 + lane % 16][(n + i) * 16 + lane / 16 * 8]);
#pragma unroll
                for (int m = 0; m < QUERY_GROUPS; ++m)
                    multiply_several<LOADS_IN_FLIGHT, V / 16>(sums[m], n, high[m], words);
#pragma unroll
                for (int m = 0; m < QUERY_GROUPS; ++m)
                    multiply_several<LOADS_IN_FLIGHT, V / 16>(sums[m], n, low[m], words);
            }
        }
    }
#pragma unroll
    for (int m = 0; m < QUERY_GROUPS; ++m) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const float total = sum_of_row(totals[m][h]);
            // The result of a query without keys is 0.
            const float share = total == 0.0f ? 0.0f : 1.0f / total;
            const int64 row = first_row + m * 16 + h * 8;
#ifdef STATISTICS
            float gradient = 0.0f;
            const bool paired = is_paired(g, values, values);
#pragma unroll
            for (int n = 0; n < V / 8; ++n) {
                const int column = n * 8 + lane % 4 * 2;
                const uint32 pair = load_pair(g, values, row, column, queries, values, paired);
                gradient += sums[m][n][2 * h] * low_of(pair) + sums[m][n][2 * h + 1] * high_of(pair);
            }
            gradient = sum_of_row(gradient * share);
            if (row < queries && lane % 4 == 0) {
                const float log_sum = row_maxima[m][h] * factor + log2(total) - WEIGHT_EXPONENT;
                statistics[row] = total == 0.0f ? -lowest : log_sum;
                statistics[rows + row] = gradient;
            }
#elif defined(IN_PARTS)
            if (row >= queries) continue;
            if (lane % 4 == 0) {
                statistics[row] = row_maxima[m][h] * factor;
                statistics[rows + row] = total;
            }
#pragma unroll
            for (int n = 0; n < V / 8; ++n)
#pragma unroll
                for (int j = 0; j < 2; ++j) {
                    const int column = n * 8 + lane % 4 * 2 + j;
                    if (column < values)
                        sums_of_parts[row * values + column] = sums[m][n][2 * h + j];
                }
#else
            if (row >= queries) continue;
#pragma unroll
            for (int n = 0; n < V / 8; ++n)
                store_pair(out, row, n * 8 + lane % 4 * 2, values, sums[m][n][2 * h] * share,
                    sums[m][n][2 * h + 1] * share);
#endif
        }
    }
}
#else
// Without tensor cores: tiles in shared memory and sums in registers. Threads are 16 by 8; one has every
// 16th query, every 8th key, and 4 features of each 32.

#define ROWS (QUERIES / 16)
#define COLUMNS (KEYS / 8)
#define GAP 4

template <int COUNT, int WIDE, int STEP>
__device__ __forceinline__ void copy_rows(
    C (*target)[STEP], const T* source, int64 stride, int64 rows, int64 width) {
    for (int i = threadIdx.x; i < COUNT * WIDE; i += THREADS) {
        const int row = i / WIDE, column = i % WIDE;
        target[row][column] =
            row < rows && column < width ? load(source[row * stride + column]) : (C)0;
    }
}
// Maximum and sum over the eight threads of a row.
__device__ __forceinline__ C max_of_row(C x) {
#pragma unroll
    for (int stride = 1; stride < 8; stride *= 2) {
        const C other = __shfl_xor_sync(0xffffffffu, x, stride);
        x = x < other ? other : x;
    }
    return x;
}
__device__ __forceinline__ C sum_of_row(C x) {
#pragma unroll
    for (int stride = 1; stride < 8; stride *= 2) x += __shfl_xor_sync(0xffffffffu, x, stride);
    return x;
}

extern "C" __global__ void __launch_bounds__(THREADS) attention(
    const T* __restrict__ query, const T* __restrict__ key, const T* __restrict__ value,
    const bool* __restrict__ mask, const T* __restrict__ bias, T* __restrict__ out,
    const T* __restrict__ g, C* __restrict__ statistics, C* __restrict__ sums_of_parts,
    const Layout layout, double scale, double cap, int64 queries, int64 keys, int64 features,
    int64 values, int64 blocks, int64 rows) {
    __shared__ __align__(16) C query_tile[QUERIES][D + GAP];
    __shared__ __align__(16) C key_tile[KEYS][D + GAP];
    __shared__ __align__(16) C value_tile[KEYS][V];
    __shared__ __align__(16) C weights[QUERIES][KEYS + GAP];
    typedef Pack<C, 4> Four;
    const int x = threadIdx.x % 8, y = threadIdx.x / 8;
    SELECT_BLOCK
    SELECT_OUTPUT
    const Scores rule{mask, bias, layout, queries, keys, (C)scale, (C)cap, (C)1};
    const int64 first_row = block * QUERIES;
    copy_rows<QUERIES, D, D + GAP>(
        query_tile, query + first_row * layout.query_row, layout.query_row, queries - first_row,
        features);
    const C lowest = -bits_as_float(0x7f800000u);
    C sums[ROWS][V / 8], row_maxima[ROWS], totals[ROWS];
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        row_maxima[i] = lowest, totals[i] = (C)0;
#pragma unroll
        for (int n = 0; n < V / 8; ++n) sums[i][n] = (C)0;
    }
    const int64 seen = rule.seen(first_row + QUERIES);
    SELECT_TILES
    for (int tile = begin; tile < end; ++tile) {
        const int64 first_key = (int64)tile * KEYS;
        __syncthreads();
        copy_rows<KEYS, D, D + GAP>(
            key_tile, key + first_key * layout.key_row, layout.key_row, keys - first_key, features);
        copy_rows<KEYS, V, V>(
            value_tile, value + first_key * layout.value_row, layout.value_row, keys - first_key,
            values);
        __syncthreads();
        C scores[ROWS][COLUMNS];
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j) scores[i][j] = (C)0;
#pragma unroll 4
        for (int k = 0; k < D; k += 4) {
            Four left[ROWS], right[COLUMNS];
#pragma unroll
            for (int i = 0; i < ROWS; ++i)
                left[i] = *reinterpret_cast<const Four*>(&query_tile[y + 16 * i][k]);
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j)
                right[j] = *reinterpret_cast<const Four*>(&key_tile[x + 8 * j][k]);
#pragma unroll
            for (int i = 0; i < ROWS; ++i)
#pragma unroll
                for (int j = 0; j < COLUMNS; ++j)
#pragma unroll
                    for (int l = 0; l < 4; ++l)
                        scores[i][j] += left[i].values[l] * right[j].values[l];
        }
        const bool plain = rule.is_plain(first_row, first_key + KEYS);
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            C row_max = row_maxima[i];
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j) {
                if (plain) {
                    scores[i][j] = rule.plain(scores[i][j]);
                } else {
                    scores[i][j] =
                        rule.of(scores[i][j], first_row + y + 16 * i, first_key + x + 8 * j);
                }
                row_max = row_max < scores[i][j] ? scores[i][j] : row_max;
            }
            row_max = max_of_row(row_max);
            // Any base will do while all keys so far are excluded.
            const C shift = row_max == lowest ? (C)0 : row_max;
            const C decay = exp(row_maxima[i] - shift);
            row_maxima[i] = row_max;
            C total = (C)0;
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j) {
                const C weight = exp(scores[i][j] - shift);
                total += weight;
                weights[y + 16 * i][x + 8 * j] = weight;
            }
            totals[i] = totals[i] * decay + total;
#pragma unroll
            for (int n = 0; n < V / 8; ++n) sums[i][n] *= decay;
        }
        __syncwarp();  // a warp reads the weights that it wrote
#pragma unroll 2
        for (int k = 0; k < KEYS; k += 4) {
            Four left[ROWS];
#pragma unroll
            for (int i = 0; i < ROWS; ++i)
                left[i] = *reinterpret_cast<const Four*>(&weights[y + 16 * i][k]);
#pragma unroll
            for (int l = 0; l < 4; ++l) {
#pragma unroll
                for (int n = 0; n < V / 32; ++n) {
                    const Four right =
                        *reinterpret_cast<const Four*>(&value_tile[k + l][n * 32 + x * 4]);
#pragma unroll
                    for (int i = 0; i < ROWS; ++i)
#pragma unroll
                        for (int c = 0; c < 4; ++c)
                            sums[i][4 * n + c] += left[i].values[l] * right.values[c];
                }
            }
        }
    }
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        const C total = sum_of_row(totals[i]);
        // The result of a query without keys is 0.
        const C share = total == (C)0 ? (C)0 : (C)1 / total;
        const int64 row = first_row + y + 16 * i;
#ifdef STATISTICS
        C gradient = (C)0;
#pragma unroll
        for (int n = 0; n < V / 8; ++n) {
            const int column = n / 4 * 32 + x * 4 + n % 4;
            if (row < queries && column < values)
                gradient += sums[i][n] * load(g[row * values + column]);
        }
        gradient = sum_of_row(gradient * share);
        if (row < queries && x == 0) {
            statistics[row] = total == (C)0 ? -lowest : row_maxima[i] + log(total);
            statistics[rows + row] = gradient;
        }
#elif defined(IN_PARTS)
        if (row >= queries) continue;
        if (x == 0) {
            statistics[row] = row_maxima[i];
            statistics[rows + row] = total;
        }
#pragma unroll
        for (int n = 0; n < V / 8; ++n) {
            const int column = n / 4 * 32 + x * 4 + n % 4;
            if (column < values) sums_of_parts[row * values + column] = sums[i][n];
        }
#else
        if (row >= queries) continue;
#pragma unroll
        for (int n = 0; n < V / 32; ++n) {
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                const int column = n * 32 + x * 4 + c;
                if (column < values)
                    out[row * values + column] = convert<T>(sums[i][4 * n + c] * share);
            }
        }
#endif
    }
}
#endif
