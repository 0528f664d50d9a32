// Shared by the kernels of attention. T: elements, R: axes of the batch. HAS_MASK, HAS_BIAS, CAUSAL and
// SOFTCAP: the modifications of the scores.

typedef typename Computed<T>::type C;

#define THREADS 128

// Strides of the operands in elements: of the axes of the batch, then of rows (and columns).
struct Layout {
    int64 lengths[R];
    int64 query[R], key[R], value[R], mask[R], bias[R];
    int64 query_row, key_row, value_row, mask_row, mask_column, bias_row, bias_column;
};
// Advances the pointers to the batch of a block, and defines `block`, the index of its queries. Blocks
// start with the last queries, which under a causal mask attend to the most keys.
#define SELECT_BLOCK                                                                \
    const int64 number = blockIdx.x / blocks;                                       \
    int64 batch = number;                                                           \
    const int64 block = blocks - 1 - (blockIdx.x - batch * blocks);                 \
    _Pragma("unroll") for (int d = R - 1; d >= 0; --d) {                            \
        const int64 above = batch / layout.lengths[d];                              \
        const int64 index = batch - above * layout.lengths[d];                      \
        batch = above;                                                              \
        query += index * layout.query[d];                                           \
        key += index * layout.key[d];                                               \
        value += index * layout.value[d];                                           \
        if (mask) mask += index * layout.mask[d];                                   \
        if (bias) bias += index * layout.bias[d];                                   \
    }

// The score of a query and a key, from their dot product.
struct Scores {
    const bool* mask;
    const T* bias;
    const Layout& layout;
    int64 queries, keys;
    C scale, cap, unit;

    // Whether `plain` gives every score of a tile.
    __device__ __forceinline__ bool is_plain(int64 first_row, int64 stop_key) const {
#if defined(HAS_MASK) || defined(HAS_BIAS)
        return false;
#elif defined(CAUSAL)
        return stop_key <= keys && stop_key - 1 <= first_row + keys - queries;
#else
        return stop_key <= keys;
#endif
    }
    // Number of keys that the queries before `stop_row` attend to.
    __device__ __forceinline__ int64 seen(int64 stop_row) const {
#ifdef CAUSAL
        const int64 stop = (stop_row < queries ? stop_row : queries) + keys - queries;
        return stop < keys ? stop : keys;
#else
        return keys;
#endif
    }
    // The score where no key is excluded: scaled, and soft-capped where there is a cap.
    __device__ __forceinline__ C plain(C product) const {
#ifdef SOFTCAP
        return tanh(product * scale / cap) * cap * unit;
#else
        return product * (scale * unit);
#endif
    }
    __device__ __forceinline__ C of(C product, int64 row, int64 column) const {
        C score = plain(product);
        const bool inside = row < queries && column < keys;
        bool excluded = !inside;
#ifdef CAUSAL
        excluded = excluded || column > row + keys - queries;
#endif
#ifdef HAS_MASK
        if (inside)
            excluded = excluded || mask[row * layout.mask_row + column * layout.mask_column];
#endif
        if (excluded) score = -bits_as_float(0x7f800000u);
#ifdef HAS_BIAS
        if (inside)
            score += unit * load(bias[row * layout.bias_row + column * layout.bias_column]);
#endif
        return score;
    }
};
