// T: float16 or bfloat16, D and V: features of a key and of a value, rounded up to 16, COLUMNS: columns
// of a tile, R: axes of the batch; OF_KEYS: whether rows are keys and columns queries, or the reverse.
//
// The gradients of attention: weights and their gradients are recomputed tile by tile from the
// statistics of each query (Dao et al., 2022, arXiv:2205.14135, appendix B). A block iterates over all
// columns for a tile of rows, so that sums are added up in a fixed order.

#include "attention.cuh"
#include "tensor_cores.cuh"

#define ROWS (16 * WARPS)
#define LOADS_IN_FLIGHT 4

#ifdef OF_KEYS
#define QUERY(row, column) (column)
#define KEY(row, column) (row)
#else
#define QUERY(row, column) (row)
#define KEY(row, column) (column)
#endif

// A power of two that keeps the gradients of weights in the range of float16. `largest` has the largest
// magnitudes in g and value.
__device__ __forceinline__ float gradient_factor(const T* largest, int64 values) {
    if (WEIGHT_EXPONENT == 0.0f) return 1.0f;
    const float bound = 2.0f * (float)values * load(largest[0]) * load(largest[1]);
    if (!(bound > 0.0f) || bound > 1e30f) return 1.0f;
    return exp2_fast(-ceil(log2(bound)));
}

// Adds the products of a left operand, which is split into two numbers, with 16 rows of a tile. Products
// of one accumulator are kept apart: each waits for the one before.
template <int WIDE>
__device__ __forceinline__ void add_products(
    float (*sums)[4], const uint32 high[4], const uint32 low[4], const T (*tile)[WIDE + GAP]) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < WIDE / 16; n += LOADS_IN_FLIGHT) {
        uint32 words[LOADS_IN_FLIGHT][4];
#pragma unroll
        for (int i = 0; i < LOADS_IN_FLIGHT; ++i)
            if (n + i < WIDE / 16)
                load_matrices<true>(words[i], &tile[lane % 16][(n + i) * 16 + lane / 16 * 8]);
        multiply_several<LOADS_IN_FLIGHT, WIDE / 16>(sums, n, high, words);
        multiply_several<LOADS_IN_FLIGHT, WIDE / 16>(sums, n, low, words);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) attention_gradient(
    const T* __restrict__ query, const T* __restrict__ key, const T* __restrict__ value,
    const bool* __restrict__ mask, const T* __restrict__ bias, const T* __restrict__ g,
    const float* __restrict__ statistics, const T* __restrict__ largest, T* __restrict__ first,
    T* __restrict__ second, const Layout layout, double scale, double cap, int64 queries,
    int64 keys, int64 features, int64 values, int64 blocks, int64 rows) {
    __shared__ __align__(16) T first_tiles[2][COLUMNS][D + GAP];
    __shared__ __align__(16) T second_tiles[2][COLUMNS][V + GAP];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    SELECT_BLOCK
    g += number * queries * values;
    statistics += number * queries;
    const Scores rule{mask, bias, layout, queries, keys, (C)scale, (C)cap, LOG2E};
    const int64 first_row = block * ROWS, own_row = first_row + warp * 16 + lane / 4;
    const float factor = gradient_factor(largest, values);
#ifdef OF_KEYS
    const T *left = key, *other_left = value, *right = query, *other_right = g;
    const int64 left_stride = layout.key_row, other_left_stride = layout.value_row;
    const int64 right_stride = layout.query_row, other_right_stride = values;
    const int64 row_count = keys, column_count = queries;
    int64 start = 0;
#ifdef CAUSAL
    start = first_row - (keys - queries);
    start = start > 0 ? start / COLUMNS * COLUMNS : 0;
#endif
    const int64 stop = queries;
    first += number * keys * features;
    second += number * keys * values;
#else
    const T *left = query, *other_left = g, *right = key, *other_right = value;
    const int64 left_stride = layout.query_row, other_left_stride = values;
    const int64 right_stride = layout.key_row, other_right_stride = layout.value_row;
    const int64 row_count = queries, column_count = keys;
    const int64 start = 0, stop = rule.seen(first_row + ROWS);
    first += number * queries * features;
    float row_logs[2], row_means[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int64 row = own_row + h * 8;
        row_logs[h] = row < queries ? statistics[row] : 0.0f;
        row_means[h] = row < queries ? statistics[rows + row] : 0.0f;
    }
#endif
    uint32 parts[D / 16][4], other_parts[V / 16][4];
    load_left<D>(parts, left, left_stride, own_row, row_count, features);
    load_left<V>(other_parts, other_left, other_left_stride, own_row, row_count, values);
    float sums[D / 8][4];
#pragma unroll
    for (int n = 0; n < D / 8; ++n)
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[n][j] = 0.0f;
#ifdef OF_KEYS
    float other_sums[V / 8][4];
#pragma unroll
    for (int n = 0; n < V / 8; ++n)
#pragma unroll
        for (int j = 0; j < 4; ++j) other_sums[n][j] = 0.0f;
#endif
    const bool aligned = is_aligned(right, right_stride, features);
    const bool other_aligned = is_aligned(other_right, other_right_stride, values);
    if (start < stop) {
        copy_rows<COLUMNS, D>(first_tiles[0], right + start * right_stride, right_stride,
            column_count - start, features, aligned);
        copy_rows<COLUMNS, V>(second_tiles[0], other_right + start * other_right_stride,
            other_right_stride, column_count - start, values, other_aligned);
    }
    int own = 0;
    for (int64 column = start; column < stop; column += COLUMNS, own ^= 1) {
        wait_for_copies();
        __syncthreads();  // this tile has arrived, and no thread reads the other one any more
        const int64 next = column + COLUMNS;
        if (next < stop) {
            copy_rows<COLUMNS, D>(first_tiles[own ^ 1], right + next * right_stride, right_stride,
                column_count - next, features, aligned);
            copy_rows<COLUMNS, V>(second_tiles[own ^ 1], other_right + next * other_right_stride,
                other_right_stride, column_count - next, values, other_aligned);
        }
        float weights[COLUMNS / 8][4], gradients[COLUMNS / 8][4];
#pragma unroll
        for (int n = 0; n < COLUMNS / 8; ++n)
#pragma unroll
            for (int j = 0; j < 4; ++j) weights[n][j] = gradients[n][j] = 0.0f;
        const int row_of_words = lane / 16 * 8 + lane % 8, column_of_words = lane / 8 % 2 * 8;
        uint32 near[COLUMNS / 16][4];
#pragma unroll
        for (int k = 0; k < (D > V ? D : V) / 16; ++k) {
            if (k < D / 16) {
#pragma unroll
                for (int n = 0; n < COLUMNS / 16; ++n)
                    load_matrices<false>(near[n],
                        &first_tiles[own][n * 16 + row_of_words][k * 16 + column_of_words]);
                multiply_several<COLUMNS / 16, COLUMNS / 16>(weights, 0, parts[k], near);
            }
            if (k < V / 16) {
#pragma unroll
                for (int n = 0; n < COLUMNS / 16; ++n)
                    load_matrices<false>(near[n],
                        &second_tiles[own][n * 16 + row_of_words][k * 16 + column_of_words]);
                multiply_several<COLUMNS / 16, COLUMNS / 16>(gradients, 0, other_parts[k], near);
            }
        }
#ifdef OF_KEYS
        const bool plain = rule.is_plain(column, first_row + ROWS) && next <= queries;
#else
        const bool plain = rule.is_plain(first_row, next);
#endif
#pragma unroll
        for (int n = 0; n < COLUMNS / 8; ++n) {
            const int64 c = column + n * 8 + lane % 4 * 2;
            float logs[2][2], means[2][2];  // of rows and columns
#pragma unroll
            for (int h = 0; h < 2; ++h) {
#pragma unroll
                for (int l = 0; l < 2; ++l) {
#ifdef OF_KEYS
                    logs[h][l] = c + l < queries ? statistics[c + l] : 0.0f;
                    means[h][l] = c + l < queries ? statistics[rows + c + l] : 0.0f;
#else
                    logs[h][l] = row_logs[h], means[h][l] = row_means[h];
#endif
                }
            }
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int64 r = own_row + j / 2 * 8;
                const float product = weights[n][j];
                float score;
                if (plain) {
                    score = rule.plain(product);
                } else {
                    score = rule.of(product, QUERY(r, c + j % 2), KEY(r, c + j % 2));
                }
                const float weight = exp2_fast(score - logs[j / 2][j % 2] + WEIGHT_EXPONENT);
                float gradient = weight * (gradients[n][j] - means[j / 2][j % 2]) * factor;
#ifdef SOFTCAP
                const float capped = tanh(product * (float)scale / (float)cap);
                gradient *= 1.0f - capped * capped;
#endif
                weights[n][j] = weight;
                gradients[n][j] = gradient;
            }
        }
#pragma unroll
        for (int k = 0; k < COLUMNS / 16; ++k) {
            uint32 high[4], low[4];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float* two = &gradients[2 * k + j / 2][j % 2 * 2];
                split_pair(two[0], two[1], high[j], low[j]);
            }
            add_products<D>(sums, high, low, first_tiles[own] + k * 16);
#ifdef OF_KEYS
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float* two = &weights[2 * k + j / 2][j % 2 * 2];
                split_pair(two[0], two[1], high[j], low[j]);
            }
            add_products<V>(other_sums, high, low, second_tiles[own] + k * 16);
#endif
        }
    }
    const float lowered = exp2_fast(-WEIGHT_EXPONENT), share = (float)scale * lowered / factor;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int64 row = own_row + h * 8;
        if (row >= row_count) continue;
#pragma unroll
        for (int n = 0; n < D / 8; ++n)
            store_pair(first, row, n * 8 + lane % 4 * 2, features, sums[n][2 * h] * share,
                sums[n][2 * h + 1] * share);
#ifdef OF_KEYS
#pragma unroll
        for (int n = 0; n < V / 8; ++n)
            store_pair(second, row, n * 8 + lane % 4 * 2, values, other_sums[n][2 * h] * lowered,
                other_sums[n][2 * h + 1] * lowered);
#endif
    }
}
